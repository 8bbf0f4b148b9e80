/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permits: a semaphore whose permits have ids and leases. The ids are chosen here, so a try whose reply
 * was lost is repaired by the next with the same ids, and what may have been taken for nobody is
 * released by its ids.
 */
#ifndef LK_PERMIT_H
#define LK_PERMIT_H

#include "harness/watch.h"
#include "locks/counting.h"

struct lk_permits {
  lk_counter counter;
  atomic_size_t refs; /* the application's, and one for each lk_permit */
  int64_t lease_us;
  lk_digits lease;
  int64_t drift_ms; /* 0: by the rule */
  bool renews;
  void (*on_lost)(lk_permit *permit, lk_lost_reason reason, void *user);
  void *user;
};

struct lk_permit {
  lk_permits *from;
  lk_permit *next, **at; /* among those of a client that answers; `at` NULL: it is not */
  atomic_uint refs;      /* the application's, and its watch's */
  lk_watch *watch;
  lk_counting release;      /* has the application's reference */
  lk_lost_reason lost;      /* before that began */
  int64_t since_us;         /* its grant was read */
  struct lk_origin *origin; /* of its span; NULL: nobody wants one */
  size_t count;
  lk_bytes ids[LK_PERMITS_AT_ONCE];
  char bytes[LK_PERMITS_AT_ONCE * LK_PERMIT_ID_SIZE];
};

/* With random ids, and one reference. LK_NOMEM, LK_SYSTEM. */
lk_status lk_permit_new(lk_permits *permits, size_t count, lk_permit **out, lk_error *error);
/* Other ids, of one that is not taken. false: the system has no random numbers to give. */
bool lk_permit_choose_ids(lk_permit *permit);
void lk_permit_drop(lk_permit *permit);
/* It is not held any more, as far as answers are concerned. */
void lk_permit_unlist(lk_permit *permit);
/* The arguments that its scripts share: two. */
void lk_permit_values(const lk_permit *permit, lk_value values[2]);
/* How long one try may take. */
int64_t lk_permit_patience_us(const lk_permits *permits);
/* It was granted by a call that was sent then: from now on it is renewed. */
lk_status lk_permit_watch(lk_permit *permit, int64_t sent_us, lk_error *error);
/* Its first id in hexadecimals, as spans and holders name it. */
void lk_permit_title(const lk_permit *permit, char out[2 * LK_PERMIT_ID_SIZE + 1]);
/* Its ids are released in the background until that is answered, or until their leases have ended. */
void lk_permit_undo(const lk_permit *permit);

#endif
