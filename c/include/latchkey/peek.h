/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short reading of many keys, for tools that search a keyspace: the commands travel together, so that
 * a thousand keys cost about as many round trips as one.
 */
#ifndef LATCHKEY_PEEK_H
#define LATCHKEY_PEEK_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_PEEK_MAX 1000 /**< most keys of one call */

/**
 * Send one reading command for each of many keys: EXISTS, HLEN, HRANDFIELD, LLEN, PTTL, STRLEN, TYPE
 * or ZCARD. None of them takes the server longer the larger the key is.
 *
 * @param command  one of these, in capitals
 * @param keys     n of them, at most LK_PEEK_MAX
 * @param out      n replies in the order of the keys, each to be freed with lk_reply_free(). An
 *                 LK_REPLY_ERROR is about its key alone: it is of another type (WRONGTYPE), the user
 *                 may not read it (NOPERM), or its slot is not served now (CLUSTERDOWN, TRYAGAIN).
 *                 NULL: the slot is on its way, and no server could be asked for the key
 * @return LK_OK: every key was answered so; LK_INVALID; else the status of the first that was not, and
 *         no replies: as lk_command()
 * @blocks command_ms
 * @threads any
 * @after-io nothing was changed
 * @since 0.1.0
 */
LK_API lk_status lk_peek(lk_client *client, const char *command, const lk_bytes *keys, size_t n,
                         lk_reply **out, lk_error *error);

#ifdef __cplusplus
}
#endif

#endif
