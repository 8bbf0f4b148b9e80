/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds something: what a waiter can find out about its holder. */
#ifndef LATCHKEY_WHO_H
#define LATCHKEY_WHO_H

#include "latchkey.h"

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
  int64_t holders; /**< how many hold it; 0: nobody does, and the rest is 0 */
  int64_t left_ms; /**< what is left of the lease; -1: endless */
  int64_t waiting; /**< clients that wait for its release, of this application too; -1: not known */
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

#ifdef __cplusplus
}
#endif

#endif
