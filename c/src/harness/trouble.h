/* SPDX-License-Identifier: Apache-2.0 */
/* Why those who want something do not get on: what the last answer to one of them was, if it was trouble. */
#ifndef LK_TROUBLE_H
#define LK_TROUBLE_H

#include "harness/client.h"

/* What a try came to. Trouble that may pass is kept, with its detail (may be NULL); anything else ends it. */
void lk_trouble_note(lk_client *client, lk_status status, const lk_error *said);

#endif
