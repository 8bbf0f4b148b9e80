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

char *home_find(const char *program) {
  static const char mark[] = "tools/latchkey/cli/init.lua";
  const char *given = getenv("LATCHKEY_HOME");
  if (given && *given) return folder_with(given, ".", mark);

  char *build = home_build(program);
  free(build);
  if (build) return folder_with(LK_SOURCE_HOME, ".", mark);
  char *folder = program_folder(program);
  char *home = folder ? folder_with(folder, "../share/latchkey", mark) : NULL;
  free(folder);
  return home ? home : folder_with(LK_INSTALL_HOME, ".", mark);
}
