/* SPDX-License-Identifier: Apache-2.0 */
/* What a scene plays on: a client beside a server, and what is to be closed at its end. */
#ifndef LK_TEST_STAGE_H
#define LK_TEST_STAGE_H

#include <latchkey/counters.h>
#include <latchkey/latchkey.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "live/server.h"

enum { STAGE_KEPT = 32 };

typedef struct stage {
  server *srv;
  lk_client *client; /* NULL: it could not be opened */
  lk_error error;
  bool troubled;   /* a call came to something else than it does where nothing is refused */
  bool slow;       /* and nothing had been refused: the machine had too much to do */
  char wrong[512]; /* what should not have happened; "": nothing */
  struct {
    void (*close)(void *handle);
    void *handle;
  } kept[STAGE_KEPT];
  int n_kept;
} stage;

typedef struct scene {
  const char *name;
  void (*play)(stage *st);
  bool opens; /* it opens its client by itself */
} scene;

extern const scene scenes[];
extern const size_t n_scenes;

/* Did the call come to what it comes to where nothing is refused? If not, is that among what it may? */
#define SAY(expected, call) stage_say(st, (expected), (call), #call)
bool stage_say(stage *st, lk_status expected, lk_status got, const char *call);
/* What must be so, whatever was refused. */
#define HOLDS(condition) stage_holds(st, (condition), #condition)
void stage_holds(stage *st, bool holds, const char *condition);

/* Closed when the scene is over, the last first. NULL is fine. */
void stage_keep(stage *st, void (*close)(void *handle), void *handle);
void stage_close_kept(stage *st);

/* With defaults that give up soon. */
lk_client_options stage_options(void);
void stage_open(stage *st, const lk_client_options *options);
/* They are kept. NULL: it could not be opened. */
lk_lock *stage_lock(stage *st, lk_kind kind, const char *name, const lk_lock_options *options);
lk_caller *stage_caller(stage *st);

/* What the server says, whatever is refused to others. */
long long stage_ask(stage *st, const char *format, const char *name);
void stage_pause(void);
/* Until the other threads sleep, but not for long: what one of them does at a fork, its child finds half done, also
 * in the sanitizers' own books of memory and threads. */
void stage_until_others_sleep(void);

/* The end of an operation. */
typedef struct ended {
  lk_status status;
  lk_reply *reply;
  lk_permit *permit;
  bool wants_reply, wants_permit;
  bool unsaid; /* a failure came without its error */
  atomic_bool told;
} ended;
void stage_done(lk_op *op, lk_status status, const lk_error *error, void *the_ended);
/* Dispatches until it is told, which it must be. */
bool stage_await(stage *st, lk_status expected, lk_status started, ended *e, const char *call);
#define AWAIT(expected, e, call) stage_await(st, (expected), (call), (e), #call)

#endif
