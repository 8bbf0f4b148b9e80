/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions: every choice of a world is drawn from its seed here, and nowhere else.
 *
 * A stream belongs to one thing that chooses (a thread, a connection, an actor, a fault) and counts what it
 * has drawn, so its n-th draw is the same whatever the others do. A draw of a class other than D_WORK that
 * does not come to the calm choice is a deviation; a mask forbids deviations by class, by time or one by
 * one, and the calm choice stands instead. That is how a failing run is made short.
 */
#ifndef SIM_DECIDE_H
#define SIM_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, calm choice) */
#define DECIDE_CLASSES(X)                                                                          \
  X(WORK, "what actors do: no deviations")                                                         \
  X(SWITCH, "a thread runs on")                                                                    \
  X(PICK, "threads run in turn")                                                                   \
  X(SPURIOUS, "no wake-up without a cause, no EINTR, no EAGAIN")                                   \
  X(DELAY, "a packet takes 100 us")                                                                \
  X(SHORT, "reads and writes are whole")                                                           \
  X(CONNECT, "connections and look-ups work")                                                      \
  X(FAULT, "nothing breaks")                                                                       \
  X(MEMORY, "there is memory")                                                                     \
  X(ASIDE, "a thread that may run is not kept from it")                                            \
  X(BEHIND, "messages are not behind replies")

typedef enum decide_class {
#define DECIDE_ENUM(name, calm) D_##name,
  DECIDE_CLASSES(DECIDE_ENUM)
#undef DECIDE_ENUM
      D_CLASSES
} decide_class;

/* Which thing draws: the upper bits of a stream's number. */
enum {
  STREAM_THREAD = 1,
  STREAM_CONN,
  STREAM_ACTOR,
  STREAM_FAULT,
  STREAM_WORLD,
  STREAM_ASIDE,
  STREAM_BEHIND,
  STREAM_FORK
};

typedef struct sim_stream {
  uint64_t key;
  uint32_t id, n;
} sim_stream;

/* One deviation: class, stream and place. Sorted ones make a list that a file keeps. */
typedef uint64_t deviation;

typedef struct decide_mask {
  bool off[D_CLASSES];
  int64_t from_us[D_CLASSES], until_us[D_CLASSES]; /* since the world began; until 0: for ever */
  const deviation *only;                           /* sorted; NULL: any */
  size_t only_count;
} decide_mask;

/* Before anything is drawn. `mask` may be NULL, and stays. */
void decide_begin(uint64_t seed, const decide_mask *mask);
sim_stream decide_stream(unsigned what, uint32_t index);

bool decide_chance(sim_stream *s, decide_class class, unsigned per_million);
/* lo is the calm choice. */
int64_t decide_between(sim_stream *s, decide_class class, int64_t lo, int64_t hi);

/* Notes the deviations of the run that begins next, up to `most`, and how many there are so far. */
void decide_record(deviation *list, size_t most, size_t *count);

const char *decide_class_name(decide_class class);

/* The hash over all that happens. */
extern uint64_t sim_hash;
static inline void sim_mix(uint64_t v) {
  sim_hash = (sim_hash ^ v) * UINT64_C(0x9fb21c651e98df25);
  sim_hash ^= sim_hash >> 29;
}
void sim_mix_bytes(const void *bytes, size_t len);

#endif
