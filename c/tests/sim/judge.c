/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decide.h"
#include "scheduler.h"

static bool judge_is_failed;
static violation judge_first;
static char judge_words[400];
bool story_is_told;

void judge_begin(void) {
  judge_is_failed = false;
  judge_words[0] = '\0';
}

void judge_fail(violation kind, const char *format, ...) {
  if (judge_is_failed) return;
  judge_is_failed = true;
  judge_first = kind;
  va_list list;
  va_start(list, format);
  vsnprintf(judge_words, sizeof judge_words, format, list);
  va_end(list);
  sim_mix(0xbad0 + (uint64_t)kind);
  STORY("judge", "%s: %s", judge_name(kind), judge_words);
}

bool judge_failed(void) { return judge_is_failed; }
violation judge_kind(void) { return judge_first; }
const char *judge_text(void) { return judge_words; }

const char *judge_name(violation kind) {
  static const char *const names[] = {
#define JUDGE_NAME(name, text) #name,
      JUDGE_TABLE(JUDGE_NAME)
#undef JUDGE_NAME
  };
  return names[kind];
}
