/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the scripts and tools are: $LATCHKEY_HOME, else, for a program in its build tree, the source
 * tree, else beside the program as it is installed, else the configured prefix. An installed program
 * never looks at the source tree: it must not run what somebody put where it was once built.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Why no folder was taken: the first file that cannot be read though it may be there, else the last one. */
typedef struct miss {
  char *path;
  int code;
} miss;

static bool is_absent(int code) { return code == ENOENT || code == ENOTDIR; }

/* Takes `path`; `m` is NULL where nobody asks. */
static void miss_keep(miss *m, char *path, int code) {
  const bool tells_more = m && (!m->path || is_absent(m->code));
  free(tells_more ? m->path : path);
  if (tells_more) *m = (miss){path, code};
}

/* `folder`/`path`, when `folder`/`path`/`mark` can be read. */
static char *folder_with(const char *folder, const char *path, const char *mark, miss *m) {
  char *full = malloc(strlen(folder) + strlen(path) + strlen(mark) + 3);
  if (!full) return NULL;
  sprintf(full, "%s/%s%s%s", folder, path, *path ? "/" : "", mark);
  if (access(full, R_OK) != 0) {
    miss_keep(m, full, errno);
    return NULL;
  }
  full[strlen(full) - strlen(mark) - 1] = '\0';
  char *found = realpath(full, NULL);
  free(full);
  return found;
}

static char *program_folder(const char *program) {
  char *path = realpath("/proc/self/exe", NULL);
  if (!path && strchr(program, '/')) path = realpath(program, NULL);
  char *slash = path ? strrchr(path, '/') : NULL;
  if (slash) *slash = '\0';
  return path;
}

/* The build tree that the program stands in; NULL when it is an installed one. */
static char *build_of(const char *program) {
  char *folder = program_folder(program);
  char *build = folder ? folder_with(folder, "", "CMakeCache.txt", NULL) : NULL;
  free(folder);
  return build;
}

/* The source tree of a build tree, as CMake wrote it down there: so the program itself names no folder. */
static char *source_of(const char *build, const char *mark, miss *m) {
  static const char file[] = "/CMakeCache.txt", key[] = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  char *path = malloc(strlen(build) + sizeof file);
  if (!path) return NULL;
  sprintf(path, "%s%s", build, file);
  FILE *cache = fopen(path, "re");
  free(path);
  if (!cache) return NULL;
  char *line = NULL, *home = NULL;
  size_t room = 0;
  while (getline(&line, &room, cache) > 0) {
    if (strncmp(line, key, sizeof key - 1) != 0) continue;
    line[strcspn(line, "\n")] = '\0';
    home = folder_with(line + sizeof key - 1, "", mark, m);
    break;
  }
  free(line);
  fclose(cache);
  return home;
}

/* What is installed beside the program, or in the configured prefix. */
static char *installed(const char *program, const char *path, const char *mark, miss *m) {
  char beside[64];
  snprintf(beside, sizeof beside, "../share/latchkey%s", path);
  char *folder = program_folder(program);
  char *found = folder ? folder_with(folder, beside, mark, m) : NULL;
  free(folder);
  return found ? found : folder_with(LK_INSTALL_HOME, path + (*path == '/'), mark, m);
}

static char *find(const char *program, const char *given, const char *mark, miss *m) {
  if (given) return folder_with(given, "", mark, m);
  char *build = build_of(program);
  char *home = build ? source_of(build, mark, m) : installed(program, "", mark, m);
  free(build);
  return home;
}

static void tell(const miss *m, const char *given) {
  const char *why = strerror(m->path ? m->code : ENOMEM);
  const char *path = m->path ? m->path : "its scripts and tools";
  if (given) {
    fprintf(stderr,
            "latchkey: %s: %s; let LATCHKEY_HOME name a clone of the project, or unset it\n", path,
            why);
  } else if (!is_absent(m->code)) {
    fprintf(stderr, "latchkey: %s: %s; make it readable for all: chmod -R a+rX, its folders too\n",
            path, why);
  } else {
    fprintf(stderr,
            "latchkey: its scripts and tools were not found (%s: %s); install them, or set "
            "LATCHKEY_HOME to a clone of the project\n",
            path, why);
  }
}

char *home_find(const char *program) {
  miss m = {NULL, 0};
  const char *given = getenv("LATCHKEY_HOME");
  if (given && !*given) given = NULL;
  char *home = find(program, given, "tools/latchkey/cli/init.lua", &m);
  if (!home) tell(&m, given);
  free(m.path);
  return home;
}

char *home_declarations(const char *program) {
  static const char file[] = "latchkey_cdef.lua";
  char *build = build_of(program);
  char *found = build ? folder_with(build, "generated", file, NULL)
                      : installed(program, "/tools/latchkey/generated", file, NULL);
  free(build);
  return found;
}
