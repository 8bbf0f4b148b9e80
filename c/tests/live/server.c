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

#include "look.h"
#include "watcher.h"

enum { ARGS_MAX = 64, TRIES = 6000, PAUSE_MS = 5, LOOKS = 5, NOT_STARTED = 127 };

struct server {
  pid_t pid; /* 0: not running */
  int port;
  bool tls;
  char *password;
  char dir[64];
  char path[160];
  char url[320];
  char tcp_url[320];
  bool alone; /* a cluster of one, or with a sentinel of its own: */
  watcher watcher;
  char *argv[ARGS_MAX];
  size_t argc;
  redisContext *look;
};

/* ------------------------------------------------------------------------------------- process -- */

/* Below those that systems give to connections, and each process begins elsewhere. It stays bound here as long as this
 * process runs, without listening: who looks as this function does finds it taken, also before the server is up and
 * while it is down. A server binds it all the same, since it allows, as this socket does by then, that others do. */
int server_free_port(void) {
  enum { FIRST = 23000, LAST = 32000, STRIDE = 37 };
  static int port;
  const int on = 1;
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (port == 0) port = FIRST + (int)(getpid() * (int64_t)STRIDE % (LAST - FIRST));
  for (int i = 0; i < LAST - FIRST; i++) {
    port = port < LAST ? port + 1 : FIRST;
    at.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    bool is_free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (is_free && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) return port;
    close(fd);
  }
  fail_msg("no port of 127.0.0.1 is free");
  return 0;
}

static void add_arg(server *s, const char *arg) {
  assert_true(s->argc + 1 < ARGS_MAX);
  s->argv[s->argc++] = strdup(arg);
}

void server_add_args(server *s, const char *const *args) {
  for (; args && *args; args++) add_arg(s, *args);
}

static bool answers(server *s) {
  redisContext *look = look_open(server_file(s, "redis.sock"), NULL);
  if (!look) return false;
  redisReply *reply = look_say(look, "PING");
  bool got = reply != NULL;
  freeReplyObject(reply);
  redisFree(look);
  return got;
}

static void remove_folder(const server *s) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf -- '%s'", s->dir);
  assert_int_equal(system(command), 0);
}

static void launch(server *s) {
  s->pid = fork();
  assert_true(s->pid >= 0);
  if (s->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* what a terminal tells the test is not for it */
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    execvp("redis-server", s->argv);
    _exit(NOT_STARTED);
  }
  for (int i = 0; !answers(s); i++) {
    if (i == TRIES) fail_msg("redis-server does not answer; see %s", server_file(s, "log"));
    int status;
    if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
      s->pid = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED) {
        remove_folder(s);
        fail_msg("redis-server cannot be started: is it installed?");
      }
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

static bool stays_single;

server_topology server_run_topology(void) {
  const char *topology = getenv("LATCHKEY_TEST_TOPOLOGY");
  if (stays_single || !topology || !*topology || strcmp(topology, "standalone") == 0)
    return SERVER_SINGLE;
  if (strcmp(topology, "sentinel") == 0) return SERVER_SENTINEL;
  if (strcmp(topology, "cluster") != 0) fail_msg("LATCHKEY_TEST_TOPOLOGY is %s", topology);
  return SERVER_CLUSTER;
}

bool server_run_tls(void) { return !stays_single && getenv("LATCHKEY_TEST_TLS") != NULL; }

void server_stay_single(const char *why) {
  bool concerned = server_run_topology() != SERVER_SINGLE || server_run_tls();
  if (concerned) print_message("# a plain, single server in this run, too: %s\n", why);
  stays_single = true;
}

void server_skip_on(server_topology topology, const char *why) {
  if (server_run_topology() != topology) return;
  print_message("# does not apply: %s\n", why);
  skip();
}

const char *server_verb(void) {
  return server_run_topology() == SERVER_CLUSTER ? "SPUBLISH" : "PUBLISH";
}

void server_pause_between_cuts(void) { poll(NULL, 0, server_run_tls() ? 40 : 6); }

static bool says_ok(server *s) {
  redisReply *reply = server_ask(s, "CLUSTER INFO");
  bool ok = strstr(reply->str, "cluster_state:ok") != NULL;
  freeReplyObject(reply);
  return ok;
}

static void wait_for_slots(server *s) {
  for (int i = 0; !says_ok(s); i++) {
    if (i == TRIES) fail_msg("the cluster is not whole; see %s", server_file(s, "log"));
    poll(NULL, 0, PAUSE_MS);
  }
}

static void make_cluster(server *s) {
  char bus[16];
  snprintf(bus, sizeof bus, "%d", server_free_port());
  server_add_args(s, (const char *const[]){"--cluster-enabled", "yes", "--cluster-port", bus,
                                           "--tls-cluster", s->tls ? "yes" : "no", NULL});
}

/* It says nothing to the server that a test could count. */
static void start_watcher(server *s) {
  watcher_start(&s->watcher, &(watcher_options){.master = "alone",
                                                .port = s->port,
                                                .tls = s->tls ? s->dir : NULL,
                                                .monitored = "down-after-milliseconds 60000\n"
                                                             "rename-command SUBSCRIBE nothing\n"
                                                             "rename-command PUBLISH nothing\n",
                                                .quorum = 1});
}

static void write_urls(server *s) {
  const char *tls = s->tls ? "s" : "";
  char ca[120] = "";
  if (server_run_tls()) snprintf(ca, sizeof ca, "?cacert=%s/ca.crt", s->dir);
  snprintf(s->url, sizeof s->url, "unix://%s/redis.sock", s->dir);
  snprintf(s->tcp_url, sizeof s->tcp_url, "redis%s://127.0.0.1:%d%s", tls, s->port, ca);
  if (s->alone && server_run_topology() == SERVER_CLUSTER) {
    snprintf(s->tcp_url, sizeof s->tcp_url, "redis%s-cluster://127.0.0.1:%d%s", tls, s->port, ca);
  } else if (s->alone && server_run_topology() == SERVER_SENTINEL) {
    snprintf(s->tcp_url, sizeof s->tcp_url, "redis%s-sentinel://127.0.0.1:%d/alone%s", tls,
             s->watcher.port, ca);
  }
  if (s->alone || server_run_tls()) strcpy(s->url, s->tcp_url);
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
  s->tls = options->tls || (server_run_tls() && !options->part);
  s->alone = server_run_topology() != SERVER_SINGLE && !options->part;
  char port[16];
  snprintf(port, sizeof port, "%d", s->port);

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
  bool cluster = s->alone && server_run_topology() == SERVER_CLUSTER;
  if (cluster) make_cluster(s);
  launch(s);
  if (cluster) server_do(s, "CLUSTER ADDSLOTSRANGE 0 16383");
  if (cluster) wait_for_slots(s);
  if (s->alone && !cluster) start_watcher(s);
  write_urls(s);
  return s;
}

void server_stop(server *s) {
  if (!s) return;
  server_kill(s);
  if (s->watcher.pid != 0) watcher_stop(&s->watcher);
  remove_folder(s);
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

/* The same of sharded channels. */
static const char *sharded(const server *s, const char *format, char *room, size_t size) {
  static const char *const words[][2] = {{"PUBLISH ", "SPUBLISH "},
                                         {"PUBSUB NUMSUB ", "PUBSUB SHARDNUMSUB "}};
  if (!s->alone || server_run_topology() != SERVER_CLUSTER) return format;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t len = strlen(words[i][0]);
    if (strncmp(format, words[i][0], len) != 0) continue;
    snprintf(room, size, "%s%s", words[i][1], format + len);
    return room;
  }
  return format;
}

static redisReply *ask(server *s, const char *format, va_list args) {
  redisReply *reply = NULL;
  char room[256];
  format = sharded(s, format, room, sizeof room);
  for (int tries = 0; !reply && tries < LOOKS; tries++) { /* tests close connections */
    va_list again;
    if (s->look && s->look->err) hang_up(s);
    if (!s->look) s->look = look_open(server_file(s, "redis.sock"), s->password);
    assert_non_null(s->look);
    va_copy(again, args);
    reply = look_ask(s->look, format, again);
    va_end(again);
  }
  if (!reply) fail_msg("%s: %s", format, s->look->errstr);
  return reply;
}

void server_give(server *s, const char *key, const char *owner, int64_t lease_ms) {
  server_do(s, "EVAL %s 1 %s %s %lld",
            "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1) "
            "if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end",
            key, owner, (long long)lease_ms);
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

/* How the server counts what is said to sharded channels. */
static const char *counted(const char *command) {
  static const char *const words[][2] = {{"subscribe", "ssubscribe"},
                                         {"publish", "spublish"},
                                         {"pubsub|numsub", "pubsub|shardnumsub"}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strcmp(command, words[i][0]) == 0) return words[i][1];
  }
  return command;
}

long long server_calls(server *s, const char *command) {
  char name[80];
  if (s->alone && server_run_topology() == SERVER_CLUSTER) command = counted(command);
  snprintf(name, sizeof name, "cmdstat_%s:calls", command);
  return server_info(s, "commandstats", name);
}
