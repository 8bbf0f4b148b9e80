/* SPDX-License-Identifier: Apache-2.0 */
/* A script file of any bytes: its header is read or refused, and its library of functions can be made. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/catalog.h"
#include "harness/function.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lk_parsed *parsed = NULL;
  lk_error error = {.status = LK_OK};
  char *source = malloc(size + 1);
  if (!source) return 0;
  if (size > 0) memcpy(source, data, size);
  source[size] = '\0';
  lk_status status = lk_header_parse("family/verb.lua", source, size, &parsed, &error);
  if ((status == LK_OK) != (parsed != NULL)) abort();
  if (parsed) {
    const lk_script_def *def = lk_parsed_def(parsed);
    if (strlen(def->sha1) != 40 || !def->name[0] || !def->version[0]) abort();
    size_t len = 0;
    free(lk_function_name(def));
    char *code = lk_function_code(def, &len);
    if (code && strlen(code) != len) abort();
    free(code);
    lk_parsed_free(parsed);
  } else if (status != LK_INVALID && status != LK_NOMEM) {
    abort();
  }
  free(source);
  return 0;
}
