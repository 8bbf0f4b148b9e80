/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of channels: what is said on them, and what is heard. In the channels' mutex, all of it. */
#ifndef LK_LINK_H
#define LK_LINK_H

#include "net/channel.h"

/* A channel that is sent to and fro is asked for again after this. */
enum { LK_ASTRAY_US = 50 * 1000 };

/* The link to this node; NULL without memory. */
lk_link *lk_link_to(lk_channels *channels, lk_node *node) LK_REQUIRES(lk_channels_held);
/* The answer that is to come, which nobody minds; NULL: no memory. */
awaited *lk_link_say(const lk_channel *channel, bool leaves) LK_REQUIRES(lk_channels_held);
/* The same, and the channel waits for it. false: no memory. */
bool lk_link_ask(lk_channel *channel, bool leaves) LK_REQUIRES(lk_channels_held);
/* A connection that has come or gone concerns all its channels, and nothing else does. After a loss each
 * is asked for again, and its confirmation wakes its listeners: messages may have been missed. */
void lk_link_notice(lk_link *link) LK_REQUIRES(lk_channels_held);
/* It is of nobody any more. */
void lk_link_free(lk_link *link) LK_REQUIRES(lk_channels_held);

#endif
