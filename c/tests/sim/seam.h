/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped calls: how often each of them misbehaves, and what their points are called in the hash. */
#ifndef SIM_SEAM_H
#define SIM_SEAM_H

#include <stdint.h>

enum {
  POINT_THREAD = 1,
  POINT_LOCK,
  POINT_UNLOCK,
  POINT_SIGNAL,
  POINT_WAIT,
  POINT_CLOCK,
  POINT_POLL,
  POINT_CLOSE,
  POINT_READ,
  POINT_WRITE,
  POINT_CONNECT,
  POINT_SEND,
  POINT_RECV
};

/* Chances in a million. */
typedef struct seam_rates {
  unsigned spurious_ppm;  /* a wait ends without a cause; EINTR */
  unsigned short_ppm;     /* a read or write is partial */
  unsigned full_ppm;      /* a socket takes nothing now */
  unsigned slow_ppm;      /* a packet takes up to 30 ms */
  unsigned late_ppm;      /* a packet takes up to 700 ms */
  unsigned hole_ppm;      /* a connection that is being made hears nothing */
  unsigned refuse_ppm;    /* or is refused */
  unsigned no_name_ppm;   /* a look-up fails, or takes seconds */
  unsigned no_memory_ppm; /* an allocation fails */
  unsigned no_thread_ppm;
  unsigned no_fd_ppm;
  unsigned aside_points; /* a thread is put aside about once in so many points; 0: never */
  unsigned aside_us;     /* for up to this long */
  unsigned behind_ppm;   /* a message on a channel is behind the replies on other connections */
  unsigned behind_us;    /* by up to this */
} seam_rates;

extern seam_rates seam;

#endif
