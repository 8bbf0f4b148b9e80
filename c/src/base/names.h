/* SPDX-License-Identifier: Apache-2.0 */
/* From a lock's name to the names of its keys and channels, as script headers say. */
#ifndef LK_NAMES_H
#define LK_NAMES_H

#include "harness/catalog.h"

/* The name that `field` has for the lock `name`: its length, and with a buffer of at least that plus
 * one, the text itself. */
size_t lk_name_form(const lk_field *field, const char *name, char *buffer, size_t size);

/* The same for a form with a '+ARG' or '+ARG+TEXT', which appends ":value" and TEXT: `value` is what
 * the call has for that argument. A form without a '+' is formed as above. */
size_t lk_name_form_with(const lk_field *field, const char *name, const char *value, char *buffer,
                         size_t size);

#endif
