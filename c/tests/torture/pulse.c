/* SPDX-License-Identifier: Apache-2.0 */
/* On each processor sleeps a thread, and looks how late it wakes: the system may be busy in its own code there, as
 * where a process of many gigabytes ends, or the machine be a guest whose host has others to serve. */
#define _GNU_SOURCE
#include "pulse.h"

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum {
  PULSE_MS = 20,
  LATE_MS = 400, /* a third of what a waiter may take to wake: what is busy is no standstill */
  PROCESSORS_MAX = 64
};

static struct {
  history_file *to;
  pthread_t threads[PROCESSORS_MAX];
  int count;
  atomic_bool ends;
} pulse;

static void *beat(void *unused) {
  (void)unused;
  while (!atomic_load(&pulse.ends)) {
    const int64_t from_us = history_now_us();
    nanosleep(&(struct timespec){.tv_nsec = PULSE_MS * 1000000L}, NULL);
    const record r = {
        .at_us = from_us, .until_us = history_now_us(), .status = FAULT_STALL, .process = -1};
    if (r.until_us - from_us > LATE_MS * 1000) history_write(pulse.to, OP_FAULT, &r);
  }
  return NULL;
}

/* Where threads cannot be bound, nothing is seen but what the parent sees by itself. */
static void begin_on(size_t processor) {
  pthread_attr_t attributes;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  if (pthread_attr_init(&attributes) != 0) return;
  if (pthread_attr_setaffinity_np(&attributes, sizeof only, &only) == 0 &&
      pthread_create(&pulse.threads[pulse.count], &attributes, beat, NULL) == 0) {
    pulse.count++;
  }
  pthread_attr_destroy(&attributes);
}

void pulse_begin(history_file *to) {
  cpu_set_t all;
  pulse.to = to;
  pulse.count = 0;
  atomic_store(&pulse.ends, false);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (size_t i = 0; i < CPU_SETSIZE && pulse.count < PROCESSORS_MAX; i++)
    if (CPU_ISSET(i, &all)) begin_on(i);
}

void pulse_end(void) {
  atomic_store(&pulse.ends, true);
  for (int i = 0; i < pulse.count; i++) pthread_join(pulse.threads[i], NULL);
}
