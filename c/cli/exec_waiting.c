/* SPDX-License-Identifier: Apache-2.0 */
/* Why an exec still waits: what its calls met last, and when that is told. */
#define _POSIX_C_SOURCE 200809L
#include <latchkey/stats.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "exec.h"

enum { TELL_AFTER_MS = 1000, TELL_GAP_MAX_MS = 60000, TELL_AGAIN_MS = 60000, PAUSE_MS = 200 };

/* Who has the lock is asked after a second, then less and less often; sooner when a message came, as it does when
 * the lock goes to another. The first answer is waited for so long. */
enum { LOOK_GAP_MS = 10000, LOOK_GAP_MAX_MS = 60000, LOOK_SOON_MS = 5000, LOOK_TAKES_MS = 800 };

/* What calls without a wait of their own met, which are tried again here. LK_OK: nothing. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static lk_error met;

static void note(lk_status status, const lk_error *error) {
  pthread_mutex_lock(&mutex);
  met = *error;
  met.status = status;
  pthread_mutex_unlock(&mutex);
}

bool exec_waiting_again(lk_status status, const lk_error *error, int64_t deadline_ms) {
  const bool may_pass = status == LK_UNSURE || lk_status_is_retriable((int)status);
  const bool in_time = deadline_ms == LK_FOREVER || lk_now_ms() < deadline_ms;
  const bool again = may_pass && in_time;
  note(again ? status : LK_OK, error);
  const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
  if (again) nanosleep(&pause, NULL);
  return again;
}

/* Behind Sentinel and in a cluster another server takes over from one that is away or no master any more. */
static void name_fail_over(const exec_clients *clients, lk_error *error) {
  const char *const target = lk_client_target(clients->list[0]);
  const bool moves = strstr(target, "-sentinel://") || strstr(target, "-cluster://");
  const lk_status status = error->status;
  if (!moves || (status != LK_UNREACHABLE && status != LK_UNSURE && status != LK_READONLY &&
                 status != LK_MASTERDOWN && status != LK_CLUSTERDOWN && status != LK_LOADING)) {
    return;
  }
  const size_t used = strlen(error->message);
  snprintf(error->message + used, sizeof error->message - used, "; waiting for a fail-over");
}

/* Of several servers as many may be in trouble as are not needed: *down is the first. LK_OK: another holds the lock. */
static lk_status find_why(exec_clients *clients, lk_error *out, lk_error *down) {
  pthread_mutex_lock(&mutex);
  *out = met;
  pthread_mutex_unlock(&mutex);
  if (out->status != LK_OK) {
    name_fail_over(clients, out);
    return out->status;
  }
  size_t troubled = 0;
  for (size_t i = 0; i < clients->count; i++) {
    lk_error one;
    if (lk_client_trouble(clients->list[i], &one) == LK_OK) continue;
    if (++troubled == 1) *out = one;
  }
  if (troubled > 0) name_fail_over(clients, out);
  if (troubled <= (clients->count - 1) / 2) {
    if (troubled > 0) *down = *out;
    exec_fail(out, LK_OK, "%s", lk_status_text(LK_BUSY));
  }
  return out->status;
}

void exec_waiting_begin(exec_waiting *waiting) {
  const int64_t first_ms = lk_now_ms() + TELL_AFTER_MS;
  *waiting = (exec_waiting){.next_ms = first_ms,
                            .look_ms = first_ms,
                            .look_gap_ms = LOOK_GAP_MS,
                            .gap_ms = TELL_AFTER_MS};
}

int64_t exec_waiting_rest_ms(const exec_waiting *waiting) {
  const int64_t rest_ms = waiting->next_ms - lk_now_ms();
  return rest_ms > 0 ? rest_ms : 0;
}

/* How long a server did not answer, and the like, is no other reason. */
static bool is_same_error(const lk_error *a, const lk_error *b) {
  if (a->status != b->status || strcmp(a->code, b->code) != 0) return false;
  const char *left = a->message, *right = b->message;
  for (;;) {
    left += strspn(left, "0123456789");
    right += strspn(right, "0123456789");
    if (*left != *right) return false;
    if (*left == '\0') return true;
    left++, right++;
  }
}

/* Nor how long the same owner has it. */
static bool is_same(const exec_waiting *waiting, const exec_reason *reason) {
  if (reason->error.status == LK_OK && waiting->last.status == LK_OK) {
    if (waiting->down != reason->down.status) return false;
    return strcmp(waiting->owner, reason->rival.holder.owner) == 0;
  }
  return is_same_error(&waiting->last, &reason->error);
}

static uint64_t heard(const exec_clients *clients) {
  lk_stats stats = {.size = sizeof stats};
  lk_error error;
  return lk_client_stats(clients->list[0], &stats, &error) == LK_OK ? stats.messages : 0;
}

static void look_who(exec_waiting *waiting, exec_clients *clients, const exec_hold *hold) {
  const int64_t now_ms = lk_now_ms();
  const uint64_t messages = heard(clients);
  const bool soon = messages != waiting->messages && now_ms >= waiting->looked_ms + LOOK_SOON_MS;
  if (now_ms < waiting->look_ms && !soon) return;
  exec_who_ask(clients, hold);
  waiting->messages = messages;
  waiting->looked_ms = now_ms;
  waiting->look_ms = now_ms + waiting->look_gap_ms;
  waiting->look_gap_ms *= 2;
  if (waiting->look_gap_ms > LOOK_GAP_MAX_MS) waiting->look_gap_ms = LOOK_GAP_MAX_MS;
}

static void note_told(exec_waiting *waiting, const exec_reason *reason, bool changed) {
  const int64_t now_ms = lk_now_ms();
  waiting->told = true;
  waiting->last = reason->error;
  waiting->down = reason->down.status;
  snprintf(waiting->owner, sizeof waiting->owner, "%s", reason->rival.holder.owner);
  waiting->again_ms = now_ms + TELL_AGAIN_MS;
  if (!changed) return;
  /* Reasons that come and go are told less and less often. */
  waiting->tell_ms = now_ms + waiting->gap_ms;
  waiting->gap_ms = waiting->gap_ms * 2 < TELL_GAP_MAX_MS ? waiting->gap_ms * 2 : TELL_GAP_MAX_MS;
}

bool exec_waiting_look(exec_waiting *waiting, exec_clients *clients, exec_locks *locks, bool line,
                       exec_reason *out) {
  const int64_t now_ms = lk_now_ms();
  const exec_hold *hold = exec_locks_wanted(locks);
  *out = (exec_reason){.rival = {.known = false}};
  if (now_ms < waiting->next_ms && now_ms < waiting->look_ms) return false;
  const bool held = find_why(clients, &out->error, &out->down) == LK_OK;
  if (held) look_who(waiting, clients, hold);
  const bool looks = exec_who_get(hold->name, &out->rival);
  if (held && looks && !out->rival.known && now_ms < waiting->looked_ms + LOOK_TAKES_MS) {
    return false; /* its end wakes */
  }
  waiting->next_ms = now_ms + TELL_AFTER_MS;
  if (held && out->rival.known) {
    exec_who_print(&out->rival, hold->options->kind->kind, out->error.message,
                   sizeof out->error.message);
  }
  if (held && out->down.status != LK_OK) {
    const size_t used = strlen(out->error.message);
    snprintf(out->error.message + used, sizeof out->error.message - used, "; %.*s",
             EXEC_CUT(out->down.message, 200));
  }
  const bool changed = !waiting->told || !is_same(waiting, out);
  if (!line && (changed ? now_ms < waiting->tell_ms : now_ms < waiting->again_ms)) return false;
  note_told(waiting, out, changed);
  return true;
}
