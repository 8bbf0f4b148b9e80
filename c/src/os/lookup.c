/* SPDX-License-Identifier: Apache-2.0 */
#include "os/lookup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "os/thread.h"
#include "os/wake.h"

struct lk_lookup {
  atomic_uint refs; /* of who asked, and of the thread */
  atomic_bool ended;
  lk_wake wake;
  int failed; /* what getaddrinfo() said */
  struct addrinfo *addresses;
  int port;
  char host[];
};

static int lookup_ask(const char *host, int port, int flags, struct addrinfo **out) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
  char service[16];
  *out = NULL;
  snprintf(service, sizeof service, "%d", port);
  int failed = getaddrinfo(host, service, &hints, out);
  if (failed) *out = NULL;
  return failed;
}

int lk_lookup_address(const char *host, int port, struct addrinfo **out) {
  return lookup_ask(host, port, AI_NUMERICHOST, out);
}

const char *lk_lookup_says(int failed) { return gai_strerror(failed); }

void lk_lookup_free(struct addrinfo *addresses) {
  if (addresses) freeaddrinfo(addresses);
}

void lk_lookup_drop(lk_lookup *lookup) {
  if (!lookup || atomic_fetch_sub(&lookup->refs, 1) != 1) return;
  lk_lookup_free(lookup->addresses);
  lk_wake_close(&lookup->wake);
  free(lookup);
}

static void *lookup_run(void *argument) {
  lk_lookup *lookup = argument;
  lookup->failed = lookup_ask(lookup->host, lookup->port, 0, &lookup->addresses);
  atomic_store(&lookup->ended, true);
  lk_wake_ring(&lookup->wake);
  lk_lookup_drop(lookup);
  return NULL;
}

static bool start_thread(lk_lookup *lookup) {
  lk_thread thread;
  bool started = lk_thread_start(&thread, lookup_run, lookup) == 0;
  if (started) lk_thread_leave(thread);
  return started;
}

lk_lookup *lk_lookup_start(const char *host, int port) {
  size_t len = strlen(host);
  lk_lookup *lookup = calloc(1, sizeof *lookup + len + 1);
  if (!lookup) return NULL;
  memcpy(lookup->host, host, len + 1);
  lookup->port = port;
  atomic_init(&lookup->refs, 2);
  atomic_init(&lookup->ended, false);
  if (lk_wake_open(&lookup->wake) && start_thread(lookup)) return lookup;
  lk_wake_close(&lookup->wake);
  free(lookup);
  return NULL;
}

int lk_lookup_fd(const lk_lookup *lookup) { return lookup ? lookup->wake.readable : -1; }

bool lk_lookup_has_ended(lk_lookup *lookup) { return atomic_load(&lookup->ended); }

int lk_lookup_take(lk_lookup *lookup, struct addrinfo **out) {
  *out = lookup->addresses;
  lookup->addresses = NULL;
  return lookup->failed;
}
