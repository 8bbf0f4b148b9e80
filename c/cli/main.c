/* SPDX-License-Identifier: Apache-2.0 */
/* The program `latchkey`: which command it is. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* "latchkey --url URL COMMAND ..." is "latchkey COMMAND --url URL ...". */
static void put_command_first(int argc, char **argv) {
  int words = 0;
  if (argc > 3 && strcmp(argv[1], "--url") == 0) words = 2;
  if (argc > 2 && strncmp(argv[1], "--url=", strlen("--url=")) == 0) words = 1;
  char *command = argv[words + 1];
  if (words == 0 || command[0] == '-') return;
  memmove(argv + 2, argv + 1, (size_t)words * sizeof *argv);
  argv[1] = command;
}

/* "latchkey help COMMAND" is "latchkey COMMAND --help". */
static void ask_for_help(int argc, char **argv) {
  static char help[] = "--help";
  if (argc != 3 || strcmp(argv[1], "help") != 0) return;
  argv[1] = argv[2];
  argv[2] = help;
}

static int run(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "--help";
  if (strcmp(command, "--version") == 0) {
    printf("latchkey %s\n", lk_version());
    return CLI_DONE;
  }
  if (strcmp(command, "exec") == 0) return exec_main(argc - 1, argv + 1);
  if (strcmp(command, "bench") == 0) return bench_main(argc - 1, argv + 1);
  return lua_main(argc, argv);
}

int main(int argc, char **argv) {
  standard_open();
  put_command_first(argc, argv);
  ask_for_help(argc, argv);
  return standard_written(run(argc, argv));
}
