/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "look.h"
#include "server.h"

static void write_tls(FILE *out, const char *folder) {
  fprintf(out, "tls-replication yes\ntls-auth-clients optional\n");
  fprintf(out, "tls-cert-file %s/server.crt\n", folder);
  fprintf(out, "tls-key-file %s/server.key\n", folder);
  fprintf(out, "tls-ca-cert-file %s/ca.crt\n", folder);
}

/* Each line of `monitored` is "WORD VALUE...": the master's name goes between. */
static void write_monitored(FILE *out, const char *lines, const char *master) {
  while (lines && *lines) {
    size_t word = strcspn(lines, " "), line = strcspn(lines, "\n");
    fprintf(out, "sentinel %.*s %s%.*s\n", (int)word, lines, master, (int)(line - word),
            lines + word);
    lines += line + (lines[line] == '\n');
  }
}

static void write_config(const watcher *w, const watcher_options *options) {
  char path[100];
  snprintf(path, sizeof path, "%s/conf", w->dir);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fprintf(out, "bind 127.0.0.1\n%s %d\n", options->tls ? "port 0\ntls-port" : "port", w->port);
  fprintf(out, "dir %s\nlogfile %s/log\nunixsocket %s/sock\n", w->dir, w->dir, w->dir);
  if (options->tls) write_tls(out, options->tls);
  if (w->password)
    fprintf(out, "requirepass %s\nsentinel sentinel-pass %s\n", w->password, w->password);
  fprintf(out, "sentinel monitor %s 127.0.0.1 %d %d\n", options->master, options->port,
          options->quorum);
  write_monitored(out, options->monitored, options->master);
  assert_int_equal(fclose(out), 0);
}

void watcher_start(watcher *w, const watcher_options *options) {
  char path[100];
  *w = (watcher){.port = server_free_port(), .password = options->password};
  strcpy(w->dir, "/tmp/latchkey-test-XXXXXX");
  assert_non_null(mkdtemp(w->dir));
  write_config(w, options);
  snprintf(path, sizeof path, "%s/conf", w->dir);
  w->pid = fork();
  assert_true(w->pid >= 0);
  if (w->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    execlp("redis-server", "redis-server", path, "--sentinel", (char *)NULL);
    _exit(127);
  }
  redisReply *reply = NULL;
  UNTIL((reply = watcher_ask(w, "PING")) != NULL);
  freeReplyObject(reply);
}

void watcher_kill(watcher *w) {
  if (w->pid == 0) return;
  kill(w->pid, SIGKILL);
  waitpid(w->pid, NULL, 0);
  w->pid = 0;
}

void watcher_stop(watcher *w) {
  char command[100];
  watcher_kill(w);
  snprintf(command, sizeof command, "rm -rf -- '%s'", w->dir);
  assert_int_equal(system(command), 0);
}

redisReply *watcher_ask(const watcher *w, const char *format, ...) {
  char path[100];
  va_list args;
  snprintf(path, sizeof path, "%s/sock", w->dir);
  redisContext *look = look_open(path, w->password);
  redisReply *reply = NULL;
  if (look) {
    va_start(args, format);
    reply = look_ask(look, format, args);
    va_end(args);
    redisFree(look);
  }
  return reply;
}
