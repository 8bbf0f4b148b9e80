/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call came to: a number with a name, what it means, and what to do about it.
 */
#ifndef LATCHKEY_STATUS_H
#define LATCHKEY_STATUS_H

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

/*
 * X(name, number, retriable, text, what to do). Numbers are part of the ABI and never used again.
 * 1 to 19: outcomes. 20 to 39: trouble that may pass; an acquire may be tried again, what else may: statuses.md.
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
    "give the user what latchkey acl prints; the message names the command, key or channel that "  \
    "it lacks, or the script's line that needs it")                                                \
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
    "raise the limit that was reached: descriptors (ulimit -n), threads (ulimit -u), "             \
    "memory (ulimit -v)")

typedef enum lk_status {
#define LK_STATUS_ENUM(name, number, retriable, text, hint) LK_##name = number,
  LK_STATUS_TABLE(LK_STATUS_ENUM)
#undef LK_STATUS_ENUM
} lk_status;

/* With -fshort-enums a program would lay structures out otherwise than the library does. */
#if defined(LK_CDEF)
#elif defined(__cplusplus) && __cplusplus >= 201103L
static_assert(sizeof(lk_status) == sizeof(int), "latchkey's headers need -fno-short-enums");
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(lk_status) == sizeof(int), "latchkey's headers need -fno-short-enums");
#endif

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

#ifdef __cplusplus
}
#endif

#endif
