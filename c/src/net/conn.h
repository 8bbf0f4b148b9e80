/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: connect, TLS, hand-shake, back-off. It never blocks; whoever owns it polls
 * its descriptor and calls lk_conn_step(). Not thread-safe: the owner's mutex guards it.
 *
 * hiredis parses the replies. Its sockets are not used: they raise SIGPIPE, and without blocking they
 * try only the first address of a name and do not check the name in a certificate.
 */
#ifndef LK_CONN_H
#define LK_CONN_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/url.h"
#include "harness/counts.h"
#include "net/reader.h"
#include "os/lookup.h"
#include "os/tls.h"

/* What every connection of a client has in common; lives as long as they do. */
typedef struct lk_conn_settings {
  lk_url url; /* who connects, how, and to which database */
  char *name; /* CLIENT SETNAME */
  int64_t connect_us;
  int64_t
      keepalive_us; /* silent for so long, it is asked whether it is there; 0: the system's way */
  lk_count *connections; /* counts them; NULL: nobody does */
  lk_tls *tls;           /* NULL without TLS */
  atomic_bool *informs;  /* servers are told the library's name and version; NULL: never */
  bool to_sentinels;     /* whose user and password are other ones */
} lk_conn_settings;

/* Where a server listens; it lives as long as the client. */
typedef struct lk_site lk_site;
struct lk_site {
  char *host; /* NULL for a socket */
  int port;
  char *path;
  char *name; /* for people: redis://host:port/db */
  lk_site *next;
};

/* One server, as those who connect to it see it: it may move to another place while they live. */
typedef struct lk_target lk_target;
struct lk_target {
  const lk_conn_settings *settings;
  _Atomic(const lk_site *) site;
  bool only_master; /* a connection to a replica is of no use */
  /* NULL, or told that a connection failed or could not be made: in the mutex of its owner. */
  void (*failed)(lk_target *target);
  /* NULL, or told that the calls' connection is up again which was lost at lost_us: in the mutex of its owner. */
  void (*returned)(lk_target *target, int64_t lost_us);
};

typedef enum lk_conn_state {
  LK_CONN_DOWN = 0,       /* waits for retry_us */
  LK_CONN_CONNECTING = 1, /* the name is looked up; TCP */
  LK_CONN_GREETING = 2,   /* TLS, AUTH, SELECT, SETNAME, SETINFO */
  LK_CONN_UP = 3
} lk_conn_state;

/* Bytes that wait for the socket to take them: sent..len. */
typedef struct lk_outbox {
  char *bytes;
  size_t sent, len, size;
} lk_outbox;

/* A descriptor that another than the connection's owner uses without the owner's mutex. */
typedef struct lk_loan {
  int fd;    /* -1: nobody does */
  bool left; /* it is not the connection's any more: the last who uses it closes it */
} lk_loan;

typedef struct lk_conn {
  lk_target *target;
  const lk_conn_settings *settings; /* the target's */
  const lk_site *site;              /* where it goes, or went last */
  lk_conn_state state;
  int fd;          /* -1 when down */
  lk_loan polled;  /* by the keeper */
  lk_loan sending; /* by who writes what lk_conn_lend() gave */
  int poller;      /* whoever polls this sees what can be read; -1: nobody */
  lk_tls_session *tls;
  lk_lookup *lookup;             /* of the name; while it is waited for fd is its descriptor */
  const lk_site *sought;         /* whose name that is: an attempt after it may wait for the same */
  int64_t stale_us;              /* what it said is forgotten then */
  struct addrinfo *addresses;    /* while connecting */
  struct addrinfo *address;      /* the one that is tried */
  size_t untried;                /* so many are left, it included */
  int64_t address_us;            /* how long it is tried, while others are left */
  struct sockaddr_storage tried; /* the last that was; length 0: none */
  socklen_t tried_len;
  bool tried_well; /* it led to a server: the next attempt begins there, else behind it */
  const lk_reply_limits *limits;
  lk_reader reader;
  lk_outbox first;     /* the rest of what was lent; else empty, for the next loan */
  lk_outbox out;       /* goes out behind it */
  bool more;           /* somebody wanted to send while another did */
  int64_t deadline_us; /* of the connect with its hand-shake */
  int64_t retry_us;    /* when to try again, while down */
  unsigned failures;   /* in a row */
  unsigned refusals;   /* in a row: given up for what it answered, soon after it was up */
  int64_t up_us;       /* since then, or then at last */
  int64_t lost_us;     /* when it was lost, the last time that it had been up; 0: it never was */
  bool answered;       /* a reply has come on this connection */
  bool refused;        /* it could not be made, at the last attempt */
  unsigned greeting;   /* the hand-shake command whose reply is next */
  bool informs;        /* it has sent SETINFO */
  lk_error why;        /* why it is down; LK_OK before the first attempt */
} lk_conn;

void lk_conn_init(lk_conn *conn, lk_target *target, const lk_reply_limits *limits);
/* Frees everything; the connection is down. */
void lk_conn_close(lk_conn *conn);

/* Bring a connection that is down on its way. */
void lk_conn_start(lk_conn *conn, int64_t now_us);
/* Go on with what poll() said (0: nothing). After it the state may be any. */
void lk_conn_step(lk_conn *conn, short revents, int64_t now_us);
/* Is it, or is it to be, where its target no longer is? */
bool lk_conn_is_astray(const lk_conn *conn);
/* If so: the connection is down, and may be started at once. */
void lk_conn_come_back(lk_conn *conn, int64_t now_us);
/* Give the connection up; it may be started again after a back-off. */
void lk_conn_drop(lk_conn *conn, int64_t now_us, lk_status status, const char *message);
/* The same for what it answered: though it answers, the back-off doubles while that goes on. */
void lk_conn_refuse(lk_conn *conn, int64_t now_us, lk_status status, const char *message);

/* Another than its owner is about to poll conn->fd, and has done so. In between it stays open, though the
 * connection may be given up: its number would be another file's, perhaps of the application's. */
void lk_conn_poll_begins(lk_conn *conn);
void lk_conn_poll_ends(lk_conn *conn);

/* From now on whoever polls `poller` sees that something can be read, until it is hidden or given up. */
bool lk_conn_show(lk_conn *conn, int poller);
void lk_conn_hide(lk_conn *conn);

/* For poll(): what to wait for, besides conn->fd. */
short lk_conn_events(const lk_conn *conn);
/* When a connection that is not up needs a step or a start without any event; INT64_MAX: never. */
int64_t lk_conn_timer(const lk_conn *conn);

/* Append a command; it goes out with lk_conn_flush(). Only while up. */
bool lk_conn_append(lk_conn *conn, const char *wire, size_t len);
/* So much more can be appended without fail. */
bool lk_conn_reserve(lk_conn *conn, size_t len);
/* The same for a command; false without memory. */
bool lk_conn_append_command(lk_conn *conn, const lk_bytes *argv, size_t argc);
void lk_conn_flush(lk_conn *conn, int64_t now_us);
/* The same for who may not close the connection: false if bytes are left, for whatever reason. */
bool lk_conn_try_flush(lk_conn *conn);
/* Are there bytes that the socket did not take yet, and nobody sends? */
bool lk_conn_has_output(const lk_conn *conn);
/*
 * The same outside of the owner's mutex, by one at a time: what is appended meanwhile goes out behind it. Of
 * lent->bytes those from lent->sent on are to be sent on conn->sending.fd, and given back with what
 * lk_socket_send() returned; the connection may have been given up by then. lk_conn_lend(): false where nothing is
 * to be sent so. lk_conn_give_back(): false if a flush is to follow.
 */
bool lk_conn_lend(lk_conn *conn, lk_outbox *lent);
bool lk_conn_give_back(lk_conn *conn, lk_outbox *lent, ssize_t n);
/* The next reply that has arrived (lk_conn_step() reads), NULL if there is none. */
redisReply *lk_conn_next(lk_conn *conn, int64_t now_us);

/*
 * The quick way, for an owner that reads outside of its mutex while nobody else reads: a connection that is
 * up, without TLS, and has nothing left to send that nobody sends. lk_conn_read() waits until something comes, for
 * at most LK_CONN_PATIENCE_US, or not at all; the owner hands on what it returned.
 */
enum { LK_CONN_READ_SIZE = 16384, LK_CONN_PATIENCE_US = 20 * 1000 };
bool lk_conn_is_quick(const lk_conn *conn);
ssize_t lk_conn_read(int fd, char buffer[LK_CONN_READ_SIZE], bool wait);
/* n as lk_conn_read() returned it. */
void lk_conn_take(lk_conn *conn, const char *buffer, ssize_t n, int64_t now_us);

#endif
