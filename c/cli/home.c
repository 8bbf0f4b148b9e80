/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the scripts and tools are: $LATCHKEY_HOME, else, for a program in its build tree, the source
 * tree, else beside the program as it is installed, else the configured prefix. An installed program
 * never looks at the source tree: it must not run what somebody put where it was once built.
 */
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* `folder`/`path`, when `folder`/`path`/`mark` is there. */
static char *folder_with(const char *folder, const char *path, const char *mark) {
  char *full = malloc(strlen(folder) + strlen(path) + strlen(mark) + 3);
  if (!full) return NULL;
  sprintf(full, "%s/%s/%s", folder, path, mark);
  char *found = NULL;
  if (access(full, R_OK) == 0) {
    full[strlen(full) - strlen(mark) - 1] = '\0';
    found = realpath(full, NULL);
  }
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

char *home_build(const char *program) {
  char *folder = program_folder(program);
  char *build = folder ? folder_with(folder, ".", "CMakeCache.txt") : NULL;
  free(folder);
  return build;
}

/* The source tree of a build tree, as CMake wrote it down there: so the program itself names no folder. */
static char *source_of(const char *build, const char *mark) {
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
    home = folder_with(line + sizeof key - 1, ".", mark);
    break;
  }
  free(line);
  fclose(cache);
  return home;
}

char *home_find(const char *program) {
  static const char mark[] = "tools/latchkey/cli/init.lua";
  const char *given = getenv("LATCHKEY_HOME");
  if (given && *given) return folder_with(given, ".", mark);

  char *build = home_build(program);
  if (build) {
    char *home = source_of(build, mark);
    free(build);
    return home;
  }
  char *folder = program_folder(program);
  char *home = folder ? folder_with(folder, "../share/latchkey", mark) : NULL;
  free(folder);
  return home ? home : folder_with(LK_INSTALL_HOME, ".", mark);
}
