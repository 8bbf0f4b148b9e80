/* SPDX-License-Identifier: Apache-2.0 */
/* What CMD is told about the locks that it runs under. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec.h"

extern char **environ;

typedef struct source {
  const exec_options *options;
  exec_locks *locks;
  const char *targets, *parent;
} source;

static void print_names(FILE *out, const source *from) {
  for (size_t i = 0; i < from->options->nnames; i++) {
    fprintf(out, "%s%s", i > 0 ? "\n" : "", from->options->names[i]);
  }
}

/* In the order of print_names(). */
static void print_tokens(FILE *out, const source *from) {
  for (size_t i = 0; i < exec_locks_count(from->locks); i++) {
    fprintf(out, "%s%" PRId64, i > 0 ? "\n" : "", exec_locks_at(from->locks, i)->token);
  }
}

/* What this exec stands under itself, then its own holds. */
static void print_held(FILE *out, const source *from) {
  const char *inherited = getenv("LATCHKEY_HELD");
  const char *space = inherited && *inherited ? " " : "";
  if (*space) fputs(inherited, out);
  for (size_t i = 0; i < exec_locks_count(from->locks); i++) {
    const exec_hold *hold = exec_locks_at(from->locks, i);
    if (hold->outer || !(from->options->kind->renew || *hold->owner)) continue;
    const held_entry entry = {.kind = from->options->kind->name,
                              .name = hold->name,
                              .owner = hold->owner,
                              .lease_ms = hold->lease_ms,
                              .process = getpid(),
                              .target = from->targets,
                              .token = hold->token,
                              .space = held_space()};
    fputs(space, out);
    held_print(out, &entry);
    space = " ";
  }
}

static void print_parent(FILE *out, const source *from) { fputs(from->parent, out); }

enum { OWN_VARIABLES = 4 };

static const struct {
  const char *name;
  void (*print)(FILE *, const source *);
  bool of_token;  /* only of kinds that have one */
  bool of_parent; /* only where there is one */
} variables[OWN_VARIABLES] = {{"LATCHKEY_LOCK", print_names, false, false},
                              {"LATCHKEY_HELD", print_held, false, false},
                              {"LATCHKEY_TOKEN", print_tokens, true, false},
                              {"TRACEPARENT", print_parent, false, true}};

static bool is_own(const char *assignment) {
  for (size_t i = 0; i < OWN_VARIABLES; i++) {
    const size_t length = strlen(variables[i].name);
    if (strncmp(assignment, variables[i].name, length) == 0 && assignment[length] == '=') {
      return true;
    }
  }
  return false;
}

/* "NAME=" and what `print` writes, allocated; NULL when memory is short. */
static char *variable(const char *name, void (*print)(FILE *, const source *), const source *from) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) return NULL;
  fprintf(memory, "%s=", name);
  print(memory, from);
  if (fclose(memory) == 0) return text;
  free(text);
  return NULL;
}

char **exec_environment(const exec_options *options, exec_locks *locks, const char *targets,
                        const char *parent) {
  const source from = {.options = options,
                       .locks = locks,
                       .targets = targets,
                       .parent = parent ? parent : getenv("TRACEPARENT")};
  size_t count = 0;
  while (environ[count]) count++;
  char **environment = calloc(count + OWN_VARIABLES + 1, sizeof *environment);
  if (!environment) return NULL;
  size_t kept = 0;
  for (size_t i = 0; i < OWN_VARIABLES; i++) {
    if (variables[i].of_token && !options->kind->has_token) continue;
    if (variables[i].of_parent && !from.parent) continue;
    environment[kept] = variable(variables[i].name, variables[i].print, &from);
    if (!environment[kept++]) {
      exec_environment_free(environment);
      return NULL;
    }
  }
  for (char **old = environ; *old; old++) {
    if (!is_own(*old)) environment[kept++] = *old;
  }
  return environment;
}

/* Its own variables stand first; the others are this program's. */
void exec_environment_free(char **environment) {
  for (char **one = environment; one && *one && is_own(*one); one++) free(*one);
  free(environment);
}
