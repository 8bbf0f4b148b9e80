/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/lease.h"

#include "harness/reply.h"

int64_t lk_believed_us(int64_t lease_us, int64_t drift_ms, lk_company company) {
  if (company == LK_COMPANY_FOREIGN && lease_us > LK_FOREIGN_WATCHDOG_US) {
    lease_us = LK_FOREIGN_WATCHDOG_US;
  }
  return lease_us - (drift_ms > 0 ? drift_ms * 1000 : lease_us / 100 + 2000);
}

lk_status lk_renewal_read(const redisReply *reply, lk_company *company, lk_lost_reason *reason) {
  const lk_reply *wrapped = lk_reply_wrap((redisReply *)(uintptr_t)reply);
  int64_t outcome = 0, second = 0;
  bool has_second = lk_reply_number(wrapped, 1, &second);
  if (!lk_reply_number(wrapped, 0, &outcome)) return LK_PROTOCOL;
  if (outcome == 1) {
    bool foreign = has_second && second == 1;
    if (*company != LK_COMPANY_NONE) *company = foreign ? LK_COMPANY_FOREIGN : LK_COMPANY_OURS;
    return LK_OK;
  }
  *reason = has_second && second != -2 ? LK_LOST_TAKEN : LK_LOST_BROKEN;
  return outcome == -1 ? LK_LOST : LK_PROTOCOL;
}
