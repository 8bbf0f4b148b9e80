/* SPDX-License-Identifier: Apache-2.0 */
/* What a client tells those who ask it: its holds, and what its calls wait for. */
#ifndef LK_TELL_H
#define LK_TELL_H

#include "harness/ask.h"

/* Before a client's first lock or counter: if it answers, it tells of these. */
void lk_tell_of(lk_client *client);

#endif
