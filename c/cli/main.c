/* SPDX-License-Identifier: Apache-2.0 */
/* The program `latchkey`: which command it is. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "--help";
  if (strcmp(command, "--version") == 0) {
    printf("latchkey %s\n", lk_version());
    return CLI_DONE;
  }
  if (strcmp(command, "exec") == 0) return exec_main(argc - 1, argv + 1);
  if (strcmp(command, "bench") == 0) return bench_main(argc - 1, argv + 1);
  return lua_main(argc, argv);
}
