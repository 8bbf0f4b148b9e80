/* SPDX-License-Identifier: Apache-2.0 */
#include "hold.h"

#include <string.h>

#include "topology.h"

enum { SLACK_NS = 1000000, TRUTH_SLACK_MS = 2 };

static belief *believers[BELIEF_RESOURCES][BELIEVERS];
static int believer_count[BELIEF_RESOURCES];

uint32_t belief_epoch(const belief *b) {
  uint32_t sum = 0;
  if (!b->everywhere) return topology_epoch(b->server, b->durable);
  for (int i = 0; i < world.work->servers; i++) sum += server_epoch(i);
  return sum;
}

static bool is_excused(const belief *b) { return belief_epoch(b) != b->epoch; }

void belief_begin(belief *b, uint32_t epoch) {
  b->until_ns = 0;
  b->epoch = epoch;
  b->counted = server_epoch(b->server);
  b->levels = 1;
  b->unsure = false;
}

void belief_end(belief *b) {
  belief **list = believers[b->resource];
  int *n = &believer_count[b->resource];
  for (int i = 0; i < *n; i++) {
    if (list[i] == b) list[i--] = list[--*n];
  }
  b->until_ns = 0;
}

void belief_leave(belief *b) {
  int64_t now_ns = sched_now_ns();
  b->left_until_ns = b->until_ns;
  b->kept_until_ns = 0;
  b->gone = false;
  if (b->key && b->owner[0] && server_epoch(b->server) == b->counted) {
    server_hold hold = server_look(b->server, b->key, b->owner);
    b->gone = hold.count == 0;
    int64_t ns = hold.left_ms < 0 ? b->lease_ms * 1000000 : hold.left_ms * 1000000;
    if (hold.count > 0 && b->until_ns > now_ns)
      b->kept_until_ns = now_ns + ns < b->until_ns ? now_ns + ns : b->until_ns;
  }
  belief_end(b);
}

/* A copy of the acquire that was left on a connection takes again what has ended, and that is given back. */
static bool copies_may_be_late(void) {
  const int64_t left_ns = 10000000000;
  if (world.profile == PROFILE_calm) return false;
  bool always = world.profile == PROFILE_network || world.profile == PROFILE_all ||
                world.profile == PROFILE_memory;
  return always || !world_undisturbed_since(sched_now_ns() - left_ns);
}

/* Only what gives it back ends it then; and that has not run before, or it would not be sure. */
void belief_judge_left(const belief *b, lk_status status, const char *why) {
  if (status == LK_OK && b->gone && !is_excused(b) && server_epoch(b->server) == b->counted &&
      !copies_may_be_late()) {
    judge_fail(V_LOSS, "actor %d gave back what the server had no more, and is told OK (%s)",
               b->actor, b->owner);
  }
  if (status != LK_LOST || sched_now_ns() >= b->kept_until_ns - SLACK_NS) return;
  if (is_excused(b) || server_epoch(b->server) != b->counted) return;
  judge_fail(V_LOSS,
             "actor %d gave back what the server had for %lld ms more (%s), and is told: %s",
             b->actor, (long long)(b->kept_until_ns - sched_now_ns()) / 1000000, b->owner, why);
}

void belief_forget(belief *beliefs, int count) {
  for (int i = 0; i < count; i++) {
    if (beliefs[i].resource >= 0) belief_end(&beliefs[i]);
  }
}

static void judge_others(const belief *b, int64_t now_ns) {
  for (int i = 0; i < believer_count[b->resource]; i++) {
    const belief *other = believers[b->resource][i];
    if (other == b || other->actor == b->actor || other->until_ns <= now_ns) continue;
    if (!other->alone && !b->alone) continue;
    if (is_excused(b) || is_excused(other)) continue;
    judge_fail(V_OVERLAP, "actor %d believes for %lld us more, actor %d for %lld us", b->actor,
               (long long)(b->until_ns - now_ns) / 1000, other->actor,
               (long long)(other->until_ns - now_ns) / 1000);
  }
}

static void judge_truth(const belief *b, int64_t now_ns) {
  if (!b->key || !b->owner[0] || is_excused(b)) return;
  int64_t believed_ms = (b->until_ns - now_ns) / 1000000;
  server_hold hold = server_look(b->server, b->key, b->owner);
  if (hold.count == 0) {
    if (believed_ms <= TRUTH_SLACK_MS) return;
    judge_fail(V_DEADLINE, "actor %d believes for %lld ms, and the server has no hold of %s",
               b->actor, (long long)believed_ms, b->owner);
  } else if (hold.left_ms >= 0 && believed_ms > hold.left_ms + TRUTH_SLACK_MS) {
    judge_fail(V_DEADLINE, "actor %d believes for %lld ms of %lld at the server", b->actor,
               (long long)believed_ms, (long long)hold.left_ms);
  }
}

void belief_renew(belief *b, int64_t before_ns, int64_t remaining_ms) {
  int64_t now_ns = sched_now_ns();
  belief_end(b);
  if (remaining_ms > b->lease_ms) {
    judge_fail(V_DEADLINE, "actor %d: %lld ms remain of a lease of %lld", b->actor,
               (long long)remaining_ms, (long long)b->lease_ms);
  }
  int64_t ns = remaining_ms * (1000000 - sched_self_proc()->drift_ppm) - SLACK_NS;
  if (before_ns + ns <= now_ns) return;
  b->until_ns = before_ns + ns;
  believers[b->resource][believer_count[b->resource]++] = b;
  judge_others(b, now_ns);
  judge_truth(b, now_ns);
}

/* A copy of an earlier call of this hold, which went another way while its slot moved, or was left on a connection
 * that was given up, sets the count that it knows; the next call sets it right. */
void belief_count(const belief *b) {
  if (!b->key || !b->owner[0] || is_excused(b) || b->until_ns <= sched_now_ns()) return;
  if (b->durable && server_epoch(b->server) != b->counted) return;
  server_hold hold = server_look(b->server, b->key, b->owner);
  if (hold.count == b->levels || (b->unsure && hold.count >= b->levels)) return;
  bool less = hold.count > 0 && hold.count < b->levels;
  if (less && server_older_is_last(b->server, b->key, b->owner)) return;
  judge_fail(V_COUNT, "actor %d has %d levels, the server %lld (%s)", b->actor, b->levels,
             (long long)hold.count, b->owner);
}
