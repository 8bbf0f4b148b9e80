/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: its connections, scripts by name, leases that are kept, and waiting for messages. Locks are made
 * of this, and so may be whatever has scripts of its own.
 *
 * Units, strings, errors, time, threads and callbacks are those of <latchkey/latchkey.h>.
 */
#ifndef LATCHKEY_CLIENT_H
#define LATCHKEY_CLIENT_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_FOREVER ((int64_t)-1) /**< wait without end */
#define LK_CONNECTIONS_MAX 16    /**< most shared connections to one node */
#define LK_REPLICAS_MAX 16       /**< most replicas that can be asked for */

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
  size_t size;      /**< sizeof(lk_client_options), set by the initializer */
  const char *name; /**< CLIENT SETNAME: printable ASCII, no blanks; default: lk_client_name() */
  const char *user; /**< replaces the URL's user */
  const char *password; /**< replaces the URL's password */
  int64_t connect_ms; /**< deadline of a connect with its hand-shake, 1 to 60,000; default 2,000 */
  int64_t command_ms; /**< deadline of one call, 1 to 60,000; default 1,000 */
  int64_t recheck_ms; /**< a waiter rechecks after this, 100 to 300,000; default 30,000 */
  const char *script_dir; /**< has <family>/<verb>.lua, at most 8 deep, that extend or override */
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
                       server does not have is loaded. Older ones are replaced by lk_load(), and by an
                       open that reaches the server (unless no_load); by calls they are not */
  bool lazy; /**< open also while the server cannot be reached or is not ready, after half a second
                       at most: calls connect, and load what they need */
  int64_t min_replicas; /**< of locks whose options give none; 0: do not wait for replicas */
  int64_t replicas_ms;  /**< of locks whose options give none, 1 to 60,000; default 500 */
  int64_t
      connections; /**< to each node, shared by all threads, 1 to LK_CONNECTIONS_MAX; default 0: one,
                             and a second where the server is near and threads have waited for each
                             other's calls 1,000 times in a second. The calls of one lock stay in order */
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
  int64_t process; /**< in the default name, from 0 on; 0: this process. For a helper that locks for
                             another one, which is the one to be found */
} lk_client_options;

/* clang-format off */
#define LK_CLIENT_OPTIONS_INIT                                                                     \
  {                                                                                                \
    sizeof(lk_client_options), NULL, NULL, NULL, 0, 0, 0, NULL, LK_ON_DISPATCH, false, 0, NULL,    \
        NULL, false, false, 0, 0, 0, 0, NULL, false, NULL, 0                                       \
  }
/* clang-format on */

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
 *         LK_UNREACHABLE, LK_UNSURE (connected, but no reply came), LK_LOADING, LK_AUTH, LK_DENIED, LK_TLS,
 *         LK_LOCAL, LK_CLUSTERDOWN, LK_SERVER, LK_NOMEM, LK_SYSTEM, and what else a server refuses lk_load() with
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
 * @blocks until calls on other threads have returned: command_ms for what is under way, and as long for what
 *         is released then; with min_replicas replicas_ms more
 * @threads any, but not from a callback on the background thread, where it does nothing, as it does
 *          in a forked child
 * @since 0.1.0
 */
LK_API void lk_client_close(lk_client *client);

/**
 * The folder of the server that `local:` means: $LATCHKEY_LOCAL_DIR, else /run/user/<user>/latchkey where the
 * system has made that user's, else $XDG_RUNTIME_DIR/latchkey where that is the user's, else a folder per user in
 * $TMPDIR where the user may write to it, or in /tmp.
 * Without $LATCHKEY_LOCAL_DIR it is another of these where a server runs already. It is made when it is missing; no
 * server starts.
 *
 * @param buffer  takes the path, NUL-terminated
 * @param size    of the buffer
 * @return LK_OK; LK_LOCAL (not a folder of this user's alone), LK_INVALID (buffer NULL or too small)
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
 * A descriptor that is readable while callbacks are due, or while a reply has come that lk_client_dispatch() is to
 * read; for poll(), epoll or an event loop. It belongs to the client. -1 after fork.
 * @threads any @since 0.1.0
 */
LK_API int lk_client_fd(lk_client *client);

/**
 * Read the replies that have come, and run the callbacks that are due, on this thread. What they start goes out
 * together, at most 16 callbacks at a time: when these have returned, sleep inside a call of the library's, or
 * dispatch again. Where nobody dispatches, the background thread reads within 10 ms. The on_lost of one handle
 * comes once at a time: what becomes due while it runs on another thread follows there or here, and this call
 * does not wait for it. A callback that dispatches again runs what is due inside itself, also of its own handle.
 * @return how many ran; 0 also where a reply ended nothing, or another thread was faster; 0 in a forked child
 * @blocks as long as the callbacks do; where the server is near, it busy-polls for replies to what they have
 *         started: at most 200 us for each, 500 us in all, unless poll_us says otherwise
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
 * SCRIPT LOAD every script, on every master. With `functions`: FUNCTION LOAD those that a master does not have, and
 * replace older ones.
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
 * @param keys    nkeys of them, at most 1,024, in the order of the script's header
 * @param args    nargs of them, at most 1,024, in the order of the script's header
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
 * Commands that block or change the connection (SUBSCRIBE, MULTI, SELECT, BLPOP, CLIENT SETNAME, SCRIPT DEBUG ...)
 * are LK_INVALID.
 *
 * @param argv  the command and its arguments, argc of them, 1 to 1,024
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
 * valid until it returns. Where status is LK_OK, error is NULL or says so; else it is there, and says why.
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
 * have returned before `done` does. Further calls do nothing. An lk_eval_async() is not ended by it: that ends
 * within command_ms. NULL is fine.
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

/** Which lease to renew, and how; start from LK_WATCH_SPEC_INIT. */
typedef struct lk_watch_spec {
  size_t size;          /**< sizeof(lk_watch_spec), set by the initializer */
  const char *script;   /**< replies {1} renewed, {-1} or {-1, left_ms} not the caller's; NULL: the
                             lease is not renewed, only its end is reported */
  const lk_bytes *keys; /**< nkeys of them */
  size_t nkeys;
  const lk_bytes *args; /**< nargs of them, the lease included */
  size_t nargs;
  int64_t lease_ms; /**< what each renewal grants, 50 to 86,400,000; renewed at every third of it */
  int64_t since_ms; /**< lk_now_ms() from before the call was sent that was granted the lease */
  int64_t drift_ms; /**< clock drift over one lease, less than that; 0: lease/100 + 2 */
  void (*on_lost)(lk_watch *watch, lk_lost_reason reason,
                  void *user); /**< called once; may be NULL */
  void *user;
} lk_watch_spec;

/* clang-format off */
#define LK_WATCH_SPEC_INIT                                                                         \
  { sizeof(lk_watch_spec), NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL }
/* clang-format on */

/**
 * Renew a lease by running its renew script at every third of it, until closed or lost.
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
/** How long the lease is valid: 0 or less, do not act on it. No network. @since 0.1.0 */
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
 * @param channel  not empty; on a cluster SSUBSCRIBE listens to it, unless lk_publish_verb() says PUBLISH
 * @return LK_OK; LK_INVALID, LK_UNREACHABLE, LK_AUTH, LK_DENIED, LK_TLS, LK_SERVER, LK_CLOSED, LK_FORKED, LK_NOMEM
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
 *         have been missed, or of a cluster before 7.0 another master has the slot of its name), LK_TIMEOUT, LK_CLOSED, LK_FORKED, LK_INVALID; else why the channel is listened to no
 *         more: LK_DENIED, LK_AUTH, LK_TLS, LK_SERVER, LK_NOMEM, or another that is not retriable. Each further
 *         call says so at once, without sleeping, until the channel is listened to again: a loop ends there, or
 *         sleeps, closes this wait, and opens another
 * @blocks timeout_ms
 * @threads one at a time per wait
 * @after-io nothing is sent; a connection that is lost meanwhile is restored, which is LK_OK, unless the server
 *           refuses that
 * @since 0.1.0
 */
LK_API lk_status lk_wait_for(lk_wait *wait, int64_t timeout_ms, lk_error *error);
/** Stop listening. Not beside lk_wait_for() of this wait; lk_client_close() ends that. NULL is fine.
 * @since 0.1.0 */
LK_API void lk_wait_close(lk_wait *wait);

#ifdef __cplusplus
}
#endif

#endif
