/* SPDX-License-Identifier: Apache-2.0 */
/* Something that is done again and again on a thread of its own. */
#ifndef LK_TICKER_H
#define LK_TICKER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lk_ticker lk_ticker;

/* The first call comes after every_us, each later one so long after the end of the one before. 0 or an errno. */
int lk_ticker_start(lk_ticker **out, int64_t every_us, void (*tick)(void *user), void *user);
/* Is this called by its own tick? */
bool lk_ticker_is_me(const lk_ticker *ticker);
/* Waits for a call that runs; not from its own tick. */
void lk_ticker_stop(lk_ticker *ticker);

#endif
