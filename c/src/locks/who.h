/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what says who holds something. */
#ifndef LK_WHO_H
#define LK_WHO_H

#include <latchkey/who.h>

/* The connection in a CLIENT LIST whose name says that it is this owner's client; of several the oldest. false:
 * the owner is not latchkey's, or none is. */
bool lk_who_find(lk_bytes list, const char *owner, lk_holder *out);

#endif
