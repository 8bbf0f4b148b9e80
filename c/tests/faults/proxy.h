/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loopback TCP proxy that disturbs what goes through it. A thread of its own moves the bytes;
 * any thread may ask for trouble. Bytes are delayed or lost with their connection, never changed,
 * doubled or reordered: TCP does not do that either.
 */
#ifndef FAULTS_PROXY_H
#define FAULTS_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct proxy proxy;

typedef enum proxy_way { PROXY_UP = 1, PROXY_DOWN = 2, PROXY_BOTH = 3 } proxy_way;

typedef enum proxy_trouble {
  PROXY_CUT,   /* both ends are closed, with a reset when ms is 0 */
  PROXY_DELAY, /* for ms, nothing goes this way */
  PROXY_HALF,  /* this way is closed, and after ms the other one */
  PROXY_DROP,  /* the next call goes through; its reply and all after it are lost, and ms later the
                * connection is closed */
  PROXY_SLOW   /* for ms, at most PROXY_SLOW_RATE bytes a second go either way */
} proxy_trouble;

enum { PROXY_SLOW_RATE = 3000, PROXY_ALL = -1 };

/* To a TCP address in numbers. NULL: errno says why. */
proxy *proxy_start(const char *host, int port);
void proxy_stop(proxy *p);
int proxy_port(const proxy *p);

/* Troubles the link at `pick` modulo their count, or all. Says how many it troubled. */
int proxy_make(proxy *p, proxy_trouble trouble, proxy_way way, int pick, int64_t ms);

/* PROXY_DROP waits for a call. When did a link begin to lose replies, and when does it end? Each is told once;
 * false: there are no others. */
bool proxy_next_drop(proxy *p, int64_t *from_us, int64_t *until_us);
/* Links that have lost nothing until now lose nothing any more. */
void proxy_spare(proxy *p);

#endif
