/* SPDX-License-Identifier: Apache-2.0 */
/* Text of users may hold any byte: as JSON, and on a terminal. */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "held.h"

/* JSON holds UTF-8 only; other bytes are shown as LATCHKEY_HELD shows them. */
json_t *cli_json_text(const char *text) {
  json_t *string = json_string(text);
  if (string) return string;
  char *encoded = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&encoded, &size);
  if (!memory) return json_null();
  percent_print(memory, text);
  if (fclose(memory) == 0) string = json_string(encoded);
  free(encoded);
  return string ? string : json_null();
}

/* The bytes of a character that a terminal obeys, as the library's messages have none: names of locks, processes and
 * files may hold any. 0: the terminal shows it. */
static size_t obeyed(const unsigned char *at) {
  if (*at < ' ' || *at == 0x7f) return 1;
  if (at[0] == 0xc2) return at[1] >= 0x80 && at[1] <= 0x9f ? 2 : 0;
  if (at[0] == 0xd8) return at[1] == 0x9c ? 2 : 0;
  if (at[0] != 0xe2) return 0;
  if (at[1] == 0x81) return at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
  if (at[1] != 0x80) return 0;
  return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
}

void cli_disarm(char *text) {
  for (unsigned char *at = (unsigned char *)text; *at;) {
    const size_t size = obeyed(at);
    if (size > 0) memset(at, '?', size);
    at += size > 0 ? size : 1;
  }
}
