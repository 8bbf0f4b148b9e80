/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MAX = 64, TRIES = 2000, PAUSE_MS = 5 };

struct server {
  pid_t pid; /* 0: not running */
  int port;
  bool tls;
  char *password;
  char dir[64];
  char path[160];
  char url[160];
  char tcp_url[64];
  char *argv[ARGS_MAX];
  size_t argc;
  redisContext *look;
};

/* ------------------------------------------------------------------------------------- process -- */

int server_free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t size = sizeof at;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
  close(fd);
  return ntohs(at.sin_port);
}

static void add_arg(server *s, const char *arg) {
  assert_true(s->argc + 1 < ARGS_MAX);
  s->argv[s->argc++] = strdup(arg);
}

void server_add_args(server *s, const char *const *args) {
  for (; args && *args; args++) add_arg(s, *args);
}

static redisContext *connect_socket(server *s) {
  redisContext *c = redisConnectUnix(server_file(s, "redis.sock"));
  if (c && c->err) {
    redisFree(c);
    c = NULL;
  }
  return c;
}

static bool answers(server *s) {
  redisContext *c = connect_socket(s);
  if (!c) return false;
  redisReply *reply = redisCommand(c, "PING");
  bool got = reply != NULL;
  freeReplyObject(reply);
  redisFree(c);
  return got;
}

static void launch(server *s) {
  s->pid = fork();
  assert_true(s->pid >= 0);
  if (s->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    execvp("redis-server", s->argv);
    _exit(127);
  }
  for (int i = 0; i < TRIES && !answers(s); i++) {
    if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
      s->pid = 0;
      fail_msg("redis-server ended; see %s", server_file(s, "log"));
    }
    poll(NULL, 0, PAUSE_MS);
  }
}

static void hang_up(server *s) {
  if (s->look) redisFree(s->look);
  s->look = NULL;
}

void server_kill(server *s) {
  hang_up(s);
  if (s->pid == 0) return;
  kill(s->pid, SIGKILL);
  waitpid(s->pid, NULL, 0);
  s->pid = 0;
}

bool server_is_down(const server *s) { return s->pid == 0; }
void server_restart(server *s) { launch(s); }
void server_pause(server *s) { assert_int_equal(kill(s->pid, SIGSTOP), 0); }
void server_resume(server *s) { assert_int_equal(kill(s->pid, SIGCONT), 0); }

/* ------------------------------------------------------------------------------------- its TLS -- */

static void run_shell(server *s, const char *script) {
  char command[1024];
  int len =
      snprintf(command, sizeof command, "cd '%s' && { %s; } >openssl.log 2>&1", s->dir, script);
  assert_in_range(len, 1, sizeof command - 1);
  assert_int_equal(system(command), 0);
}

/* Certificates for 127.0.0.1 and locks.example under ca; `other` is an authority that signed none. */
static void make_certificates(server *s) {
  run_shell(s, "for ca in ca other; do openssl req -x509 -newkey ec -pkeyopt "
               "ec_paramgen_curve:prime256v1 -nodes -keyout $ca.key -out $ca.crt -days 2 "
               "-subj /CN=$ca || exit 1; done");
  run_shell(s, "printf 'subjectAltName=IP:127.0.0.1,DNS:locks.example\\n' >names && "
               "for who in server client; do openssl req -newkey ec -pkeyopt "
               "ec_paramgen_curve:prime256v1 -nodes -keyout $who.key -out $who.csr -subj /CN=$who "
               "&& openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
               "-extfile names -out $who.crt || exit 1; done");
}

static void use_certificates(server *s, const server *of) {
  static const char *const files[][2] = {{"--tls-cert-file", "server.crt"},
                                         {"--tls-key-file", "server.key"},
                                         {"--tls-ca-cert-file", "ca.crt"}};
  for (size_t i = 0; i < 3; i++) {
    add_arg(s, files[i][0]);
    char path[160];
    snprintf(path, sizeof path, "%s/%s", of->dir, files[i][1]);
    add_arg(s, path);
  }
  server_add_args(s, (const char *const[]){"--tls-auth-clients", "optional", NULL});
}

/* ------------------------------------------------------------------------------------ topology -- */

/* LATCHKEY_TEST_TOPOLOGY=cluster: each server is a cluster of its own, and its URLs say so. */
static bool is_cluster(void) {
  const char *topology = getenv("LATCHKEY_TEST_TOPOLOGY");
  return topology && strcmp(topology, "cluster") == 0;
}

static bool says_ok(server *s) {
  redisReply *reply = server_ask(s, "CLUSTER INFO");
  bool ok = strstr(reply->str, "cluster_state:ok") != NULL;
  freeReplyObject(reply);
  return ok;
}

static void take_all_slots(server *s) {
  server_do(s, "CLUSTER ADDSLOTSRANGE 0 16383");
  for (int i = 0; i < TRIES && !says_ok(s); i++) poll(NULL, 0, PAUSE_MS);
}

/* ------------------------------------------------------------------------------- start and stop -- */

server *server_start(const server_options *options) {
  static const server_options defaults = {0};
  if (!options) options = &defaults;
  server *s = calloc(1, sizeof *s);
  assert_non_null(s);
  strcpy(s->dir, "/tmp/latchkey-test-XXXXXX");
  assert_non_null(mkdtemp(s->dir));
  s->port = server_free_port();
  s->tls = options->tls;
  char port[16];
  snprintf(port, sizeof port, "%d", s->port);
  snprintf(s->url, sizeof s->url, "unix://%s/redis.sock", s->dir);
  snprintf(s->tcp_url, sizeof s->tcp_url, "%s://127.0.0.1:%d", s->tls ? "rediss" : "redis",
           s->port);

  server_add_args(s, (const char *const[]){"redis-server", "--bind", "127.0.0.1", "--port",
                                           s->tls ? "0" : port, "--tls-port", s->tls ? port : "0",
                                           "--dir", s->dir, "--save", "", "--unixsocket", NULL});
  add_arg(s, server_file(s, "redis.sock"));
  add_arg(s, "--logfile");
  add_arg(s, server_file(s, "log"));
  if (s->tls && !options->like) make_certificates(s);
  if (s->tls) use_certificates(s, options->like ? options->like : s);
  if (options->password) {
    s->password = strdup(options->password);
    server_add_args(s, (const char *const[]){"--requirepass", options->password, NULL});
  }
  server_add_args(s, options->args);
  bool alone = is_cluster() && !options->part;
  if (alone) {
    char bus[16];
    snprintf(bus, sizeof bus, "%d", server_free_port());
    server_add_args(s,
                    (const char *const[]){"--cluster-enabled", "yes", "--cluster-port", bus, NULL});
    snprintf(s->tcp_url, sizeof s->tcp_url, "redis%s-cluster://127.0.0.1:%d", s->tls ? "s" : "",
             s->port);
    strcpy(s->url, s->tcp_url);
  }
  launch(s);
  if (alone) take_all_slots(s);
  return s;
}

void server_stop(server *s) {
  if (!s) return;
  char command[100];
  server_kill(s);
  snprintf(command, sizeof command, "rm -rf -- '%s'", s->dir);
  assert_int_equal(system(command), 0);
  while (s->argc > 0) free(s->argv[--s->argc]);
  free(s->password);
  free(s);
}

const char *server_url(const server *s) { return s->url; }
const char *server_tcp_url(const server *s) { return s->tcp_url; }
int server_port(const server *s) { return s->port; }

const char *server_file(server *s, const char *name) {
  snprintf(s->path, sizeof s->path, "%s/%s", s->dir, name);
  return s->path;
}

/* ---------------------------------------------------------------------------- look and meddle -- */

/* A server that becomes a replica closes its connections; to write there would raise SIGPIPE. */
static bool was_closed(const redisContext *look) {
  char byte;
  return recv(look->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static redisReply *ask(server *s, const char *format, va_list args) {
  redisReply *reply = NULL;
  for (int tries = 0; !reply && tries < 2; tries++) {
    va_list again;
    if (s->look && (s->look->err || was_closed(s->look))) hang_up(s);
    if (!s->look) {
      s->look = connect_socket(s);
      assert_non_null(s->look);
      if (s->password) freeReplyObject(redisCommand(s->look, "AUTH %s", s->password));
    }
    va_copy(again, args);
    reply = redisvCommand(s->look, format, again);
    va_end(again);
  }
  if (!reply) fail_msg("%s: %s", format, s->look->errstr);
  return reply;
}

redisReply *server_ask(server *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  redisReply *reply = ask(s, format, args);
  va_end(args);
  return reply;
}

void server_do(server *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  redisReply *reply = ask(s, format, args);
  va_end(args);
  if (reply->type == REDIS_REPLY_ERROR) fail_msg("%s: %s", format, reply->str);
  freeReplyObject(reply);
}

long long server_number(server *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  redisReply *reply = ask(s, format, args);
  va_end(args);
  if (reply->type == REDIS_REPLY_ERROR) fail_msg("%s: %s", format, reply->str);
  long long number = reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : reply->integer;
  freeReplyObject(reply);
  return number;
}

long long server_info(server *s, const char *section, const char *name) {
  redisReply *reply = server_ask(s, "INFO %s", section);
  char begin[128];
  snprintf(begin, sizeof begin, "\r\n%s", name);
  const char *at = strstr(reply->str, begin);
  long long number = at ? atoll(at + strlen(begin) + 1) : 0;
  freeReplyObject(reply);
  return number;
}

long long server_calls(server *s, const char *command) {
  char name[80];
  snprintf(name, sizeof name, "cmdstat_%s:calls", command);
  return server_info(s, "commandstats", name);
}
