/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call on what is counted, or on anything else that is no lock, from its first copy to its end. While it is
 * unknown whether a copy has run, it goes out again. Where it cannot have yet what it wants, it waits for its
 * channel and looks again. It has no thread (harness/waiter.h); a blocking call makes its first looks on its own and
 * then sleeps until it has ended.
 */
#ifndef LK_COUNTING_H
#define LK_COUNTING_H

#include "harness/line.h"
#include "harness/waiter.h"
#include "locks/counter.h"

typedef struct lk_counting lk_counting;

/* What is wanted. Its functions run as steps; those that may be NULL say so. */
typedef struct lk_want {
  const char *back; /* gives back what is not to be kept; NULL: nothing is taken */
  bool counts;      /* a caller and a seq go with its calls, so none is done twice */
  bool gives;       /* it wants nothing for itself: what it meets keeps nobody waiting */
  bool repairs;     /* a look without an answer is made good by the next */
  /* A look was answered: c->said, and c->reply. LK_OK: it has it; LK_BUSY: not yet, and c->again_ms says when to look
   * at the latest, 0: at once, -1 as it stands: unknown; anything else ends the call. */
  lk_status (*read)(lk_counting *c, lk_error *error);
  /* NULL, or: it was not answered, or with an error; what the call comes to. */
  lk_status (*fail)(lk_counting *c, lk_status status, lk_error *error);
  /* NULL, or makes it the application's. Unless LK_OK it is given back; LK_BUSY: and tried anew. */
  lk_status (*keep)(lk_counting *c, lk_error *error);
  /* NULL, or it was given back for c->reason (LK_BUSY: to be tried anew), and that was answered so: what the
   * call comes to. c->said is read if the answer is LK_OK. */
  lk_status (*gave)(lk_counting *c, lk_status answer, lk_error *error);
  /* NULL, or: it ends, and not with LK_OK. */
  void (*settle)(lk_counting *c);
  void (*ended)(lk_counting *c, lk_status status); /* NULL, or: it has ended */
  void (*destroy)(lk_counting *c);                 /* frees it; NULL: free() does */
} lk_want;

enum { LK_COUNTING_VALUES = 6, LK_COUNTING_NUMBERS = 2 }; /* most of a call */

struct lk_counting {
  lk_waiter base; /* its patience is for one copy; 0 before it begins: as the client has it */
  const lk_want *want;
  const char *look; /* the script that takes it, or says that it cannot be had yet */
  const lk_counter *counter;
  lk_value values[LK_COUNTING_VALUES]; /* its arguments, and room for a caller and a seq */
  size_t nvalues;
  lk_digits digits[LK_COUNTING_NUMBERS];
  size_t ndigits;
  void *into;        /* where it writes what it reads, for a thread that waits */
  int64_t resend_us; /* copies go out for so long; 0: one does. What counts goes by its counter */
  lk_place place;
  int64_t joined_us; /* the line */
  lk_listener listener;

  /* Guarded by the client's mutex. */
  bool heard;     /* the server has confirmed the subscription */
  bool news;      /* a message has come since the last look went out */
  lk_error *deaf; /* it was refused; malloc'ed */

  /* Of whoever runs it. */
  bool gives_back;  /* the call under way does */
  lk_status reason; /* for that */
  lk_seq *seq;      /* of the call under way */
  int64_t until_us; /* no copy goes out after it */
  int64_t copy_us;  /* the pause before the next */
  unsigned copies;  /* of the call under way */
  bool doubt;       /* one of them may have run, or may run still */
  bool stray;       /* the same, of any look of these ids */
  int64_t sent_us;  /* of the copy that was answered */
  int64_t looks_us; /* until when "at once" is believed */
  int64_t again_ms;
  lk_status answer;  /* of the last copy, */
  lk_outcome said;   /* and what it said, if that is LK_OK, */
  redisReply *reply; /* with all of it */
};

/* Zeroed, of so many bytes with what its owner adds behind it; NULL: no memory. Until it begins it is freed by
 * free(). */
lk_counting *lk_counting_new(size_t size, const char *look);
/* One more argument. A number is written down in it; bytes must live as long as it runs. */
void lk_counting_number(lk_counting *c, const char *name, int64_t number);
void lk_counting_bytes(lk_counting *c, const char *name, const char *data, size_t len);

/* Runs it for a thread that waits until it has ended, with told NULL; else for an application that is told of its
 * end. It goes by want->destroy from now on, whatever the status. */
lk_status lk_counting_run(lk_counting *c, const lk_counter *counter, const lk_want *want,
                          int64_t wait_ms, const lk_told *told, lk_error *error);
/* For a thread that waits, of who has no counter: this script with what bears this name. Copies go out for
 * c->resend_us. NULL: LK_NOMEM. */
lk_status lk_counting_once(lk_counting *c, lk_client *client, const char *name, const lk_want *want,
                           lk_error *error);

#endif
