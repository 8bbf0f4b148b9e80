/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run is judged by. The first violation ends it: what follows one proves nothing.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

/* X(name, what it means) */
#define JUDGE_TABLE(X)                                                                             \
  X(OVERLAP, "two holds were believed valid at once")                                              \
  X(DEADLINE, "a hold was believed longer than the server grants it")                              \
  X(COUNT, "a count was wrong")                                                                    \
  X(TOKEN, "a fencing token was not above those before it")                                        \
  X(LOSS, "a hold was lost without a cause, or its loss told twice, late, or to another")          \
  X(STATUS, "a call returned a status that it must not return here")                               \
  X(WAKEUP, "a lock stayed free while somebody waited for it")                                     \
  X(ORDER, "who came later had a fair lock before")                                                \
  X(LATE, "a call took longer than its documentation says")                                        \
  X(STUCK, "a call did not end, or the library waits for itself")                                  \
  X(ABUSE, "threads, memory or descriptors were misused")                                          \
  X(FORKED, "a child did something with its parent's client")                                      \
  X(CPU, "a client that has nothing to do is busy")                                                \
  X(LEAK, "memory, a descriptor, a thread or a key was left")                                      \
  X(CRASH, "the process died")

typedef enum violation {
#define JUDGE_ENUM(name, text) V_##name,
  JUDGE_TABLE(JUDGE_ENUM)
#undef JUDGE_ENUM
      V_KINDS
} violation;

void judge_begin(void);
void judge_fail(violation kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool judge_failed(void);
violation judge_kind(void);
const char *judge_text(void);
const char *judge_name(violation kind);

/* The story: lines that are printed when somebody asked for them. `who` names a column. */
extern bool story_is_told;
void story_line(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define STORY(...)                                                                                 \
  do {                                                                                             \
    if (story_is_told) story_line(__VA_ARGS__);                                                    \
  } while (0)

#endif
