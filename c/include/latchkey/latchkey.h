/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latchkey: distributed locks on Redis and Valkey, as named and versioned scripts.
 *
 * The scripts hold the logic; this library finds them by name, keeps leases alive, and waits.
 *
 * Units       Every duration is an int64_t in milliseconds and its name ends in _ms. LK_FOREVER (-1)
 *             waits without end, 0 tries once.
 * Strings     A `const char *` is NUL-terminated text; an lk_bytes is any bytes with their length.
 *             What is passed in is copied before the call returns.
 * Errors      Every call that can fail returns an lk_status. The last argument, an lk_error that the
 *             caller owns, takes the detail and may be NULL. Out-parameters are NULL or 0 on failure.
 * Options     A structure of options begins with its size; start from its ..._INIT. It is copied on use, and
 *             one that says something that this version of the library does not know is LK_VERSION.
 * Results     A structure that a call fills begins with its size, too, which the caller sets: what an older
 *             caller does not know is left away, what only a newer one knows is 0.
 * Time        Deadlines run on a clock that goes on while the machine sleeps. They are counted from
 *             before a request is sent, so a hold counts as valid no longer than the server grants it.
 *
 * Threads
 *
 *   | object                 | used by                                                           |
 *   |------------------------|-------------------------------------------------------------------|
 *   | lk_client              | any number of threads at once                                     |
 *   | lk_lock                | any number of threads at once; each thread has holds of its own   |
 *   | lk_caller              | any thread, but one call at a time                                |
 *   | lk_watch, lk_wait      | one thread at a time; different ones are independent              |
 *   | lk_reply, lk_error     | their owner, one thread at a time                                  |
 *   | any ..._close, _free   | once, when no other call on that object is running or follows;    |
 *   |                        | callbacks, calls on other objects and lk_client_close() of its    |
 *   |                        | client may run beside it                                          |
 *   | lk_client_close        | beside any call: it wakes those that wait with LK_CLOSED and      |
 *   |                        | waits for them to return                                          |
 *   | after fork()           | the child's calls on the parent's client return LK_FORKED and     |
 *   |                        | touch no socket; the child opens a client of its own              |
 *
 * A thread that ends without a release leaves its lock held: it is renewed until the client closes, or the
 * process ends, and no other thread can release it. A task that may end so has an lk_caller, whose
 * lk_caller_free() ends it. A thread must not be cancelled (pthread_cancel) inside a call: it would keep the
 * library's mutexes, and every other call would wait without end. Disable cancellation around calls.
 *
 * Functions without @threads and @blocks do no I/O and do not wait for a server; the table says from which
 * threads they are called. Functions without an object are called from any thread.
 *
 * Callbacks run on the thread that calls lk_client_dispatch(), or, with callbacks = LK_ON_BACKGROUND, on
 * the client's one background thread; there they must not block and must not close the client.
 * Else they may call anything: close what they report, free callers, dispatch again. A close waits
 * for a callback of its object that runs on another thread, as its comment says; one that is called in a
 * callback waits for none, so where several threads dispatch, the other may still run.
 */
#ifndef LATCHKEY_LATCHKEY_H
#define LATCHKEY_LATCHKEY_H

#ifndef LK_CDEF /* set while the LuaJIT binding is generated from this header */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

#if defined(LK_CDEF) || defined(LK_STATIC)
#define LK_API
#elif defined(__GNUC__)
#define LK_API __attribute__((visibility("default")))
#else
#define LK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define LK_FOREVER ((int64_t)-1)        /**< wait without end */
#define LK_NAME_MAX 512                 /**< longest lock name, bytes */
#define LK_OWNER_MAX 256                /**< longest owner name, bytes */
#define LK_LEASE_MIN_MS 50              /**< shortest lease */
#define LK_LEASE_MAX_MS 86400000        /**< longest lease, 24 hours */
#define LK_HOLD_MAX 1000000             /**< highest hold count of one owner */
#define LK_CONNECTIONS_MAX 16           /**< most shared connections to one node */
#define LK_REPLICAS_MAX 16              /**< most replicas that can be asked for */
#define LK_READ_HOLD_MAX 1000           /**< highest hold count of one reader */
#define LK_TOKEN_TTL_MAX_MS 31536000000 /**< longest life of a fencing counter, 365 days */

/* ---------------------------------------------------------------------------------- statuses -- */

/*
 * X(name, number, retriable, text, what to do). Numbers are part of the ABI and never used again.
 * 1 to 19: outcomes. 20 to 39: trouble that may pass; the same call may be tried again.
 * 40 and above: the call, the set-up or the server has to change first.
 */
#define LK_STATUS_TABLE(X)                                                                         \
  X(OK, 0, 0, "done", "nothing to do")                                                             \
  X(BUSY, 1, 1, "another owner holds the lock",                                                    \
    "wait for it, or see who holds it: latchkey inspect NAME")                                     \
  X(TIMEOUT, 2, 1, "the wait ended before the lock was free",                                      \
    "wait longer, or see who holds it: latchkey inspect NAME")                                     \
  X(LOST, 3, 0, "the hold was lost before this call",                                              \
    "stop the protected work, which may overlap with another holder's; release every "             \
    "hold count, then acquire again")                                                              \
  X(NOT_HELD, 4, 0, "this caller does not hold the lock",                                          \
    "release once for each acquire, from the same thread or caller")                               \
  X(UNSURE, 5, 0, "no reply came, so whether the call took effect is unknown",                     \
    "treat the lock as not held; an orphaned hold expires with its lease; inspect a "              \
    "semaphore or latch")                                                                          \
  X(REENTRY, 6, 0, "this caller holds the lock already, and this kind is not re-entrant",          \
    "use the kind lock, or release first")                                                         \
  X(OVERTAKEN, 7, 0, "a later hold, or a later call, came first",                                  \
    "stop the work: nothing was written")                                                          \
  X(EXISTS, 8, 0, "it is set already", "use the value that is set, or change it on purpose")       \
  X(BOUND, 9, 0, "that would pass a bound; nothing was done",                                      \
    "find who counts twice, or counts on another name")                                            \
  X(UPGRADE, 10, 0, "a reader cannot become a writer",                                             \
    "release the read hold first; waiting with it would deadlock")                                 \
  X(QUEUE_FULL, 11, 1, "too many wait for this lock already", "try again later")                   \
  X(CANCELLED, 12, 0, "the operation was cancelled", "nothing to do")                              \
  X(UNREACHABLE, 20, 1, "no server could be reached",                                              \
    "check the address and that the server runs; nothing was sent")                                \
  X(LOADING, 21, 1, "the server is loading its data", "try again when it has started")             \
  X(READONLY, 22, 1, "the server is a read-only replica",                                          \
    "connect to the master, or wait for the fail-over to end")                                     \
  X(OOM, 23, 1, "the server is out of memory and refuses new holds",                               \
    "raise maxmemory or free memory; held locks are still renewed and released")                   \
  X(NOREPLICAS, 24, 1, "too few replicas confirm writes",                                          \
    "repair replication, or lower the server's min-replicas-to-write or the lock's "               \
    "min_replicas")                                                                                \
  X(MISCONF, 25, 1, "the server cannot save to disk and refuses writes",                           \
    "read the server's log: disk space, permissions of its folder")                                \
  X(SERVER_BUSY, 26, 1, "the server is running a script that does not end",                        \
    "wait, or SCRIPT KILL the other script")                                                       \
  X(MASTERDOWN, 27, 1, "the server has lost its master", "wait for the fail-over to end")          \
  X(CLUSTERDOWN, 28, 1, "the cluster does not serve this slot now",                                \
    "wait for the fail-over or the move of the slot to end; see CLUSTER INFO")                     \
  X(FORGETFUL, 29, 1, "the server loses each script as soon as it has it",                         \
    "find who runs SCRIPT FLUSH, and whether a proxy sends loads and calls to different servers")  \
  X(INVALID, 40, 0, "an argument is out of range",                                                 \
    "correct the argument that the message names; nothing was sent")                               \
  X(NAME, 41, 0, "the lock name cannot be used",                                                   \
    "use 1 to 512 bytes without NUL; braces only as one {tag} that is closed and not empty")       \
  X(URL, 42, 0, "the URL is not valid", "correct the part of the URL that the message names")      \
  X(VERSION, 43, 0, "versions do not fit together",                                                \
    "rebuild against this header, or use scripts of the same major version")                       \
  X(CLOSED, 44, 0, "the client is closed", "open a client first")                                  \
  X(FORKED, 45, 0, "the client belongs to the parent process", "open a client in the child")       \
  X(NOMEM, 46, 0, "out of memory",                                                                 \
    "give the process more memory: ulimit -v, the limit of its container")                         \
  X(AUTH, 47, 0, "the server refused the credentials",                                             \
    "check user and password: the URL, LATCHKEY_PASSWORD, --password-file")                        \
  X(DENIED, 48, 0, "this user may not do that",                                                    \
    "add the command, key or channel that the message names to the user's ACL; "                   \
    "latchkey acl prints the rule")                                                                \
  X(TLS, 49, 0, "no secure connection could be made",                                              \
    "check certificate, server name and protocol version: cacert, sni, tls_min in the URL")        \
  X(WRONGTYPE, 50, 0, "the key holds something that is not a lock of this kind",                   \
    "use another name, or the kind that the name has")                                             \
  X(BADARG, 51, 0, "the script refused an argument",                                               \
    "correct the argument that the message names; nothing was written")                            \
  X(NO_SCRIPT, 52, 0, "no script has that name", "check the name; latchkey status lists them")     \
  X(SCRIPT, 53, 0, "the script failed",                                                            \
    "report it with the script, line and message; test an own script with latchkey spec")          \
  X(SERVER, 54, 0, "the server answered with an error",                                            \
    "look up the error that the message quotes; latchkey doctor checks the server")                \
  X(PROTOCOL, 55, 0, "the reply was not what the script promises",                                 \
    "check that the script on the server is latchkey's")                                           \
  X(LOCAL, 56, 0, "the local server could not be started",                                         \
    "install redis-server or valkey-server; $LATCHKEY_LOCAL_DIR must be private (chmod 700)")      \
  X(SYSTEM, 57, 0, "the operating system refused",                                                 \
    "raise the limit that was reached: descriptors (ulimit -n), threads (ulimit -u)")

typedef enum lk_status {
#define LK_STATUS_ENUM(name, number, retriable, text, hint) LK_##name = number,
  LK_STATUS_TABLE(LK_STATUS_ENUM)
#undef LK_STATUS_ENUM
} lk_status;

/** The detail of a failure, owned by the caller. Filled on failure, cleared on success. */
typedef struct lk_error {
  lk_status status;  /**< the status that the call returned */
  int line;          /**< line of the script that failed, 0 if none did */
  char script[64];   /**< name of that script, "" if none */
  char code[32];     /**< first word of the server's error, "" if it sent none */
  char message[320]; /**< one sentence for people; never holds a password or a control character */
  int64_t reserved[4]; /**< 0; for later versions */
} lk_error;

/** "LK_BUSY" for LK_BUSY; NULL for a number that is no status. @threads any @since 0.1.0 */
LK_API const char *lk_status_name(int status);
/** What the status means, in a few words; NULL if there is no such status. @since 0.1.0 */
LK_API const char *lk_status_text(int status);
/** What to do about it; NULL if there is no such status. @since 0.1.0 */
LK_API const char *lk_status_hint(int status);
/** May the same call succeed later without any change by the caller? @since 0.1.0 */
LK_API bool lk_status_is_retriable(int status);
/** The version of the library at run time, "0.1.0". @since 0.1.0 */
LK_API const char *lk_version(void);

/* ------------------------------------------------------------------------------------ client -- */

typedef struct lk_client lk_client;
typedef struct lk_caller lk_caller;
typedef struct lk_lock lk_lock;
typedef struct lk_watch lk_watch;
typedef struct lk_wait lk_wait;
typedef struct lk_reply lk_reply;
typedef struct lk_op lk_op;

/** Bytes with a length; they may hold anything. */
typedef struct lk_bytes {
  const char *data;
  size_t len;
} lk_bytes;

typedef enum lk_callbacks {
  LK_ON_DISPATCH = 0,  /**< callbacks run inside lk_client_dispatch() */
  LK_ON_BACKGROUND = 1 /**< callbacks run on the client's background thread */
} lk_callbacks;

/** "LK_ON_BACKGROUND" for LK_ON_BACKGROUND; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_callbacks_name(int callbacks);

/** Options of a client; start from LK_CLIENT_OPTIONS_INIT. 0 or NULL takes the default. */
typedef struct lk_client_options {
  size_t size;          /**< sizeof(lk_client_options), set by the initializer */
  const char *name;     /**< CLIENT SETNAME; the default says who this is: lk_client_name() */
  const char *user;     /**< replaces the URL's user */
  const char *password; /**< replaces the URL's password */
  int64_t connect_ms; /**< deadline of a connect with its hand-shake, 1 to 60,000; default 2,000 */
  int64_t command_ms; /**< deadline of one call, 1 to 60,000; default 1,000 */
  int64_t recheck_ms; /**< a waiter looks again after this, 100 to 300,000; default 30,000 */
  const char *script_dir; /**< a folder of <family>/<verb>.lua that extends or overrides */
  lk_callbacks callbacks; /**< where callbacks run */
  bool no_load;           /**< do not load the scripts; each is loaded when it is first missed */
  int64_t
      poll_us; /**< busy-poll time before a call blocks, in microseconds, up to 1,000. 0: adaptive, up to
                        twice the round trip if that is below 300, and not beside other callers;
                        -1: never. Lower latency near the
                        server, at the price of CPU */
  void (*trace)(const char *line, size_t len,
                void *user); /**< is handed what the client does, a JSON
                        object and a line feed at a time (docs/reference/trace.md); on any thread, one
                        at a time, inside the client's mutexes: it calls nothing of the library */
  void *trace_user;
  bool
      functions; /**< call the scripts as Redis Functions (FCALL); also the URL's functions=1. What the
                       server does not have is loaded, older ones are replaced */
  bool lazy; /**< open also while the server cannot be reached or is not ready, after half a second
                       at most: calls connect, and load what they need */
  int64_t min_replicas; /**< of locks whose options give none; 0: do not wait for replicas */
  int64_t replicas_ms;  /**< of locks whose options give none, 1 to 60,000; default 500 */
  int64_t connections; /**< to each node, shared by all threads, 1 to LK_CONNECTIONS_MAX; default 1.
                             The calls of one lock stay on one of them, and in order */
  int64_t
      keepalive_ms; /**< a connection that is silent for so long is asked whether it is there, and
                             given up after twice that, 1,000 to 3,600,000; default 15,000; -1: as
                             the system has it. Keeps NATs and firewalls from forgetting it, too */
  const char
      *label;   /**< what the client is for: the default name's end, behind ":". Tools show it with
                        its locks; everybody on the server may see it. 64 bytes of it are taken, and
                        what is no printable ASCII, or a blank, becomes "_" */
  bool answers; /**< while it waits for something, answer lk_ask() of others: what it holds and what
                             it waits for: docs/reference/ask.md says what, and to whom */
  const char *within; /**< with `answers`: all callers of this client are one, and work inside these
                             holds of another client, the owners' names with blanks between; "": inside
                             none. NULL: each caller is one of its own */
} lk_client_options;

#define LK_CLIENT_OPTIONS_INIT                                                                     \
  {                                                                                                \
    sizeof(lk_client_options), NULL, NULL, NULL, 0, 0, 0, NULL, LK_ON_DISPATCH, false, 0, NULL,    \
        NULL, false, false, 0, 0, 0, 0, NULL, false, NULL                                          \
  }

/**
 * Open a client: connect, authenticate, and load every script.
 *
 * @param url      redis://[user:password@]host[:port][/db]; unix:///path?db=0;
 *                 redis-sentinel://[user:password@]host[:port],.../master[/db]: the master that they name;
 *                 redis-cluster://[user:password@]host[:port],...: a cluster, entered by any of these;
 *                 rediss://, rediss-sentinel://, rediss-cluster://: the same over TLS;
 *                 local: this user's own server on this machine, started when it is not running.
 *                 docs/reference/url.md has the parameters
 * @param options  NULL for the defaults
 * @param out      the client, to be closed with lk_client_close()
 * @return LK_OK; LK_INVALID (url NULL, option out of range), LK_URL, LK_VERSION (options or scripts),
 *         LK_UNREACHABLE, LK_LOADING, LK_AUTH, LK_DENIED, LK_TLS, LK_LOCAL, LK_CLUSTERDOWN, LK_SERVER,
 *         LK_NOMEM, LK_SYSTEM
 * @blocks connect_ms for the connection and command_ms for the scripts, a lazy client at most 500 ms;
 *         local: up to 10 s more
 * @threads any
 * @after-io nothing is left open when it fails; scripts may have been loaded
 * @since 0.1.0
 */
LK_API lk_status lk_client_open(const char *url, const lk_client_options *options, lk_client **out,
                                lk_error *error);

/**
 * Close a client: calls that wait return LK_CLOSED, the background thread ends, nothing is left but the
 * look-up of a server's name that the system has not ended; it ends by itself.
 * Locks that are still held are not released; they end with their leases, since nobody renews them.
 * A lock that is granted to a waiting call at that moment is released before the call returns.
 * Locks, watches, waits and callers of the client are closed with lk_..._close before, beside or after it.
 * No on_lost of its locks runs when it returns, unless it was called in a callback; another callback that runs
 * on another thread at that moment is not waited for. Callbacks that were due by then run before it returns.
 *
 * @param client  may be NULL
 * @blocks until calls on other threads have returned: up to command_ms
 * @threads any, but not from a callback on the background thread, where it does nothing, as it does
 *          in a forked child
 * @since 0.1.0
 */
LK_API void lk_client_close(lk_client *client);

/**
 * The folder of the server that `local:` means: $LATCHKEY_LOCAL_DIR, else $XDG_RUNTIME_DIR/latchkey,
 * else a folder per user in the temporary directory. It is made when it is missing; no server starts.
 *
 * @param buffer  takes the path, NUL-terminated
 * @param size    of the buffer
 * @return LK_OK; LK_LOCAL (not a folder of this user's alone), LK_INVALID (buffer too small)
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_local_dir(char *buffer, size_t size, lk_error *error);

/** Where the client is connected to, without user and password: "redis://host:6379/0". @since 0.1.0 */
LK_API const char *lk_client_target(const lk_client *client);
/**
 * What the client is called on the servers: "latchkey:web-3:4711:1b9d6bcd:billing", which is its host, its
 * process, the first eight characters of its UUID, with which the owners' names of its locks begin, and its
 * label; or the name that its options gave, by which tools find nobody. "" of NULL. It lives as long as the
 * client.
 * @blocks no @threads any @after-io sends nothing @since 0.1.0
 */
LK_API const char *lk_client_name(const lk_client *client);

/**
 * What keeps calls that want something (a lock, a permit, a count) from getting on: what the last answer
 * to one of them was. A call that waits tries again for as long as it may wait; this says meanwhile why.
 *
 * @param error  may be NULL; the detail, cleared when there is no trouble
 * @return LK_OK: the server answered, if only that another holds the lock; else what may pass:
 *         LK_UNREACHABLE, LK_UNSURE, LK_LOADING, LK_READONLY, LK_OOM, LK_NOREPLICAS, LK_MISCONF,
 *         LK_SERVER_BUSY, LK_MASTERDOWN, LK_CLUSTERDOWN, LK_FORGETFUL
 * @blocks no
 * @threads any; of several that wait, the one whose news came last
 * @after-io sends nothing
 * @since 0.1.0
 */
LK_API lk_status lk_client_trouble(lk_client *client, lk_error *error);

/**
 * A descriptor that is readable while callbacks are due, for poll(), epoll or an event loop.
 * It belongs to the client. -1 after fork.
 * @threads any @since 0.1.0
 */
LK_API int lk_client_fd(lk_client *client);

/**
 * Run the callbacks that are due, on this thread. What they start goes out together, when they have
 * returned, sleep inside a call of the library's, or dispatch again. The on_lost of one handle comes once at
 * a time: what becomes due while it runs on another thread follows there or here, and this call does not wait
 * for it. A callback that dispatches again runs what is due inside itself, also of its own handle.
 * @return how many ran; 0 in a forked child
 * @blocks as long as the callbacks do
 * @threads any; a callback runs on one thread only
 * @since 0.1.0
 */
LK_API size_t lk_client_dispatch(lk_client *client);

/** The library's clock, in milliseconds since some fixed moment; goes on in suspend. @since 0.1.0 */
LK_API int64_t lk_now_ms(void);

/* --------------------------------------------------------------------------- scripts by name -- */

/** One script of the client's catalogue. The strings live as long as the client. */
typedef struct lk_script {
  size_t size;         /**< sizeof(lk_script), set by the caller */
  const char *name;    /**< "lock/acquire" */
  const char *version; /**< "1.0.0" */
  const char *sha1;    /**< 40 hexadecimal digits, as the server knows it */
  lk_bytes source;     /**< the bytes that the server runs */
  bool overridden;     /**< it came from script_dir */
} lk_script;

/** How many scripts the client knows. @threads any @since 0.1.0 */
LK_API size_t lk_script_count(const lk_client *client);
/** The script at index (sorted by name); false past the end, or without a size. @threads any @since 0.1.0 */
LK_API bool lk_script_at(const lk_client *client, size_t index, lk_script *out);

/**
 * The name of a script's key for the lock `name`, as the script's header forms it.
 *
 * @param index   of the key among those of the header, from 0
 * @param name    of the lock, 1 to 512 bytes
 * @param buffer  of the caller, size bytes; NULL with size 0
 * @return the length without the final NUL; nothing was written unless it is below size. 0: there is no
 *         such script or key, or its form needs an argument
 * @blocks no
 * @threads any
 * @after-io sends nothing
 * @since 0.1.0
 */
LK_API size_t lk_script_key(const lk_client *client, const char *script, size_t index,
                            const char *name, char *buffer, size_t size);

/** What lk_load() did. */
typedef struct lk_load_report {
  size_t size;    /**< sizeof(lk_load_report), set by the caller */
  size_t scripts; /**< in the catalogue */
  size_t
      loaded; /**< accepted by the server, each under the SHA1 that was expected; of several, by the
                      one that has the fewest */
  size_t masters;  /**< that were asked: one, or those of a cluster */
  size_t complete; /**< of these, how many have every script now */
} lk_load_report;

/**
 * SCRIPT LOAD every script, on every master.
 *
 * @param report  may be NULL
 * @return LK_OK, or the status of the first script that was refused; LK_UNSURE when no reply came; LK_VERSION (no
 *         size)
 * @blocks command_ms
 * @threads any
 * @after-io some or all may be loaded; loading again is harmless
 * @since 0.1.0
 */
LK_API lk_status lk_load(lk_client *client, lk_load_report *report, lk_error *error);

/**
 * Run a script by its name. When the server does not have it, it is loaded and run again.
 *
 * @param script  its name, "family/verb"
 * @param keys    nkeys of them, in the order of the script's header
 * @param args    nargs of them, in the order of the script's header
 * @param out     the reply, to be freed with lk_reply_free(). A server that sends one of more than 64 MiB,
 *                1,048,576 elements or 32 arrays inside of one another loses its connection
 * @return LK_OK; LK_NO_SCRIPT; LK_BADARG; LK_WRONGTYPE; LK_SCRIPT; LK_UNREACHABLE (nothing was sent);
 *         LK_UNSURE; LK_LOADING, LK_READONLY, LK_OOM, LK_NOREPLICAS, LK_MISCONF, LK_SERVER_BUSY,
 *         LK_MASTERDOWN, LK_CLUSTERDOWN, LK_FORGETFUL; LK_AUTH and LK_TLS (a connection that had to be
 *         made again); LK_DENIED; LK_SERVER; LK_CLOSED; LK_FORKED; LK_INVALID; LK_NOMEM
 * @blocks command_ms
 * @threads any
 * @after-io LK_UNSURE: the script may have run, or may still run once. A script whose header says
 *           `repeat: hold`, `id`, `seq` or `pure` was sent again as long as command_ms allowed.
 * @since 0.1.0
 */
LK_API lk_status lk_eval(lk_client *client, const char *script, const lk_bytes *keys, size_t nkeys,
                         const lk_bytes *args, size_t nargs, lk_reply **out, lk_error *error);

/**
 * Send one command of the server's, for tools: reading what scripts left, INFO, SCAN.
 * Commands that block or change the connection (SUBSCRIBE, MULTI, SELECT, BLPOP ...) are refused.
 *
 * @param argv  the command and its arguments, argc of them
 * @param out   the reply, to be freed with lk_reply_free()
 * @return as lk_eval()
 * @blocks command_ms
 * @threads any
 * @after-io LK_UNSURE: the command may have run, or may still run once; it is never sent twice
 * @since 0.1.0
 */
LK_API lk_status lk_command(lk_client *client, const lk_bytes *argv, size_t argc, lk_reply **out,
                            lk_error *error);

typedef enum lk_reply_type {
  LK_REPLY_NIL = 0,
  LK_REPLY_INTEGER = 1,
  LK_REPLY_STRING = 2,
  LK_REPLY_STATUS = 3, /**< a simple string, such as OK */
  LK_REPLY_ARRAY = 4,
  LK_REPLY_ERROR = 5 /**< only as an element of an array */
} lk_reply_type;

/** "LK_REPLY_NIL" for LK_REPLY_NIL; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_reply_type_name(int type);

/** The type of a reply; LK_REPLY_NIL for NULL. @since 0.1.0 */
LK_API lk_reply_type lk_reply_type_of(const lk_reply *reply);
/** The value of an integer, else 0. @since 0.1.0 */
LK_API int64_t lk_reply_integer(const lk_reply *reply);
/** The bytes of a string, status or error, followed by a NUL; else empty. @since 0.1.0 */
LK_API lk_bytes lk_reply_bytes(const lk_reply *reply);
/** The number of elements of an array, else 0. @since 0.1.0 */
LK_API size_t lk_reply_count(const lk_reply *reply);
/** The element at index, owned by the reply; NULL past the end. @since 0.1.0 */
LK_API const lk_reply *lk_reply_at(const lk_reply *reply, size_t index);
/** Free a reply that lk_eval() or lk_command() gave; NULL is fine. @since 0.1.0 */
LK_API void lk_reply_free(lk_reply *reply);

/* ------------------------------------------------------------------- without a waiting thread -- */

/**
 * Called once when an operation has ended, where callbacks run (see lk_callbacks). `op` and `error` are
 * valid until it returns; error is NULL or says LK_OK when there is no trouble.
 */
typedef void (*lk_done_fn)(lk_op *op, lk_status status, const lk_error *error, void *user);

/**
 * lk_eval() without waiting.
 *
 * @param done  gets the statuses of lk_eval(); the reply is taken there with lk_op_reply()
 * @param user  handed to it
 * @param out   may be NULL; the operation, valid until `done` has returned
 * @return LK_OK: `done` will be called; else it will not, as for lk_eval() before anything is sent
 * @blocks no
 * @threads any
 * @after-io as lk_eval()
 * @since 0.1.0
 */
LK_API lk_status lk_eval_async(lk_client *client, const char *script, const lk_bytes *keys,
                               size_t nkeys, const lk_bytes *args, size_t nargs, lk_done_fn done,
                               void *user, lk_op **out, lk_error *error);

/**
 * End an operation soon. `done` is still called: with LK_CANCELLED, or with what it came to before.
 * What it may have taken is released. It may run beside `done` and beside lk_client_close(); it must
 * have returned before `done` does. Further calls do nothing. NULL is fine.
 * @threads any @since 0.1.0
 */
LK_API void lk_op_cancel(lk_op *op);
/** The reply of an lk_eval_async(), inside `done`, once; the caller frees it. @since 0.1.0 */
LK_API lk_reply *lk_op_reply(lk_op *op);

/* ----------------------------------------------------------------------------------- helpers -- */

/** Why a hold ended before it was released. */
typedef enum lk_lost_reason {
  LK_LOST_NOT = 0,         /**< it is not lost */
  LK_LOST_TAKEN = 1,       /**< the server says that another owner holds it */
  LK_LOST_EXPIRED = 2,     /**< its lease ended and was not to be renewed, or the process slept */
  LK_LOST_UNREACHABLE = 3, /**< no renewal succeeded before the lease ended */
  LK_LOST_BROKEN = 4       /**< the server has no such hold: broken, deleted, evicted or flushed */
} lk_lost_reason;

/** "LK_LOST_TAKEN" for LK_LOST_TAKEN; NULL for a number that is no reason. @threads any @since 0.1.0 */
LK_API const char *lk_lost_name(int reason);
/** What the reason means, in a few words; NULL if there is no such reason. @threads any @since 0.1.0 */
LK_API const char *lk_lost_text(int reason);

/** What to keep alive, and how; start from LK_WATCH_SPEC_INIT. */
typedef struct lk_watch_spec {
  size_t size;          /**< sizeof(lk_watch_spec), set by the initializer */
  const char *script;   /**< replies {1} renewed, {-1} or {-1, left_ms} not the caller's; NULL: the
                             lease is not renewed, only its end is reported */
  const lk_bytes *keys; /**< nkeys of them */
  size_t nkeys;
  const lk_bytes *args; /**< nargs of them, the lease included */
  size_t nargs;
  int64_t lease_ms; /**< what each renewal grants; renewed at every third of it */
  int64_t since_ms; /**< lk_now_ms() from before the call was sent that was granted the lease */
  int64_t drift_ms; /**< clock drift over one lease; 0: lease/100 + 2 */
  void (*on_lost)(lk_watch *watch, lk_lost_reason reason,
                  void *user); /**< called once; may be NULL */
  void *user;
} lk_watch_spec;

#define LK_WATCH_SPEC_INIT                                                                         \
  { sizeof(lk_watch_spec), NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL }

/**
 * Keep a lease alive by running its renew script at every third of the lease, until closed or lost.
 *
 * @param spec  copied
 * @return LK_OK; LK_INVALID, LK_VERSION, LK_NO_SCRIPT, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @after-io a renewal whose reply is lost is sent again until the deadline; then the watch is lost
 * @since 0.1.0
 */
LK_API lk_status lk_watch_open(lk_client *client, const lk_watch_spec *spec, lk_watch **out,
                               lk_error *error);
/** How long the lease is certain to run: 0 or less, do not act on it. No network. @since 0.1.0 */
LK_API int64_t lk_watch_remaining_ms(lk_watch *watch);
/** LK_LOST_NOT, or why it was lost. @since 0.1.0 */
LK_API lk_lost_reason lk_watch_lost(lk_watch *watch);
/** Stop renewing. After it returns no callback of this watch begins. It waits for one that runs on another
 * thread, unless it is called in a callback. NULL is fine. @since 0.1.0 */
LK_API void lk_watch_close(lk_watch *watch);

/**
 * Listen on a channel. Returns when the server has confirmed the subscription, so that every message
 * published from then on wakes lk_wait_for().
 *
 * @return LK_OK; LK_INVALID, LK_UNREACHABLE, LK_AUTH, LK_DENIED, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks connect_ms plus command_ms
 * @threads any
 * @after-io nothing is left subscribed when it fails
 * @since 0.1.0
 */
LK_API lk_status lk_wait_open(lk_client *client, const char *channel, lk_wait **out,
                              lk_error *error);
/**
 * Sleep until a message is published. Messages are hints: check the keys after each.
 *
 * @param timeout_ms  LK_FOREVER, or 0 to only look
 * @return LK_OK (a message came since the last LK_OK, or a connection was restored and messages may
 *         have been missed), LK_TIMEOUT, LK_CLOSED, LK_FORKED, LK_INVALID; LK_DENIED, LK_NOMEM: the
 *         channel is listened to no more
 * @blocks timeout_ms
 * @threads one at a time per wait
 * @after-io nothing is sent; a connection that is lost meanwhile is restored, which is LK_OK
 * @since 0.1.0
 */
LK_API lk_status lk_wait_for(lk_wait *wait, int64_t timeout_ms, lk_error *error);
/** Stop listening. Not beside lk_wait_for() of this wait; lk_client_close() ends that. NULL is fine.
 * @since 0.1.0 */
LK_API void lk_wait_close(lk_wait *wait);

/* ----------------------------------------------------------------------------------- callers -- */

/**
 * Somebody who holds locks. Every thread is one by itself (pass NULL); a task that moves between
 * threads needs one of its own.
 *
 * @param out  to be freed with lk_caller_free()
 * @return LK_OK, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_caller_new(lk_client *client, lk_caller **out, lk_error *error);
/** Free a caller that is in no call. What it still holds, also with other clients as the member of a
 * multi-lock, is renewed no longer and ends with its lease; no on_lost of it begins any more. One that runs on
 * another thread is not waited for, and its event's caller is valid until it returns. A release that
 * lk_multilock_release() did not wait for goes on. NULL is fine. @since 0.1.0 */
LK_API void lk_caller_free(lk_caller *caller);

/* ------------------------------------------------------------------------------------- locks -- */

typedef enum lk_kind {
  LK_MUTEX = 1,  /**< SET NX PX, as redis-py, redsync and Redlock use it; no re-entry */
  LK_LOCK = 2,   /**< re-entrant, on Redisson's wire */
  LK_FENCED = 3, /**< LK_LOCK with a fencing token for each fresh hold */
  LK_FAIR = 4,   /**< re-entrant, granted in the order of arrival, also between processes */
  LK_READ = 5,   /**< the reading side of a read-write lock: beside other readers */
  LK_WRITE = 6   /**< its writing side: alone; a writer may read as well, not the other way round */
} lk_kind;

/** "LK_FAIR" for LK_FAIR; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_kind_name(int kind);

/** How a caller waits for a lock that is held. */
typedef enum lk_wait_mode {
  LK_WAIT_MESSAGE = 0, /**< for the message of a release */
  LK_WAIT_SPIN = 1 /**< it tries again after 1 ms, doubling to 128 ms, jittered; no subscription */
} lk_wait_mode;

/** "LK_WAIT_SPIN" for LK_WAIT_SPIN; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_wait_mode_name(int mode);

/** A hold that was lost. Valid during the callback, though the hold is released or the caller freed there or
 * meanwhile. */
typedef struct lk_lost_event {
  lk_lost_reason reason;
  const char *name;    /**< of the lock */
  const char *owner;   /**< the owner's name on the wire */
  lk_caller *caller;   /**< who held it; NULL for a thread */
  const lk_error *why; /**< what the last renewal met that failed (LK_READONLY, LK_MISCONF, LK_AUTH,
                            LK_UNREACHABLE ...); NULL: it did not fail */
} lk_lost_event;

/** Options of a lock; start from LK_LOCK_OPTIONS_INIT. 0 takes the default. */
typedef struct lk_lock_options {
  size_t size;        /**< sizeof(lk_lock_options), set by the initializer */
  int64_t lease_ms;   /**< 50 to 86,400,000; 0: 30,000, renewed at every third until released */
  bool renew;         /**< also renew when lease_ms is given: without it such a hold ends */
  int64_t drift_ms;   /**< clock drift over one lease; 0: lease/100 + 2 */
  int64_t recheck_ms; /**< a waiter looks again after this; 0: the client's */
  void (*on_lost)(lk_lock *lock, const lk_lost_event *event, void *user); /**< once per hold */
  void *user;
  int64_t token_ttl_ms; /**< LK_FENCED: the counter of tokens expires this long after the last one,
                             1,000 to LK_TOKEN_TTL_MAX_MS, where no Redisson client uses the name;
                             0: never */
  lk_wait_mode wait_mode;
  int64_t handoff_limit; /**< so many times in a row a release hands the hold straight to the next
                              waiter of this process, up to 1,000; 0: 16; -1: never. Where the
                              server counts no other listeners, sixteen times as often */
  int64_t heartbeat_ms; /**< LK_FAIR, and LK_WRITE with preference: a waiter without a heartbeat for
                              so long is passed over, 1,000 to 60,000; at most a quarter of the lease;
                              0: 5,000. A fair lock that was handed over is its heir's for so long,
                              until the first renewal, at a third of it */
  bool prefer_writers;  /**< LK_WRITE: while it waits nobody starts to read */
  int64_t
      min_replicas; /**< so many replicas must have a hold, and each renewal, before it counts, up
                             to LK_REPLICAS_MAX; 0: the client's */
  int64_t replicas_ms; /**< how long they have for it, 1 to 60,000; 0: the client's */
} lk_lock_options;

#define LK_LOCK_OPTIONS_INIT                                                                       \
  { sizeof(lk_lock_options), 0, false, 0, 0, NULL, NULL, 0, LK_WAIT_MESSAGE, 0, 0, false, 0, 0 }

/**
 * Can this be the name of a lock? All keys of one lock must share a hash slot.
 *
 * @return LK_OK; LK_NAME (empty, longer than LK_NAME_MAX, or braces that are no closed {tag})
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_name_check(const char *name, lk_error *error);

/**
 * Name a lock. Nothing is sent. Handles of the same name and kind share their holds.
 *
 * @param name     1 to 512 bytes; if it has a `{`, then a closed, non-empty {tag}
 * @param options  NULL for the defaults
 * @return LK_OK; LK_NAME, LK_INVALID, LK_VERSION, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_lock_open(lk_client *client, lk_kind kind, const char *name,
                              const lk_lock_options *options, lk_lock **out, lk_error *error);
/** Close a handle. Holds stay, and stay renewed; no callback of this handle begins any more. It waits for one
 * that runs on another thread, unless it is called in a callback. NULL is fine. @since 0.1.0 */
LK_API void lk_lock_close(lk_lock *lock);

/**
 * Take the lock, or re-enter it.
 *
 * @param caller   NULL: this thread
 * @param wait_ms  LK_FOREVER; 0: try once
 * @return LK_OK; LK_BUSY (wait 0); LK_TIMEOUT; LK_LOST (the caller's hold was lost: release it first);
 *         LK_REENTRY (mutex); LK_UPGRADE (write); LK_QUEUE_FULL (fair); LK_UNSURE (no reply; it is
 *         released as soon as it turns out to be held); LK_UNREACHABLE and the other statuses of
 *         lk_eval(). While it waits, trouble that may pass is tried again until the wait ends.
 * @blocks wait_ms, plus command_ms for the call under way
 * @threads any
 * @after-io whatever is returned but LK_OK, the caller does not hold a further level
 * @since 0.1.0
 */
LK_API lk_status lk_lock_acquire(lk_lock *lock, lk_caller *caller, int64_t wait_ms,
                                 lk_error *error);

/**
 * Release one hold count. Whatever is returned but LK_NOT_HELD and LK_INVALID, the level is gone.
 *
 * @param caller  NULL: this thread
 * @return LK_OK (held to the end); LK_NOT_HELD (never held; nothing was sent); LK_LOST (it was lost
 *         before: the work may have run unprotected); LK_UNSURE (no reply: released now or with its
 *         lease, the library goes on trying); LK_DENIED, LK_AUTH and the other refusals of lk_eval();
 *         LK_CLOSED, LK_FORKED, LK_INVALID; LK_NOMEM (lk_lock_hold_count() says if the count fell)
 * @blocks command_ms
 * @threads any
 * @after-io on any status but LK_OK and LK_LOST the lock expires with its lease at the latest. After
 *           LK_UNSURE, LK_DENIED, LK_AUTH and what is retriable the library goes on trying meanwhile
 * @since 0.1.0
 */
LK_API lk_status lk_lock_release(lk_lock *lock, lk_caller *caller, lk_error *error);

/**
 * Release the whole hold, but leave the lock taken for a while: for work that others are not to do again so
 * soon. Kinds LK_LOCK and LK_FENCED. Nobody of this process is handed the lock, and nobody renews what is
 * left of it: under the owner's name with ":kept" behind it, it ends by itself.
 *
 * @param caller   NULL: this thread
 * @param rest_ms  the lock is free after this, counted from when the server runs the call;
 *                 LK_LEASE_MIN_MS to LK_LEASE_MAX_MS
 * @return as lk_lock_release(); LK_INVALID also for other kinds
 * @blocks command_ms
 * @threads any
 * @after-io LK_UNSURE: the lock ends with its lease, or with the rest; it is not released in the
 *           background
 * @since 0.1.0
 */
LK_API lk_status lk_lock_release_after(lk_lock *lock, lk_caller *caller, int64_t rest_ms,
                                       lk_error *error);

/**
 * lk_lock_acquire() without waiting. Any number of them may wait, and none needs a thread.
 *
 * @param caller  not NULL: one for each task; it is in this call until `done` is called
 * @param done    gets the statuses of lk_lock_acquire(), LK_CANCELLED, or LK_CLOSED
 * @param user    handed to it
 * @param out     may be NULL; the operation, valid until `done` has returned
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @after-io as lk_lock_acquire()
 * @since 0.1.0
 */
LK_API lk_status lk_lock_acquire_async(lk_lock *lock, lk_caller *caller, int64_t wait_ms,
                                       lk_done_fn done, void *user, lk_op **out, lk_error *error);
/**
 * lk_lock_release() without waiting.
 *
 * @param caller  not NULL
 * @param done    gets the statuses of lk_lock_release()
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @after-io as lk_lock_release()
 * @since 0.1.0
 */
LK_API lk_status lk_lock_release_async(lk_lock *lock, lk_caller *caller, lk_done_fn done,
                                       void *user, lk_error *error);

/** How long the hold is certain to last: 0 or less, do not act. No network. @since 0.1.0 */
LK_API int64_t lk_lock_remaining_ms(lk_lock *lock, lk_caller *caller);
/**
 * The lease that the hold has now, in ms: what the server granted last, by the acquire or by a renewal. A
 * program that stops work some part of the lease before the hold ends takes that part of this, and not of
 * lease_ms. It is the handle's lease_ms (30,000 unless given) but in one case: a fair lock that was handed to a
 * waiter has its heartbeat_ms (5,000 unless given; a quarter of the lease at most) until its first renewal,
 * which is due within half of that.
 *
 * @return 100 to 86,400,000; 0: the caller holds nothing, or its hold is lost
 * @blocks no; no network
 * @threads any
 * @after-io a renewal whose reply is lost does not count: its lease is not known to be granted
 * @since 0.1.0
 */
LK_API int64_t lk_lock_lease_ms(lk_lock *lock, lk_caller *caller);
/** The caller's hold count, 0 if it holds nothing; a lost hold counts until it is released.
 * @since 0.1.0 */
LK_API int64_t lk_lock_hold_count(lk_lock *lock, lk_caller *caller);
/**
 * The fencing token of the caller's hold: higher than those of all holds before it, while the server's
 * clock is not set back. Hand it to the resource with each write; 0 if the kind has none or nothing is
 * held. No network. @since 0.1.0
 */
LK_API int64_t lk_lock_token(lk_lock *lock, lk_caller *caller);
/** Why the caller's hold was lost; LK_LOST_NOT while it is not. @since 0.1.0 */
LK_API lk_lost_reason lk_lock_lost(lk_lock *lock, lk_caller *caller);
/**
 * The owner's name on the wire, NUL-terminated; "" if the caller holds nothing.
 * @param buffer  takes the name as far as it fits; LK_OWNER_MAX + 1 bytes are always enough
 * @param size    of the buffer
 * @return its length
 * @since 0.1.0
 */
LK_API size_t lk_lock_owner(lk_lock *lock, lk_caller *caller, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
