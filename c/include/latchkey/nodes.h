/* SPDX-License-Identifier: Apache-2.0 */
/* The servers behind a client, for tools: one, or the master that Sentinel names, or a cluster's nodes. */
#ifndef LATCHKEY_NODES_H
#define LATCHKEY_NODES_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Look which servers there are. A node stays in the list, and keeps its index; one that
 * has left its cluster may give it to a new one after a minute.
 *
 * @param count  how many
 * @return LK_OK, or why none of them says what there is (count is what was known before)
 * @blocks command_ms
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_nodes(lk_client *client, size_t *count, lk_error *error);

/**
 * One of them; false past the end.
 *
 * @param target  redis://host:port/db; lives as long as the client. May be NULL
 * @param master  does it serve slots (of a cluster), or all keys? May be NULL
 * @threads any
 * @since 0.1.0
 */
LK_API bool lk_node_at(lk_client *client, size_t index, const char **target, bool *master);

/**
 * lk_command() to this node and no other: what it answers with MOVED or ASK is an error.
 *
 * @return as lk_command()
 * @blocks command_ms
 * @threads any
 * @after-io LK_UNSURE: the command may have run, or may still run once; it is never sent twice
 * @since 0.1.0
 */
LK_API lk_status lk_node_command(lk_client *client, size_t index, const lk_bytes *argv, size_t argc,
                                 lk_reply **out, lk_error *error);

/**
 * The verb that scripts publish to this channel with, for their argument of that kind: "SPUBLISH" on a cluster,
 * where lk_wait_open() listens with SSUBSCRIBE; else "PUBLISH", as for a channel whose tag contains a brace.
 * @threads any
 * @since 0.1.0
 */
LK_API const char *lk_publish_verb(lk_client *client, const char *channel);

#ifdef __cplusplus
}
#endif

#endif
