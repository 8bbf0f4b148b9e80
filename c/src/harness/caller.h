/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: a thread by itself (NULL), or a task with an lk_caller; and what it holds. */
#ifndef LK_CALLER_H
#define LK_CALLER_H

#include "harness/client.h"

uint64_t lk_caller_id(const lk_caller *caller);
/* The client that a caller is of. */
lk_client *lk_caller_client(const lk_caller *caller);
/* Enters the client for one call of this caller: also LK_INVALID if it is another client's, or in
 * another call. */
lk_status lk_caller_enter(lk_client *client, lk_caller *caller, lk_error *error);
void lk_caller_leave(lk_client *client, lk_caller *caller);
/* The caller may begin its next call, though this one has not left the client. NULL is fine. */
void lk_caller_release(lk_caller *caller);
/* It lives on for who is told of a loss, though it is freed meanwhile. NULL is fine. */
void lk_caller_keep(lk_caller *caller);
void lk_caller_drop(lk_caller *caller);

/* Something that a caller holds. */
typedef struct lk_held lk_held;
typedef struct lk_held_type {
  void (*keep)(lk_held *held); /* one more reference; inside the caller's mutex */
  void (*let_go)(
      lk_held *held); /* the caller is freed: it ends with its lease, and the reference goes */
} lk_held_type;
struct lk_held {
  const lk_held_type *type;
  lk_held *next, **at; /* guarded by the caller's mutex */
};
/* Inside the client's mutex of what is held: it is the caller's, and no more. What one caller holds may be of
 * several clients, so a mutex of the caller's own, taken last, guards it. NULL is fine. */
void lk_caller_add(lk_caller *caller, lk_held *held);
void lk_caller_remove(lk_caller *caller, lk_held *held);

#endif
