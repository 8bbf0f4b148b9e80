/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a job: SIGTERM, then SIGKILL until nothing of it is left. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>

#include "exec.h"

enum {
  LEAST_MS = 100,       /* before the deadline, SIGKILL is sent at the latest */
  QUICK_ROUNDS = 100,   /* of SIGKILL, 1 ms apart while there is something to kill */
  SLOW_MS = 20,         /* else */
  HELPLESS_MS = 250,    /* when no round can change anything */
  HELPLESS_ROUNDS = 10, /* so many in a row had nothing to kill */
};

void job_end_begin(job_ending *ending, int64_t grace_ms) {
  const int64_t kill_at_ms = lk_now_ms() + grace_ms;
  if (!ending->begun) *ending = (job_ending){.begun = true, .kill_at_ms = kill_at_ms};
  if (kill_at_ms < ending->kill_at_ms) ending->kill_at_ms = kill_at_ms;
}

static int64_t kill_at_ms(const job_ending *ending, int64_t deadline_ms, int64_t lead_ms) {
  const int64_t latest_ms = deadline_ms - (lead_ms / 2 > LEAST_MS ? lead_ms / 2 : LEAST_MS);
  return latest_ms < ending->kill_at_ms ? latest_ms : ending->kill_at_ms;
}

/* Once: to many programs a second SIGTERM means that they are to end at once. Stopped, a process would not act on it: it
 * is followed by SIGCONT. */
static void tell(job_ending *ending, pid_t command, pid_t spared) {
  ending->told = true;
  ending->sweep = job_signal(SIGTERM, command, spared);
}

int64_t job_end_step(job_ending *ending, int64_t deadline_ms, int64_t lead_ms, pid_t command,
                     pid_t spared) {
  const int64_t latest_ms = kill_at_ms(ending, deadline_ms, lead_ms);
  /* When it is too late for that, nothing that is stopped goes on. */
  if (!ending->told && lk_now_ms() < latest_ms) tell(ending, command, spared);
  const int64_t left_ms = latest_ms - lk_now_ms();
  if (left_ms > 0) return left_ms;
  if (command) kill(command, SIGKILL);
  const int64_t before_ms = lk_now_ms();
  ending->sweep = job_signal(SIGKILL, 0, spared);
  const int64_t took_ms = lk_now_ms() - before_ms;
  ending->rounds++;
  ending->helpless = ending->sweep.living == ending->sweep.refused ? ending->helpless + 1 : 0;
  if (job_end_is_helpless(ending)) return HELPLESS_MS;
  /* They have to get the processor to end. */
  if (ending->rounds < QUICK_ROUNDS && !ending->helpless) return took_ms + 1;
  return took_ms + SLOW_MS;
}

bool job_end_is_helpless(const job_ending *ending) { return ending->helpless >= HELPLESS_ROUNDS; }
