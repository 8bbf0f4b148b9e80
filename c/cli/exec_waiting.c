/* SPDX-License-Identifier: Apache-2.0 */
/* Why an exec still waits: what its calls met last, and when that is told. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "exec.h"

enum { TELL_AFTER_MS = 1000, TELL_GAP_MAX_MS = 60000, PAUSE_MS = 200 };

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

/* Of several servers as many may be in trouble as are not needed. LK_OK: another holds the lock. */
static lk_status find_why(exec_clients *clients, lk_error *out) {
  pthread_mutex_lock(&mutex);
  *out = met;
  pthread_mutex_unlock(&mutex);
  if (out->status != LK_OK) return out->status;
  size_t troubled = 0;
  for (size_t i = 0; i < clients->count; i++) {
    lk_error one;
    if (lk_client_trouble(clients->list[i], &one) == LK_OK) continue;
    if (++troubled == 1) *out = one;
  }
  if (troubled <= (clients->count - 1) / 2) {
    exec_fail(out, LK_OK, "%s", lk_status_text(LK_BUSY));
  }
  return out->status;
}

void exec_waiting_begin(exec_waiting *waiting) {
  *waiting = (exec_waiting){.next_ms = lk_now_ms() + TELL_AFTER_MS, .gap_ms = TELL_AFTER_MS};
}

int64_t exec_waiting_rest_ms(const exec_waiting *waiting) {
  const int64_t rest_ms = waiting->next_ms - lk_now_ms();
  return rest_ms > 0 ? rest_ms : 0;
}

/* How long a server did not answer, and the like, is no other reason. */
static bool is_same(const lk_error *a, const lk_error *b) {
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

bool exec_waiting_look(exec_waiting *waiting, exec_clients *clients, bool verbose, lk_error *out) {
  const int64_t now_ms = lk_now_ms();
  if (now_ms < waiting->next_ms) return false;
  waiting->next_ms = now_ms + TELL_AFTER_MS;
  find_why(clients, out);
  if (waiting->told ? is_same(out, &waiting->last) : out->status == LK_OK && !verbose) return false;
  waiting->told = true;
  waiting->last = *out;
  /* Reasons that come and go are told less and less often. */
  waiting->next_ms = now_ms + waiting->gap_ms;
  waiting->gap_ms = waiting->gap_ms * 2 < TELL_GAP_MAX_MS ? waiting->gap_ms * 2 : TELL_GAP_MAX_MS;
  return true;
}
