/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include "../torture/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A hold that nobody can give back any more stands in the way so long, and hides what comes
 * after. The order of fair locks is judged from this lease on.
 */
enum { LONG_LEASE_MS = 5000 };

static const unsigned OF_A_SERVER = (1u << FAULT_FAILOVER) - 1 - (1u << FAULT_STALL);
static const unsigned OF_SENTINELS = 1u << FAULT_KILL | 1u << FAULT_STOP | 1u << FAULT_CLOSE |
                                     1u << FAULT_FLUSH | 1u << FAULT_FAILOVER;
static const unsigned OF_A_CLUSTER = OF_SENTINELS | 1u << FAULT_MOVE;

static const char usage[] =
    "usage: faults [options]\n"
    "The torture's workers take locks on a server of the run's own, by way of a proxy and past "
    "it,\n"
    "while everything that can go wrong does; the torture's checker judges.\n"
    "\n"
    "  --faults LIST     of the kinds below (all of them)\n"
    "  --topology NAME   standalone; sentinel or cluster, whose replicas take over, and which "
    "have\n"
    "                    only the faults kill, stop, close, flush and failover; of a cluster, "
    "move\n"
    "  --admit           a server that is never disturbed admits the writes of fenced locks\n"
    "  --tls             the server and the workers speak TLS\n"
    "  --seconds N, --seed N, --processes N, --threads N, --locks N, --kind LIST, --functions,\n"
    "  --scripts DIR, --trace DIR, --history DIR, --judge DIR, --long-lease MS (5000),\n"
    "  --min-replicas N\n"
    "                    as the torture has them: torture --help\n"
    "\n"
    "faults:";

static const char ending[] =
    "\nEach fault is a line of faults.log: when, in which round, and what. The seed repeats the\n"
    "choices of a run, not its timing.\n"
    "Exit status: 0 all was well, 1 it was not, 2 the run could not be made, 64 misuse, 128 + N\n"
    "signal N ended it.\n";

static _Noreturn void help(void) {
  fputs(usage, stdout);
  for (int kind = FAULT_KILL; kind < FAULT_KINDS; kind++)
    printf(" %s", fault_name((fault_kind)kind));
  fputs(ending, stdout);
  exit(0);
}

static _Noreturn void misuse(const char *what, const char *value) {
  fprintf(stderr, "faults: %s '%s'; --help shows the options\n", what, value);
  exit(64);
}

static unsigned faults_of(const char *list) {
  unsigned faults = 0;
  char copy[256];
  snprintf(copy, sizeof copy, "%s", list);
  for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
    int kind = FAULT_KILL;
    while (kind < FAULT_KINDS && strcmp(word, fault_name((fault_kind)kind)) != 0) kind++;
    if (kind == FAULT_KINDS) misuse("no such fault:", word);
    faults |= 1u << kind;
  }
  if (!faults) misuse("no fault in", list);
  return faults;
}

static topology topology_of(const char *name) {
  static const char *const names[] = {"standalone", "sentinel", "cluster"};
  for (int i = 0; i < 3; i++)
    if (strcmp(name, names[i]) == 0) return (topology)i;
  misuse("no such topology:", name);
}

/* Is it this option, whose value stands behind it or behind a `=`? */
static bool is_option(const char *name, int argc, char **argv, int *at, const char **value) {
  const char *word = argv[*at];
  size_t len = strlen(name);
  if (strncmp(word, name, len) != 0 || (word[len] != '\0' && word[len] != '=')) return false;
  if (word[len] == '=') {
    *value = word + len + 1;
  } else {
    if (*at + 1 >= argc) misuse("a value is missing after", word);
    *value = argv[++*at];
  }
  return true;
}

/* Takes its own options out, and leaves the others to the torture. */
settings settings_read(int argc, char **argv) {
  settings set = {.faults = 0};
  char **rest = calloc((size_t)argc + 1, sizeof *rest);
  int count = 0;
  if (!rest) exit(2);
  for (int i = 0; i < argc; i++) {
    const char *value;
    if (strcmp(argv[i], "--help") == 0) {
      help();
    } else if (strcmp(argv[i], "--tls") == 0) {
      set.tls = true;
    } else if (strcmp(argv[i], "--admit") == 0) {
      set.admit = true;
    } else if (is_option("--faults", argc, argv, &i, &value)) {
      set.faults = faults_of(value);
    } else if (is_option("--topology", argc, argv, &i, &value)) {
      set.topology = topology_of(value);
    } else {
      rest[count++] = argv[i];
    }
  }
  const unsigned all[] = {OF_A_SERVER, OF_SENTINELS, OF_A_CLUSTER};
  if (!set.faults) set.faults = all[set.topology];
  set.torture = options_read(count, rest);
  if (set.torture.faults != FAULTS_NOT_GIVEN) misuse("an option is to be written out:", "--faults");
  if (!set.torture.long_lease_ms) set.torture.long_lease_ms = LONG_LEASE_MS;
  free(rest);
  return set;
}
