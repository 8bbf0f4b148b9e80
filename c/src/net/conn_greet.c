/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-shake: TLS begins, and what each connection says first is answered. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "net/conn_parts.h"
#include "os/socket.h"

enum {
  GREET_AUTH,
  GREET_SELECT,
  GREET_NAME,
  GREET_LIB_NAME,
  GREET_LIB_VERSION,
  GREET_ROLE,
  GREET_DONE
};
enum { GREETING_WORDS = 4 }; /* of the longest */

static size_t greeting_command(const lk_conn *conn, unsigned which, lk_bytes *argv, char *number) {
  const lk_url *url = &conn->settings->url;
  size_t n = 0;
#define WORD(text) (argv[n].data = (text), argv[n].len = strlen(text), n++)
  if (which == GREET_AUTH && (url->user || url->password)) {
    WORD("AUTH");
    if (url->user) WORD(url->user);
    WORD(url->password ? url->password : ""); /* without it this would be the default user */
  } else if (which == GREET_SELECT && url->db != 0) {
    snprintf(number, 16, "%d", url->db);
    WORD("SELECT");
    WORD(number);
  } else if (which == GREET_NAME) {
    WORD("CLIENT");
    WORD("SETNAME");
    WORD(conn->settings->name);
  } else if (conn->informs && (which == GREET_LIB_NAME || which == GREET_LIB_VERSION)) {
    WORD("CLIENT");
    WORD("SETINFO");
    WORD(which == GREET_LIB_NAME ? "LIB-NAME" : "LIB-VER");
    WORD(which == GREET_LIB_NAME ? "latchkey" : lk_version());
  } else if (which == GREET_ROLE && conn->target->only_master) {
    WORD("ROLE");
  }
#undef WORD
  return n;
}

/* The next command of the hand-shake that this connection needs. */
static unsigned next_greeting(const lk_conn *conn, unsigned which) {
  lk_bytes argv[GREETING_WORDS];
  char number[16];
  while (which < GREET_DONE && greeting_command(conn, which, argv, number) == 0) which++;
  return which;
}

static bool append_greetings(lk_conn *conn) {
  conn->informs = conn->settings->informs && atomic_load(conn->settings->informs);
  for (unsigned which = GREET_AUTH; which < GREET_DONE; which++) {
    lk_bytes argv[GREETING_WORDS];
    char number[16];
    size_t argc = greeting_command(conn, which, argv, number);
    if (argc > 0 && !lk_conn_append_command(conn, argv, argc)) return false;
  }
  conn->greeting = next_greeting(conn, GREET_AUTH);
  return true;
}

void lk_conn_greet(lk_conn *conn, int64_t now_us) {
  if (conn->addresses) {
    lk_lookup_free(conn->addresses);
    conn->addresses = conn->address = NULL;
    conn->untried = 0;
    lk_socket_tune(conn->fd, conn->settings->keepalive_us);
  }
  conn->state = LK_CONN_GREETING;
  conn->answered = false;
  bool reads = lk_reader_open(&conn->reader, conn->limits);
  if (conn->settings->tls && lk_tls_start(conn->settings->tls, conn->site->host, conn->fd,
                                          &conn->tls, &conn->why) != LK_OK) {
    lk_conn_drop_for(conn, now_us);
    return;
  }
  if (!reads || !append_greetings(conn)) {
    lk_conn_drop(conn, now_us, LK_NOMEM, "out of memory");
    return;
  }
  lk_conn_flush(conn, now_us);
}

/* A server that does not know a command repeats what it was called with: AUTH's password, for one. */
static lk_status hear_refusal(const lk_conn *conn, const redisReply *reply, lk_error *refused) {
  const char *password = conn->settings->url.password;
  const char *words = strstr(reply->str, ", with args");
  const char *secret = password && *password ? strstr(reply->str, password) : NULL;
  size_t len = words ? (size_t)(words - reply->str) : reply->len;
  lk_status status = lk_fail_server(refused, NULL, reply->str, len);
  if (secret && secret < reply->str + len) {
    snprintf(refused->message, sizeof refused->message, "%s",
             *refused->code ? refused->code : "it repeats the password");
  }
  return status;
}

/* The name is for tools alone: who may not set it still may lock, also where CLIENT is renamed. */
static bool is_without_name(const lk_conn *conn, const redisReply *reply) {
  return conn->greeting == GREET_NAME && strncmp(reply->str, "ERR unknown command", 19) == 0;
}

/* Who refuses, and, where the credentials are at fault, which these are. */
static const char *refuser(const lk_conn *conn, lk_status status) {
  if (!conn->settings->to_sentinels) return "server";
  if (status != LK_AUTH && conn->greeting != GREET_AUTH) return "sentinel";
  return "sentinel, whose user and password are sentinel_user and sentinel_password in the URL,";
}

/* Whether a refusal in the hand-shake ends it. */
static bool greeting_refused(lk_conn *conn, const redisReply *reply) {
  lk_error refused;
  lk_status status = hear_refusal(conn, reply, &refused);
  const char *const who = refuser(conn, status);
  if (strncmp(reply->str, "ERR max number of clients", 25) == 0) {
    lk_conn_unreachable(conn, refused.message); /* said before it reads anything; it may pass */
  } else if (conn->greeting == GREET_AUTH) {
    lk_fail(&conn->why, LK_AUTH, "the %s refused the credentials: %s", who, refused.message);
  } else if (conn->greeting == GREET_SELECT) {
    lk_fail(&conn->why, status, "database %d: %s", conn->settings->url.db, refused.message);
  } else if (conn->greeting == GREET_LIB_NAME || conn->greeting == GREET_LIB_VERSION) {
    atomic_store(conn->settings->informs, false); /* known from Redis 7.2 on; no more of it */
    return false;
  } else if (status != LK_DENIED && !is_without_name(conn, reply)) {
    lk_fail(&conn->why, status, "the %s refused the connection: %s", who, refused.message);
  } else {
    return false;
  }
  memcpy(conn->why.code, refused.code, sizeof conn->why.code);
  return true;
}

/* What was a master a moment ago may be none any more; who may not ask learns it from READONLY. */
static bool is_replica(lk_conn *conn, const redisReply *reply) {
  if (conn->greeting != GREET_ROLE || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
    return false;
  }
  const redisReply *role = reply->element[0];
  if (role->type != REDIS_REPLY_STRING || strcmp(role->str, "master") == 0) return false;
  lk_fail(&conn->why, LK_READONLY, "%s is a replica: the fail-over is not over yet",
          conn->site->name);
  return true;
}

void lk_conn_hear_greetings(lk_conn *conn, int64_t now_us) {
  redisReply *reply;
  while (conn->state == LK_CONN_GREETING && (reply = lk_conn_next(conn, now_us)) != NULL) {
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    bool refused = is_error ? greeting_refused(conn, reply) : is_replica(conn, reply);
    freeReplyObject(reply);
    if (refused) {
      lk_conn_drop_for(conn, now_us);
      return;
    }
    conn->greeting = next_greeting(conn, conn->greeting + 1);
    if (conn->greeting == GREET_DONE) {
      conn->state = LK_CONN_UP;
      conn->up_us = now_us;
      conn->refused = false;
      conn->tried_well = true;
      if (conn->settings->connections) lk_count_up(conn->settings->connections);
      /* So that lk_conn_read() can wait. Everything else on the socket says that it does not. */
      if (!conn->tls) lk_socket_allow_waiting(conn->fd, LK_CONN_PATIENCE_US);
      lk_succeed(&conn->why);
    }
  }
}
