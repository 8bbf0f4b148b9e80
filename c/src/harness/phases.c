/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/phases.h"

#include <stddef.h>
#include <stdlib.h>

/* tools/lib/phases.lua reads one row from each line. */
/* clang-format off */
enum {
  ACQUIRES = LK_ACQUIRES, COUNTS = LK_COUNTS, WATCHES = LK_WATCHES,
  IN_LINE = 1 << LK_PHASE_IN_LINE, CALLING = 1 << LK_PHASE_CALLING, PAUSING = 1 << LK_PHASE_PAUSING,
  CONFIRMING = 1 << LK_PHASE_CONFIRMING, GIVING_BACK = 1 << LK_PHASE_GIVING_BACK,
  LISTENING = 1 << LK_PHASE_LISTENING, SLEEPING = 1 << LK_PHASE_SLEEPING, ENDED = 1 << LK_PHASE_ENDED,
  HANDED = LK_HAPPENED_HANDED, TURN = LK_HAPPENED_TURN, ANSWER = LK_HAPPENED_ANSWER,
  NEWS = LK_HAPPENED_NEWS, TIMER = LK_HAPPENED_TIMER, QUIT = LK_HAPPENED_QUIT, OVER = LK_HAPPENED_OVER
};

static const struct {
  unsigned machines, phases, happened;
  lk_next next;
} rows[] = {
  /* A lease that has ended is not kept by an answer that comes now. */
  {WATCHES, SLEEPING | CALLING | CONFIRMING, OVER, LK_NEXT_LOSE},
  {WATCHES, SLEEPING, TIMER, LK_NEXT_SEND},
  {ACQUIRES | COUNTS | WATCHES, CALLING, ANSWER, LK_NEXT_HEAR},
  /* A hold that was handed over is there before anything else is looked at. */
  {ACQUIRES, IN_LINE | LISTENING | SLEEPING, HANDED, LK_NEXT_TAKE_OVER},
  {ACQUIRES | COUNTS, IN_LINE | LISTENING | SLEEPING, QUIT, LK_NEXT_QUIT},
  /* Before the end of its wait: who does not wait has one try. */
  {ACQUIRES | COUNTS, IN_LINE, TURN, LK_NEXT_BEGIN},
  {ACQUIRES | COUNTS, IN_LINE | LISTENING | SLEEPING, OVER, LK_NEXT_GIVE_UP},
  {ACQUIRES | COUNTS, IN_LINE, NEWS | TIMER, LK_NEXT_SLEEP_ON},
  {ACQUIRES | COUNTS, LISTENING | SLEEPING, NEWS | TIMER, LK_NEXT_LOOK},
  /* Kinds that queue at the server have looked before their turn. */
  {ACQUIRES, LISTENING | SLEEPING, TURN, LK_NEXT_LOOK},
  /* What was sent is awaited, whatever else happens: its answer says what the server holds. */
  {ACQUIRES | WATCHES, CONFIRMING, ANSWER, LK_NEXT_CONFIRM},
  {ACQUIRES, GIVING_BACK, ANSWER, LK_NEXT_REFUSE},
  {ACQUIRES | COUNTS, CALLING, TURN | NEWS | TIMER | QUIT, LK_NEXT_STAY},
  {ACQUIRES, CONFIRMING | GIVING_BACK, TURN | NEWS | TIMER | QUIT, LK_NEXT_STAY},
  {WATCHES, CALLING | CONFIRMING, TIMER, LK_NEXT_STAY},
  {COUNTS, PAUSING, QUIT, LK_NEXT_HEAR},
  {COUNTS, PAUSING, TIMER, LK_NEXT_SEND},
  {COUNTS, PAUSING, TURN | NEWS, LK_NEXT_STAY},
  /* An answer that comes late finds the lease lost, or the watch closed. */
  {WATCHES, ENDED, ANSWER | TIMER, LK_NEXT_STAY},
};
/* clang-format on */

lk_next lk_phase_next(lk_machine machine, lk_phase phase, unsigned happened) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if ((rows[i].machines & (unsigned)machine) && (rows[i].phases & 1U << phase) &&
        (rows[i].happened & happened)) {
      return rows[i].next;
    }
  }
#ifdef LK_STRICT
  abort();
#endif
  return LK_NEXT_STAY;
}
