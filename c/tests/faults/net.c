/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOSS_PERCENT = 25, TEXT_SIZE = 512 };

struct net {
  char name[32];    /* of the namespace */
  char address[20]; /* in there; out here it ends in .1 */
  int inside, outside;
};

static bool run(const char *command) { return system(command) == 0; }

static bool is_there(const char *program) {
  char command[TEXT_SIZE];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
  return run(command);
}

static bool add_namespace(net *n) {
  char command[TEXT_SIZE];
  snprintf(n->name, sizeof n->name, "lkfaults%d", (int)getpid());
  snprintf(command, sizeof command, "ip netns add %s 2>/dev/null", n->name);
  return run(command);
}

static void remove_namespace(const net *n) {
  char command[TEXT_SIZE];
  snprintf(command, sizeof command, "ip netns del %s 2>/dev/null", n->name);
  if (!run(command)) fprintf(stderr, "faults: the namespace %s is left behind\n", n->name);
}

/* The process's number names it and chooses its network, so that runs do not meet. */
static bool make_cable(net *n) {
  int pid = (int)getpid();
  char command[TEXT_SIZE], outside[20];
  int high = 64 + pid / 64 % 64;
  int low = pid % 64 * 4;
  snprintf(outside, sizeof outside, "100.%d.99.%d", high, low + 1);
  snprintf(n->address, sizeof n->address, "100.%d.99.%d", high, low + 2);
  snprintf(command, sizeof command,
           "exec 2>/dev/null; "
           "ip link add lkf%d type veth peer name lkg%d netns %s && "
           "ip addr add %s/30 dev lkf%d && ip link set lkf%d up && "
           "ip -n %s addr add %s/30 dev lkg%d && ip -n %s link set lkg%d up && "
           "ip -n %s link set lo up",
           pid, pid, n->name, outside, pid, pid, n->name, n->address, pid, n->name, pid, n->name);
  return run(command);
}

static bool feed_nft(net *n, const char *rules) {
  char command[TEXT_SIZE];
  snprintf(command, sizeof command, "printf '%s' | ip netns exec %s nft -f - 2>/dev/null", rules,
           n->name);
  return run(command);
}

static bool open_both(net *n) {
  char path[64];
  snprintf(path, sizeof path, "/run/netns/%s", n->name);
  n->inside = open(path, O_RDONLY | O_CLOEXEC);
  n->outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  return n->inside >= 0 && n->outside >= 0;
}

static const char *fill_namespace(net *n) {
  if (!make_cable(n)) return "network namespaces with a virtual cable";
  bool good = open_both(n) &&
              feed_nft(n, "add table inet faults\\n"
                          "add chain inet faults in { type filter hook input priority 0; }\\n"
                          "add chain inet faults out { type filter hook output priority 0; }\\n");
  return good ? NULL : "nftables in a namespace";
}

net *net_make(const char **why) {
  net *n = calloc(1, sizeof *n);
  *why = NULL;
  if (!n)
    *why = "memory";
  else if (geteuid() != 0)
    *why = "root";
  else if (!is_there("ip"))
    *why = "the program ip";
  else if (!is_there("nft"))
    *why = "the program nft";
  else if (!add_namespace(n))
    *why = "network namespaces";
  if (*why) {
    free(n);
    return NULL;
  }
  n->inside = n->outside = -1;
  *why = fill_namespace(n);
  if (!*why) return n;
  net_remove(n);
  return NULL;
}

void net_remove(net *n) {
  if (!n) return;
  remove_namespace(n);
  if (n->inside >= 0) close(n->inside);
  if (n->outside >= 0) close(n->outside);
  free(n);
}

bool net_enter(net *n) { return setns(n->inside, CLONE_NEWNET) == 0; }
bool net_leave(net *n) { return setns(n->outside, CLONE_NEWNET) == 0; }
const char *net_address(const net *n) { return n->address; }

bool net_make_trouble(net *n, net_trouble trouble) {
  char rules[TEXT_SIZE / 2] = "flush chain inet faults in\\nflush chain inet faults out\\n";
  char *end = rules + strlen(rules);
  const size_t left = sizeof rules - strlen(rules);
  if (trouble == NET_PARTITION)
    snprintf(end, left,
             "add rule inet faults in drop\\n"
             "add rule inet faults out drop\\n");
  else if (trouble == NET_RESET)
    snprintf(end, left, "add rule inet faults in meta l4proto tcp reject with tcp reset\\n");
  else if (trouble == NET_LOSS)
    snprintf(end, left,
             "add rule inet faults in numgen random mod 100 < %d drop\\n"
             "add rule inet faults out numgen random mod 100 < %d drop\\n",
             LOSS_PERCENT, LOSS_PERCENT);
  return feed_nft(n, rules);
}
