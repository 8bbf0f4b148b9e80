/* SPDX-License-Identifier: Apache-2.0 */
/* A script as a Redis Function: a library with one function, both named lock_acquire_1 after the script
 * and its major version, since function names are global on a server. */
#ifndef LK_FUNCTION_H
#define LK_FUNCTION_H

#include <hiredis/hiredis.h>

#include "harness/catalog.h"

/* Its name, malloc'ed; NULL without memory. */
char *lk_function_name(const lk_script_def *script);
/* What FUNCTION LOAD takes, malloc'ed: byte for byte what `latchkey load --functions` sends. Every line of
 * the script keeps its number. */
char *lk_function_code(const lk_script_def *script, size_t *len);

/* What is to be done about a script, by the reply of FUNCTION LIST. */
typedef enum lk_function_step {
  LK_FUNCTION_LOAD,   /* it is not there */
  LK_FUNCTION_STAYS,  /* it is, or a newer one of the same major version */
  LK_FUNCTION_REPLACE /* an older one is */
} lk_function_step;
/* LK_VERSION: something else is there under its name. */
lk_status lk_function_plan(const lk_script_def *script, const redisReply *list,
                           lk_function_step *step, lk_error *error);

#endif
