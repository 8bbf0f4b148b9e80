/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a node, shared by all threads. Commands go out in the order they were given and
 * replies come back in that order. There is no thread behind it: one of those who wait drives it
 * (polls, reads, hands out the replies) and passes that role on; the keeper drives when nobody waits.
 */
#ifndef LK_PIPE_H
#define LK_PIPE_H

#include "net/conn.h"
#include "net/trace.h"
#include "net/tracks.h"
#include "net/watched.h"

typedef struct lk_pipe lk_pipe;
typedef struct lk_request lk_request;

/* How a request ended. */
typedef struct lk_answer {
  lk_status
      status; /* LK_OK: there is a reply, maybe an error of the server's. LK_UNSURE: it went out
                        and no reply came. LK_CLOSED. Else it never went out, and this is why. */
  redisReply *reply; /* owned by whoever gets the answer */
  int64_t sent_us;   /* when the copy that was answered went out */
  lk_pipe *via;      /* on which connection a call of a script was answered */
  unsigned copies;   /* how often it went out; earlier copies may have run, or may run still */
  bool elsewhere;    /* it had no reply, and is to be asked of whoever serves it now */
  char code[32];     /* the first word of the server's error, if that was it */
  char why[320];     /* what was wrong, unless LK_OK; as long as an lk_error's message */
} lk_answer;

/* Called when a request ends, on whichever thread drives, without any lock of the pipe's. */
typedef void (*lk_done)(void *user, lk_answer *answer);

/*
 * repeatable: it may go out again on a new connection when its reply was lost. deadline_us: no copy
 * goes out after it, and lk_pipe_wait() returns by then. NULL when there is no memory.
 */
lk_request *lk_request_new(const lk_bytes *argv, size_t argc, bool repeatable, int64_t deadline_us);

/* The server may take until its deadline, and holds up what comes behind it meanwhile. NULL is fine. */
void lk_request_slow(lk_request *request);
/* ASKING goes out in front of it, in one piece. NULL is fine. */
void lk_request_ask(lk_request *request);
/* A failure to connect ends it at once, also one a moment ago, when none is to be tried yet. NULL is fine. */
void lk_request_hurry(lk_request *request);
/* It may wait for others, to go out in one piece with them: until lk_pipe_flush(), or until the keeper
 * comes round. Whoever starts it sees to one of both. NULL is fine. */
void lk_request_gather(lk_request *request);
/* It counts in its track until it has ended, and takes that over from here. NULL is fine: it counts no more. */
void lk_request_claim(lk_request *request, lk_claim *claim);
/* Of one that was not sent. NULL is fine. */
void lk_request_free(lk_request *request);
/* What happens to the request is told of this call; it is kept until then. NULL is fine. */
void lk_request_trace(lk_request *request, lk_traced *call);

/*
 * poll_us: whoever drives looks for a reply so long before it sleeps; -1: as long as pays. command_us: a
 * connection whose oldest request is older than this is taken for dead. `poke` wakes the
 * keeper, who then asks lk_pipe_watch() what to do.
 */
lk_pipe *lk_pipe_new(lk_target *target, int64_t command_us, int64_t poll_us, void (*poke)(void *),
                     void *poked);
/* A second connection to the same server, for calls that are followed by WAIT: that counts only what its
 * own connection has written, and holds up what comes behind it. Made when it is first asked for: *made
 * says that the keeper does not know it yet. NULL: no memory. It ends with this one. */
lk_pipe *lk_pipe_twin(lk_pipe *pipe, bool *made);
/* Until the first connection is up, a failure to connect ends what waits for it at once. */
void lk_pipe_opening(lk_pipe *pipe, bool opening);
/* There is another connection: what waits for this one ends as `elsewhere` when it cannot be made, and nobody is told
 * when it is back. Before anything is sent. */
void lk_pipe_spare(lk_pipe *pipe);
/* Ends every request with LK_CLOSED, now and later. */
void lk_pipe_shut(lk_pipe *pipe);
/* After lk_pipe_shut(): waits until no thread is in lk_pipe_send() any more. The call whose request it sent may have
 * ended by then. */
void lk_pipe_settle(lk_pipe *pipe);
/* After lk_pipe_settle(), when nobody is in a call any more. NULL is fine. */
void lk_pipe_free(lk_pipe *pipe);

/* Who polls this descriptor, and calls lk_pipe_read() when it is readable, reads in the keeper's place as long
 * as nobody blocks in lk_pipe_call(). -1: nobody does. Before anything is sent. */
void lk_pipe_poller(lk_pipe *pipe, int poller);
/* Take what has come, and run what it ends, on this thread. false: nothing came. */
bool lk_pipe_read(lk_pipe *pipe);
/* How long it pays to look for a reply before who reads so sleeps. */
int64_t lk_pipe_look_us(lk_pipe *pipe);

/* Start a request; `done` gets its answer. The request belongs to the pipe from here on. */
void lk_pipe_send(lk_pipe *pipe, lk_request *request, lk_done done, void *user);
/* A request that goes out in one piece with the next one, right in front of it. Nobody gets its
 * answer. */
void lk_pipe_send_ahead(lk_pipe *pipe, lk_request *request);
/* A request that goes out before whatever else waits for the connection. Nobody gets its answer. */
void lk_pipe_send_first(lk_pipe *pipe, lk_request *request);
/* What was to go out so, and has not yet, does not. */
void lk_pipe_drop_first(lk_pipe *pipe);
/* What was gathered goes out. */
void lk_pipe_flush(lk_pipe *pipe);
/* Start a request and wait for its answer, at most until its deadline. */
void lk_pipe_call(lk_pipe *pipe, lk_request *request, lk_answer *answer);

/* Its target is at another place now. */
void lk_pipe_moved(lk_pipe *pipe);
/* Others serve now what this node did: unless it answers still, what waits for it ends as `elsewhere`. */
void lk_pipe_evict(lk_pipe *pipe);
/* The connection that answered what was sent then is of no use: it is made anew. false: there is a later one. */
bool lk_pipe_distrust(lk_pipe *pipe, int64_t sent_us);
/* Where the connection leads to: a number for each address; 0: it is not up. */
uint64_t lk_pipe_place(const lk_pipe *pipe);
/* Have callers waited for each other so much that a second connection pays? Asks for it once a minute. */
bool lk_pipe_is_crowded(lk_pipe *pipe);

/* For the keeper. */
lk_watched *lk_pipe_watched(lk_pipe *pipe);

#endif
