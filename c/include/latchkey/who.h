/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds something: what a waiter can find out about its holder. */
#ifndef LATCHKEY_WHO_H
#define LATCHKEY_WHO_H

#include "lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_WHO_NAME_MAX 191    /**< longest name of a client that is returned, bytes */
#define LK_WHO_ADDRESS_MAX 127 /**< longest address, bytes */
#define LK_WHO_WAITERS_MAX                                                                         \
  16 /**< where more clients wait, no list of connections is read: it has a line for each */

/** What lk_who() finds. Of several holders the first that the server names. */
typedef struct lk_holder {
  size_t size;     /**< sizeof(lk_holder), set by the caller */
  int64_t holders; /**< how many hold it; 0: nobody does, waiting is -1, and the rest is 0 */
  int64_t left_ms; /**< what is left of the lease; -1: endless */
  int64_t waiting; /**< clients that wait for its release, of this application too; -1: not known.
                        But for a fair lock those of all databases: it is the channel's listeners */
  int64_t connected_s; /**< how long the holder's client has been connected */
  lk_status unnamed;   /**< why `client` is empty: LK_OK: the owner is not latchkey's, or its client
                            has gone; LK_DENIED: this user may not read the list of connections;
                            LK_BUSY: more than LK_WHO_WAITERS_MAX wait; else what failed */
  char owner[LK_OWNER_MAX + 1];         /**< its name on the wire; a permit's id in hexadecimals */
  char client[LK_WHO_NAME_MAX + 1];     /**< of lk_client_name(): "latchkey:web-3:4711:1b9d6bcd" */
  char address[LK_WHO_ADDRESS_MAX + 1]; /**< from where it is connected */
} lk_holder;

/**
 * Look who holds a lock or a permit. Three commands at most: the kind's inspect script; PUBSUB NUMSUB, how many
 * wait; and, where few do, CLIENT LIST, which says whose the owner's name is.
 *
 * @param kind  0: permits
 * @param name  of the lock, 1 to 512 bytes
 * @param out   its size is set by the caller, as for lk_client_stats()
 * @return LK_OK, also when nobody holds it; LK_NAME, LK_INVALID, LK_VERSION (no size), LK_WRONGTYPE, LK_CLOSED,
 *         LK_FORKED; else as lk_eval()
 * @blocks three times command_ms
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_who(lk_client *client, lk_kind kind, const char *name, lk_holder *out,
                        lk_error *error);

#define LK_WAITS_MAX 32 /**< most names that are reported at once */

/** For what a client waits, and why. Valid during the callback. */
typedef struct lk_wait_event {
  const char *name;    /**< of the lock or the permits */
  lk_kind kind;        /**< 0: permits */
  int64_t waited_ms;   /**< of the call that has waited longest for it */
  const lk_error *why; /**< status LK_BUSY: another holds it; else what lk_client_trouble() says:
                                LK_READONLY while a fail-over goes on, LK_OOM, LK_UNREACHABLE ... */
  const lk_holder *holder; /**< with LK_BUSY, as lk_who() saw it last; NULL: that is not known */
} lk_wait_event;

#define LK_TRACE_ID_LEN 32 /**< hexadecimals of a trace's id */
#define LK_SPAN_ID_LEN 16  /**< and of a span's */

/** A wait that has ended, or a hold that has: what OpenTelemetry calls a span. Valid during the callback. */
typedef struct lk_span {
  bool held; /**< a hold, from the grant to its end; false: a wait, from the call to its end */
  const char *name;  /**< of the lock or the permits */
  lk_kind kind;      /**< 0: permits */
  const char *owner; /**< its name on the wire; of a permit its first id in hexadecimals. Of a wait
                              that came to nothing, the last that it asked under */
  int64_t token;     /**< of a fenced lock that was granted; 0: none */
  const char *trace_id;  /**< LK_TRACE_ID_LEN hexadecimals */
  const char *span_id;   /**< LK_SPAN_ID_LEN hexadecimals; of a hold lk_span_id() of its owner */
  const char *parent_id; /**< what `traceparent` named; "": it is the first of its trace */
  int64_t began_unix_ns; /**< by the clock of the day, as it is when the span is reported */
  int64_t ended_unix_ns;
  lk_status status;    /**< of a wait: what the call came to. Of a hold: what its release came to;
                                LK_CANCELLED: it was let go without one, by a caller or client that closed */
  lk_lost_reason lost; /**< of a hold: why it was lost */
  const lk_holder
      *holder; /**< of a wait of after_ms or more: who had it, as lk_who() saw it last; NULL:
                                that is not known */
} lk_span;

/** Options of lk_waits_open(); start from LK_WAITS_OPTIONS_INIT. 0 takes the default. */
typedef struct lk_waits_options {
  size_t size; /**< sizeof(lk_waits_options), set by the initializer */
  int64_t
      after_ms; /**< report a call that has waited for so long, up to 3,600,000; default 1,000 */
  void (*on_wait)(const lk_wait_event *event, void *user); /**< this or on_span is required */
  void *user;                                              /**< of all three callbacks */
  void (*on_span)(const lk_span *span, void *user); /**< each wait and hold that has ended, within a
                             second: calls that begin after lk_waits_open(), one lk_waits for a client */
  const char *(*traceparent)(
      void *user); /**< NULL, or: the W3C traceparent of what the calling thread does,
                             "00-<trace>-<span>-01". It is asked when a call begins, on its thread and inside
                             a mutex of the client: it calls nothing of the library. The text is copied.
                             A span of zeros: a trace without a parent; NULL, or what is none: a new trace */
} lk_waits_options;

/* clang-format off */
#define LK_WAITS_OPTIONS_INIT                                                                      \
  { sizeof(lk_waits_options), 0, NULL, NULL, NULL, NULL }
/* clang-format on */

typedef struct lk_waits lk_waits;

/**
 * Report for what the client's calls wait, and who has it: once a call has waited for after_ms, when the reason or the
 * holder changes, and each minute. A thread checks once a second which calls of this client wait. It sends nothing until
 * one has waited for after_ms. Then it sends what lk_who() sends: again after 10 s, doubling to 60 s, and 2 s after a
 * message of the lock.
 *
 * Locks of every kind and permits are reported. Semaphores and latches are not, since nobody holds them
 * (docs/reference/semaphore.md). Of a multi-lock each member that is waited for is reported by itself.
 *
 * With on_span it also reports each acquire and hold of locks and permits that has ended, as a span of OpenTelemetry.
 * An acquire that re-enters a hold has none. A majority asks its members again and again: those that grant have spans,
 * and those that refuse have none. Of more than 10,000 that have not been reported yet, later ones are dropped.
 *
 * @param options  copied
 * @param out      to be closed with lk_waits_close(), before or after the client
 * @return LK_OK; LK_INVALID (no callback, after_ms out of range), LK_EXISTS (another has on_span), LK_VERSION, LK_CLOSED,
 *         LK_FORKED, LK_NOMEM, LK_SYSTEM (no thread)
 * @blocks no; on_wait and on_span run on the thread of this object. They may call anything but
 *         lk_waits_close() of the same object and lk_client_close()
 * @threads any
 * @after-io nothing is changed on the server
 * @since 0.1.0
 */
LK_API lk_status lk_waits_open(lk_client *client, const lk_waits_options *options, lk_waits **out,
                               lk_error *error);
/** Reports the spans that have ended, on this thread; no callback of it runs after this returns. NULL is fine; in a
 * forked child it does nothing.
 * @blocks until a running callback has returned, and calls to the server: three times command_ms
 * @threads any but its own @since 0.1.0 */
LK_API void lk_waits_close(lk_waits *waits);

/**
 * The id of the span of an owner's hold: the same for each who knows the owner's name, such as a waiter that
 * learned it by lk_who(). A program passes it to what it does while it holds the lock, as "00-<trace>-<id>-01".
 *
 * @param owner  of lk_lock_owner(), or a permit's id in hexadecimals
 * @param out    takes LK_SPAN_ID_LEN hexadecimals and the NUL; never all zero
 * @blocks no @threads any @since 0.1.0
 */
LK_API void lk_span_id(const char *owner, char out[LK_SPAN_ID_LEN + 1]);

typedef struct lk_answers lk_answers;

#define LK_ANSWERS_MAX 10000 /**< most answers to one question */

/**
 * Ask all clients that answer (lk_client_options.answers) and wait for something at this moment: what they hold, and
 * what they wait for. It sends SUBSCRIBE and one PUBLISH; each client answers with one PUBLISH.
 *
 * @param wait_ms   how long answers are waited for, 1 to 60,000; less where the server counted who received
 *                  the question, and all have answered
 * @param out       to be freed with lk_answers_free(); NULL unless LK_OK
 * @return LK_OK, also when nobody answered; LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM, LK_DENIED (the user may not
 *         use the channels: latchkey acl --operator); else as lk_command()
 * @blocks wait_ms, and connect_ms and twice command_ms before
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_ask(lk_client *client, int64_t wait_ms, lk_answers **out, lk_error *error);
/** How many came. @threads any @since 0.1.0 */
LK_API size_t lk_answers_count(const lk_answers *answers);
/** How many clients received the question; -1 on a cluster, which does not count them. @since 0.1.0 */
LK_API int64_t lk_answers_expected(const lk_answers *answers);
/** One answer, JSON as docs/reference/ask.md says, written by another client: it may be anything. It lives as long
 * as the answers; empty past the end. @since 0.1.0 */
LK_API lk_bytes lk_answers_at(const lk_answers *answers, size_t index);
/** NULL is fine. @threads any @since 0.1.0 */
LK_API void lk_answers_free(lk_answers *answers);

#ifdef __cplusplus
}
#endif

#endif
