/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/fan.h"

#include "base/status.h"

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

void lk_fan_fail(lk_fan *fan, lk_status status, const lk_error *error) {
  lk_mutex_lock(&fan->mutex);
  fan_note(fan, status, error);
  lk_mutex_unlock(&fan->mutex);
}

void lk_fan_end_one(lk_fan *fan, lk_status status, const lk_error *error) {
  lk_mutex_lock(&fan->mutex);
  fan_note(fan, status, error);
  fan->pending--;
  if (fan->pending == 0) lk_cond_signal(&fan->ended);
  lk_mutex_unlock(&fan->mutex);
}

void lk_fan_wait(lk_fan *fan) {
  lk_mutex_lock(&fan->mutex);
  while (fan->pending > 0) lk_cond_wait(&fan->ended, &fan->mutex);
  lk_mutex_unlock(&fan->mutex);
}

lk_status lk_fan_close(lk_fan *fan, lk_error *error) {
  lk_cond_destroy(&fan->ended);
  lk_mutex_destroy(&fan->mutex);
  if (fan->status == LK_OK) return lk_succeed(error);
  if (error) *error = fan->error;
  return fan->status;
}
