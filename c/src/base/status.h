/* SPDX-License-Identifier: Apache-2.0 */
/* Filling in an lk_error, and what a server's error means. */
#ifndef LK_STATUS_H
#define LK_STATUS_H

#include <latchkey/latchkey.h>

void lk_fail_fill(lk_error *error, lk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline lk_status lk_fail_is(lk_status status) { return status; }
/* Fills *error (may be NULL) with a formatted message and is `status`, so that compilers and analyzers see that it is
 * no LK_OK. */
#define lk_fail(error, status, ...)                                                                \
  (lk_fail_fill((error), (status), __VA_ARGS__), lk_fail_is(status))
/* Names, and what servers say, may hold anything, and a terminal or a log takes control characters as orders: each
 * byte of one becomes a question mark. So does what ends a line in UTF-8 (U+2028, U+2029), and what turns its direction
 * (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), and each byte that is no UTF-8, as where a name was
 * cut. */
void lk_disarm(char *text);
/* Is a call that had no answer, or met trouble that may pass, worth sending again? */
static inline bool lk_may_pass(lk_status status) {
  return status == LK_UNSURE || lk_status_is_retriable((int)status);
}
/* Clears *error (may be NULL) and returns LK_OK. */
lk_status lk_succeed(lk_error *error);
/*
 * The status for an error reply of the server: by its first word (LKARG -> LK_BADARG, WRONGTYPE, OOM,
 * LOADING, READONLY, NOREPLICAS, MISCONF, BUSY -> LK_SERVER_BUSY, MASTERDOWN, NOPERM -> LK_DENIED,
 * NOAUTH and WRONGPASS -> LK_AUTH ...), else LK_SERVER, or LK_SCRIPT when the text carries a script's
 * line and is not about a command that the server does not know. Fills code, message (without the
 * ` script: <sha>, on @user_script:N.` tail) and line.
 * `script` is the script's name or NULL.
 */
lk_status lk_fail_server(lk_error *error, const char *script, const char *text, size_t len);

#endif
