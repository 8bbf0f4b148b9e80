/* SPDX-License-Identifier: Apache-2.0 */
/* A URL of any bytes: taken apart or refused; what is shown of it fits, and its password stays out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lk_url url;
  lk_error error = {.status = LK_OK};
  char target[64];
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  lk_status status = lk_url_parse(text, &url, &error);
  if (status == LK_OK) {
    lk_url_target(&url, target, sizeof target);
    if (strlen(target) >= sizeof target) abort();
  } else if (status != LK_URL || error.status != LK_URL || !error.message[0]) {
    abort();
  }
  for (const char *c = error.message; *c; c++) {
    if ((unsigned char)*c < ' ' || *c == 0x7f) abort(); /* it goes to terminals */
  }
  lk_url_clear(&url);
  free(text);
  return 0;
}
