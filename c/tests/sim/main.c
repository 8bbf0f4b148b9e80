/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's program; tools/sim builds and starts it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "shrink.h"

static const char usage[] =
    "usage: sim --seed N | --seeds A..B | --story N | --replay FILE | --shrink N --into FILE\n"
    "           [OPTION...]\n"
    "\n"
    "Runs the library, unchanged, in a world that a seed decides: threads, time, network, "
    "servers.\n"
    "\n"
    "  --seed N         one world; its last line is `seed N: S simulated seconds, C clients, E "
    "events,\n"
    "                   V violations, hash H`\n"
    "  --seeds A..B     many, on all processors; prints the first 20 that fail\n"
    "  --for S          with --seeds: begins no more after S seconds\n"
    "  --hunt           with --seeds: nor when one has failed\n"
    "  --each           with --seeds: prints the last line of each\n"
    "  --story N        the same as --seed N, and tells what happens\n"
    "  --shrink N       a world that fails, made short: for 60 seconds, or --for\n"
    "  --into FILE      where that is kept\n"
    "  --replay FILE    what was kept, with --scripts by others; --told: and tells what happens. "
    "The\n"
    "                   file says all else\n"
    "  --seconds S      simulated seconds before everything is brought to its end; default 20\n"
    "  --profile P      what goes wrong: calm, network, server, client, memory, all, any (the "
    "seed\n"
    "                   chooses; the default)\n"
    "  --work W         what clients do: lock, async, count, multi, wait (the seed chooses one; "
    "the "
    "default),\n"
    "                   eval, ask\n"
    "  --topology T     what stands behind each server: one (the default), sentinel, cluster\n"
    "  --busy           the machine has other things to do: threads are put aside, also between "
    "an\n"
    "                   unlock and what follows, and messages on channels are behind replies\n"
    "  --forks          processes fork: a child has nothing of its parent's client, and one of its "
    "own\n"
    "                   works\n"
    "  --crowd          clients open a second connection to each server by themselves\n"
    "  --kind K         of locks, in lock and async: lock, mutex, fenced, fair, rw (the seed "
    "chooses; "
    "the\n"
    "                   default)\n"
    "  --scripts DIR    these scripts instead of those that are built in\n"
    "  --jobs N         processes at a time; default one for each processor\n"
    "  --repeat N       with --seed: N times, which must come to one hash\n"
    "  --help           this text\n"
    "\n"
    "exit codes  0 no violation, 1 violations, 64 wrong use, 70 no world could be made\n";

static _Noreturn void misuse(const char *what, const char *value) {
  fprintf(stderr, "sim: %s '%s'\n%s", what, value ? value : "", usage);
  exit(64);
}

static uint64_t number(const char *text, const char **end) {
  char *stop;
  errno = 0;
  uint64_t n = strtoull(text, &stop, 10);
  if (errno || stop == text || *text == '-') misuse("this is no number:", text);
  if (end) {
    *end = stop;
  } else if (*stop) {
    misuse("this is no number:", text);
  }
  return n;
}

typedef struct wish {
  world_options options;
  bool one, many, told, shrinks;
  const char *file, *into;
  const char
      *beside;   /* an option that means nothing beside a file, which says what world it is of */
  run_plan plan; /* of many; for_s also of one that is made short */
  int repeat;
} wish;

static void read_seeds(wish *w, const char *text) {
  const char *rest;
  w->many = true;
  w->plan.first = number(text, &rest);
  if (strncmp(rest, "..", 2) != 0) misuse("seeds are A..B, not", text);
  w->plan.last = number(rest + 2, NULL);
  if (w->plan.first > w->plan.last) misuse("seeds are A..B, A at most B, not", text);
}

static void read_options(int argc, char **argv, wish *w) {
  enum {
    SEED = 1,
    SEEDS,
    FOR,
    STORY_OF,
    SECONDS,
    PROFILE,
    WORK,
    TOPOLOGY,
    BUSY,
    FORKS,
    KIND,
    SCRIPTS,
    JOBS,
    REPEAT,
    HUNT,
    EACH,
    SHRINK,
    INTO,
    REPLAY,
    TOLD,
    CROWD,
    HELP
  };
  static const struct option known[] = {{"seed", 1, NULL, SEED},
                                        {"seeds", 1, NULL, SEEDS},
                                        {"for", 1, NULL, FOR},
                                        {"story", 1, NULL, STORY_OF},
                                        {"seconds", 1, NULL, SECONDS},
                                        {"profile", 1, NULL, PROFILE},
                                        {"work", 1, NULL, WORK},
                                        {"topology", 1, NULL, TOPOLOGY},
                                        {"busy", 0, NULL, BUSY},
                                        {"forks", 0, NULL, FORKS},
                                        {"kind", 1, NULL, KIND},
                                        {"scripts", 1, NULL, SCRIPTS},
                                        {"jobs", 1, NULL, JOBS},
                                        {"repeat", 1, NULL, REPEAT},
                                        {"hunt", 0, NULL, HUNT},
                                        {"each", 0, NULL, EACH},
                                        {"shrink", 1, NULL, SHRINK},
                                        {"into", 1, NULL, INTO},
                                        {"replay", 1, NULL, REPLAY},
                                        {"told", 0, NULL, TOLD},
                                        {"crowd", 0, NULL, CROWD},
                                        {"help", 0, NULL, HELP},
                                        {NULL, 0, NULL, 0}};
  int c, at = 0;
  while ((c = getopt_long(argc, argv, "", known, &at)) != -1) {
    if (c != '?' && c != REPLAY && c != TOLD && c != SCRIPTS) w->beside = known[at].name;
    switch (c) {
    case STORY_OF: w->told = true; /* fall through */
    case SEED:
      w->one = true;
      w->options.seed = number(optarg, NULL);
      break;
    case SEEDS: read_seeds(w, optarg); break;
    case FOR: w->plan.for_s = (double)number(optarg, NULL); break;
    case SECONDS: w->options.seconds = (int64_t)number(optarg, NULL); break;
    case PROFILE:
      if (!world_find_profile(optarg, &w->options.profile)) misuse("no such profile:", optarg);
      break;
    case WORK:
      w->options.work = optarg;
      if (!world_find_work(optarg)) misuse("no such work:", optarg);
      break;
    case TOPOLOGY:
      if (!topology_find(optarg, &w->options.topology)) misuse("no such topology:", optarg);
      break;
    case BUSY: w->options.busy = true; break;
    case FORKS: w->options.forks = true; break;
    case CROWD: w->options.crowd = true; break;
    case KIND:
      if (!world_find_kind(optarg, &w->options.kind)) misuse("no such kind:", optarg);
      break;
    case SCRIPTS: w->options.script_dir = optarg; break;
    case JOBS: w->plan.jobs = (int)number(optarg, NULL); break;
    case REPEAT: w->repeat = (int)number(optarg, NULL); break;
    case SHRINK:
      w->one = w->shrinks = true;
      w->options.seed = number(optarg, NULL);
      break;
    case INTO: w->into = optarg; break;
    case REPLAY: w->file = optarg; break;
    case TOLD: w->told = true; break;
    case HUNT: w->plan.hunt = true; break;
    case EACH: w->plan.each = true; break;
    case HELP: fputs(usage, stdout); exit(0);
    default: fputs(usage, stderr); exit(64);
    }
  }
  if (optind < argc) misuse("what is", argv[optind]);
  if (w->one + w->many + (w->file != NULL) != 1) misuse("one thing is to be done", NULL);
  if (w->file && w->beside)
    misuse("a file says what it is of, beside --replay there is no", w->beside);
  if (w->shrinks != (w->into != NULL)) misuse("--shrink and --into go together", NULL);
  if (w->plan.jobs < 1 || w->plan.jobs > 64 || w->options.seconds < 1) misuse("out of range", NULL);
}

static int run_one(const wish *w) {
  world_result first, result;
  run_world(&w->options, NULL, NULL, w->told, &first);
  run_print(&w->options, &first);
  for (int i = 1; i < w->repeat; i++) {
    run_world(&w->options, NULL, NULL, false, &result);
    if (result.hash == first.hash) continue;
    printf("run %d came to another hash: %016" PRIx64 "\n", i + 1, result.hash);
    return 1;
  }
  return first.failed;
}

int main(int argc, char **argv) {
  wish w = {.plan.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), .repeat = 1};
  w.options = (world_options){.seconds = 20, .profile = PROFILE_any};
  read_options(argc, argv, &w);
  const char *home = getenv("LATCHKEY_HOME");
  server_load(home ? home : SIM_HOME);
  if (w.options.script_dir) server_know(w.options.script_dir);
  if (w.file) return shrink_replay(w.file, w.options.script_dir, w.told);
  if (w.shrinks) return shrink_run(&w.options, w.plan.for_s, w.into);
  if (w.one) return run_one(&w);
  return run_many(&w.options, &w.plan) > 0;
}
