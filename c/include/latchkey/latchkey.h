/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latchkey: distributed locks on Redis and Valkey, as named and versioned scripts.
 *
 * The scripts hold the logic; this library finds them by name, renews leases, and waits. This header is
 * what a program with locks needs, and says what holds for all of them:
 *
 *   status.h      what a call came to
 *   client.h      connections, scripts by name, leases, messages
 *   lock.h        locks
 *   counters.h    semaphores, permits and latches: to be included besides
 *   fence.h       what a resource does with a token: besides
 *   multilock.h   several locks as one: besides
 *   period.h      once in each hour or day: besides
 *   who.h         who holds and who waits: besides
 *
 * Units       Every duration is an int64_t in milliseconds and its name ends in _ms. LK_FOREVER (-1)
 *             waits without end, 0 tries once.
 * Strings     A `const char *` is NUL-terminated text; an lk_bytes is any bytes with their length.
 *             What is passed in is copied before the call returns.
 * Errors      Every call that can fail returns an lk_status. The last argument, an lk_error that the
 *             caller owns, takes the detail and may be NULL. Out-parameters are NULL or 0 on failure, unless
 *             a function says what a status leaves in them.
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
 *   | lk_reply, lk_error     | their owner, one thread at a time                                 |
 *   | lk_op                  | lk_op_cancel(): any thread; what it came to: inside its callback  |
 *   | lk_answers             | any number of threads at once                                     |
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

#include "client.h"
#include "lock.h"
#include "status.h"

#endif
