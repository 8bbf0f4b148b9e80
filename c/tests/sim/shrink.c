/* SPDX-License-Identifier: Apache-2.0 */
#include "shrink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"

enum { DEVIATIONS_MOST = 2000000, LIST_MOST = 60000, FOLDER_MOST = 4096, LINE_MOST = 4200 };

typedef struct shrinking {
  world_options options;
  decide_mask mask;
  violation kind;
  double until_s;
  int64_t failed_us;
  unsigned tries;
} shrinking;

static bool out_of_time(const shrinking *s) { return run_real_s() >= s->until_s; }

/* Does it still fail, in the same way? */
static bool fails(shrinking *s) {
  world_result result;
  s->tries++;
  run_world(&s->options, NULL, NULL, false, &result);
  if (!result.failed || result.kind != s->kind) return false;
  s->failed_us = result.simulated_us;
  return true;
}

static void forbid_classes(shrinking *s) {
  for (int class = D_CLASSES - 1; class > D_WORK && !out_of_time(s); class --) {
    s->mask.off[class] = true;
    if (!fails(s)) s->mask.off[class] = false;
  }
}

/* Nothing of a class deviates before a moment that is as late as possible. */
static void forbid_beginnings(shrinking *s) {
  for (int class = D_WORK + 1; class < D_CLASSES; class ++) {
    if (s->mask.off[class]) continue;
    for (int64_t step_us = s->failed_us / 2; step_us > 50 && !out_of_time(s); step_us /= 2) {
      int64_t before_us = s->mask.from_us[class];
      s->mask.from_us[class] += step_us;
      if (!fails(s)) s->mask.from_us[class] = before_us;
    }
  }
}

static int compare(const void *a, const void *b) {
  deviation x = *(const deviation *)a, y = *(const deviation *)b;
  return (x > y) - (x < y);
}

/* The deviations that this run makes, sorted; NULL: too many for one by one. */
static deviation *list_deviations(shrinking *s, size_t *count) {
  deviation *list = __real_malloc(DEVIATIONS_MOST * sizeof *list);
  world_result result;
  if (!list) abort();
  *count = DEVIATIONS_MOST;
  run_world(&s->options, list, count, false, &result);
  if (*count > LIST_MOST) {
    __real_free(list);
    return NULL;
  }
  qsort(list, *count, sizeof *list, compare);
  return list;
}

/* Pieces of the list are left away, each as large as may be. */
static void forbid_pieces(shrinking *s, deviation *list, size_t *count) {
  deviation *without = __real_malloc((*count + 1) * sizeof *list);
  if (!without) abort();
  s->mask.only = without;
  for (size_t piece = (*count + 1) / 2; piece > 0 && !out_of_time(s); piece /= 2) {
    for (size_t at = 0; at < *count && !out_of_time(s);) {
      size_t rest = *count - at < piece ? *count - at : piece;
      memcpy(without, list, at * sizeof *list);
      memcpy(without + at, list + at + rest, (*count - at - rest) * sizeof *list);
      s->mask.only_count = *count - rest;
      if (fails(s)) {
        memcpy(list, without, s->mask.only_count * sizeof *list);
        *count = s->mask.only_count;
      } else {
        at += rest;
      }
    }
  }
  s->mask.only = list;
  s->mask.only_count = *count;
  __real_free(without);
}

/* ----------------------------------------------------------------------------------------- file -- */

static void write_mask(FILE *f, const decide_mask *m) {
  for (int class = D_WORK + 1; class < D_CLASSES; class ++) {
    const char *name = decide_class_name((decide_class) class);
    if (m->off[class]) {
      fprintf(f, "off %s\n", name);
    } else if (m->from_us[class]) {
      fprintf(f, "from %s %" PRId64 "\n", name, m->from_us[class]);
    }
  }
  if (!m->only) return;
  fprintf(f, "only %zu\n", m->only_count);
  for (size_t i = 0; i < m->only_count; i++) fprintf(f, "%016" PRIx64 "\n", m->only[i]);
}

static bool write_file(const shrinking *s, const char *path, const char *text) {
  static const char *const profiles[] = {
#define SHRINK_PROFILE(name, words) #name,
      PROFILE_TABLE(SHRINK_PROFILE)
#undef SHRINK_PROFILE
  };
  FILE *f = fopen(path, "w");
  if (!f) {
    perror(path);
    return false;
  }
  fprintf(f, "# %s: ", judge_name(s->kind));
  for (; *text; text++) fputc(*text == '\n' ? ' ' : *text, f);
  fputc('\n', f);
  fprintf(f, "seed %" PRIu64 "\nseconds %" PRId64 "\nprofile %s\n", s->options.seed,
          s->options.seconds, profiles[s->options.profile]);
  if (s->options.work) fprintf(f, "work %s\n", s->options.work);
  if (s->options.busy) fprintf(f, "busy yes\n");
  if (s->options.forks) fprintf(f, "forks yes\n");
  if (s->options.crowd) fprintf(f, "crowd yes\n");
  if (s->options.kind) fprintf(f, "kind %s\n", world_kind_name(s->options.kind));
  if (s->options.topology) fprintf(f, "topology %s\n", topology_name(s->options.topology));
  if (s->options.script_dir) fprintf(f, "scripts %s\n", s->options.script_dir);
  write_mask(f, &s->mask);
  return fclose(f) == 0;
}

int shrink_run(const world_options *options, double for_s, const char *path) {
  shrinking s = {.options = *options, .until_s = run_real_s() + (for_s > 0 ? for_s : 60)};
  world_result result;
  size_t count = 0;
  run_world(options, NULL, NULL, false, &result);
  run_print(options, &result);
  if (!result.failed) return 0;
  s.kind = result.kind;
  s.failed_us = result.simulated_us;
  s.options.mask = &s.mask;
  forbid_classes(&s);
  forbid_beginnings(&s);
  deviation *list = list_deviations(&s, &count);
  if (list) forbid_pieces(&s, list, &count);
  run_world(&s.options, NULL, NULL, false, &result);
  if (!write_file(&s, path, result.text)) return 70;
  printf("%u runs: %s fails after %.3f simulated seconds", s.tries, path,
         (double)result.simulated_us / 1e6);
  printf(list ? ", with %zu deviations from a calm run\n" : "\n", count);
  __real_free(list);
  return 1;
}

typedef struct kept {
  world_options options;
  decide_mask mask;
  char work[32], script_dir[FOLDER_MOST];
  bool has_seed;
} kept;

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return !errno && *text >= '0' && *text <= '9' && !*end && *out >= least && *out <= most;
}

static bool read_class(const char *name, int *out) {
  for (*out = D_WORK + 1; *out < D_CLASSES; ++*out) {
    if (strcmp(decide_class_name((decide_class)*out), name) == 0) return true;
  }
  return false;
}

static bool read_list(FILE *f, decide_mask *m, size_t count) {
  deviation *list = __real_malloc((count + 1) * sizeof *list);
  if (!list) abort();
  for (size_t i = 0; i < count; i++) {
    if (fscanf(f, "%" SCNx64, &list[i]) != 1) return false;
  }
  m->only = list;
  m->only_count = count;
  return true;
}

/* The rest of the line: a folder's name may have blanks. */
static bool read_scripts(const char *name, kept *k) {
  size_t len = strcspn(name, "\n");
  if (len == 0 || len >= sizeof k->script_dir) return false;
  memcpy(k->script_dir, name, len);
  k->options.script_dir = k->script_dir;
  return true;
}

static bool read_line(FILE *f, const char *line, kept *k) {
  char word[32], value[32] = "";
  long long more = 0;
  uint64_t number;
  int class;
  if (line[0] == '#' || line[0] == '\n') return true;
  if (strncmp(line, "scripts ", 8) == 0) return read_scripts(line + 8, k);
  if (sscanf(line, "%31s %31s %lld", word, value, &more) < 2) return false;
  if (strcmp(word, "seed") == 0) {
    k->has_seed = true;
    return read_number(value, 0, UINT64_MAX, &k->options.seed);
  } else if (strcmp(word, "seconds") == 0) {
    bool good = read_number(value, 1, INT64_MAX, &number);
    k->options.seconds = (int64_t)number;
    return good;
  } else if (strcmp(word, "profile") == 0) {
    return world_find_profile(value, &k->options.profile);
  } else if (strcmp(word, "work") == 0) {
    snprintf(k->work, sizeof k->work, "%s", value);
    k->options.work = k->work;
    return world_find_work(value) != NULL;
  } else if (strcmp(word, "topology") == 0) {
    return topology_find(value, &k->options.topology);
  } else if (strcmp(word, "busy") == 0) {
    k->options.busy = true;
  } else if (strcmp(word, "forks") == 0) {
    k->options.forks = true;
  } else if (strcmp(word, "crowd") == 0) {
    k->options.crowd = true;
  } else if (strcmp(word, "kind") == 0) {
    return world_find_kind(value, &k->options.kind);
  } else if (strcmp(word, "only") == 0) {
    return read_number(value, 0, DEVIATIONS_MOST, &number) && read_list(f, &k->mask, number);
  } else if (read_class(value, &class)) {
    k->mask.off[class] = strcmp(word, "off") == 0;
    k->mask.from_us[class] = more;
  } else {
    return false;
  }
  return true;
}

/* Of a comment that is longer than `line`. */
static void skip_rest(FILE *f, const char *line) {
  int c = line[0] == '#' && !strchr(line, '\n') ? ' ' : '\n';
  while (c != '\n' && c != EOF) c = fgetc(f);
}

int shrink_replay(const char *path, const char *script_dir, bool told) {
  char line[LINE_MOST];
  bool good = true;
  kept k = {.options = {.seconds = 20, .profile = PROFILE_any}};
  world_result result;
  FILE *f = fopen(path, "r");
  if (!f) {
    perror(path);
    return 64;
  }
  while (good && fgets(line, sizeof line, f)) {
    good = read_line(f, line, &k);
    if (good) skip_rest(f, line);
  }
  fclose(f);
  if (!good) {
    fprintf(stderr, "sim: %s: this line is not understood: %s", path, line);
    return 64;
  }
  if (!k.has_seed) {
    fprintf(stderr, "sim: %s: no line says which seed\n", path);
    return 64;
  }
  k.options.mask = &k.mask;
  if (script_dir) k.options.script_dir = script_dir;
  if (k.options.script_dir) server_know(k.options.script_dir);
  run_world(&k.options, NULL, NULL, told, &result);
  run_print(&k.options, &result);
  return result.failed;
}
