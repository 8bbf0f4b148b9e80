/* SPDX-License-Identifier: Apache-2.0 */
/* --every: a job that is run once in each period. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

lk_status exec_period_ask(exec_period *period, const exec_options *options, exec_clients *clients,
                          int64_t deadline_ms, lk_error *error) {
  lk_status status;
  do {
    period->last.size = sizeof period->last;
    status = lk_period_check(clients->list[0], options->names[0], options->every_ms,
                             period->asked_ms, &period->last, error);
  } while (exec_waiting_again(status, error, deadline_ms));
  if (status != LK_OK || period->last.done) return status;
  if (period->asked_ms == 0) period->asked_ms = period->last.now_ms;
  period->began_ms = period->last.now_ms;
  return LK_OK;
}

lk_status exec_period_mark(exec_period *period, const exec_options *options, exec_clients *clients,
                           exec_locks *locks, lk_error *error) {
  char host[LK_LABEL_MAX + 1] = "";
  if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "a machine without a name");
  const char *owner = exec_locks_at(locks, 0)->owner;
  const int64_t deadline_ms = lk_now_ms() + exec_locks_remaining_ms(locks);
  lk_status status;
  do {
    status = lk_period_mark(clients->list[0], options->names[0], options->every_ms,
                            period->began_ms, owner, host, error);
    /* An earlier copy may have marked it, whatever keeps a later one from it. */
    const bool answered = status == LK_OK || status == LK_EXISTS;
    period->unsure = status == LK_UNSURE || (period->unsure && !answered);
  } while (!exec_locks_is_hurried(locks) && exec_waiting_again(status, error, deadline_ms));
  period->marked = status == LK_OK;
  return status;
}

void exec_period_print(const exec_period *period, char *text, size_t size) {
  char when[64] = "";
  const time_t seconds = (time_t)(period->last.ended_ms / 1000);
  struct tm local;
  if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %Z", &local);
  snprintf(text, size, "was done by %.*s at %s", EXEC_CUT(period->last.label, 200), when);
}
