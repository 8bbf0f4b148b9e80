/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/fan.h"

#include "base/status.h"
#include "os/clock.h"

void lk_fan_open(lk_fan *fan) {
  *fan = (lk_fan){.status = LK_OK};
  lk_mutex_init(&fan->mutex);
  lk_cond_init(&fan->ended);
}

void lk_fan_add(lk_fan *fan, size_t count) {
  lk_mutex_lock(&fan->mutex);
  fan->pending += count;
  lk_mutex_unlock(&fan->mutex);
}

static void fan_note(lk_fan *fan, lk_status status, const lk_error *error) LK_REQUIRES(fan->mutex) {
  if (status == LK_OK || fan->status != LK_OK) return;
  fan->status = status;
  fan->error = *error;
}

bool lk_fan_end_one(lk_fan *fan, lk_status status, const lk_error *error) {
  lk_mutex_lock(&fan->mutex);
  fan_note(fan, status, error);
  fan->pending--;
  bool last = fan->left && fan->pending == 0;
  if (fan->pending == 0) lk_cond_signal(&fan->ended);
  lk_mutex_unlock(&fan->mutex);
  return last;
}

void lk_fan_wait(lk_fan *fan, int64_t deadline_us) {
  lk_mutex_lock(&fan->mutex);
  while (fan->pending > 0 && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&fan->ended, &fan->mutex, deadline_us);
  }
  lk_mutex_unlock(&fan->mutex);
}

bool lk_fan_is_left(lk_fan *fan) {
  lk_mutex_lock(&fan->mutex);
  bool left = fan->left;
  lk_mutex_unlock(&fan->mutex);
  return left;
}

bool lk_fan_leave(lk_fan *fan, lk_status *status, lk_error *error) {
  lk_error late;
  lk_mutex_lock(&fan->mutex);
  bool all = fan->pending == 0;
  fan->left = true;
  if (!all) fan_note(fan, lk_fail(&late, LK_UNSURE, "no reply came in time"), &late);
  *status = fan->status;
  if (*status == LK_OK) lk_succeed(error);
  if (*status != LK_OK && error) *error = fan->error;
  lk_mutex_unlock(&fan->mutex);
  return all;
}

lk_status lk_fan_close(lk_fan *fan, lk_error *error) {
  lk_cond_destroy(&fan->ended);
  lk_mutex_destroy(&fan->mutex);
  if (fan->status == LK_OK) return lk_succeed(error);
  if (error) *error = fan->error;
  return fan->status;
}
