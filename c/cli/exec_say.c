/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error that never block: who has to end a job cannot wait for a reader. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec.h"

enum { LINE_MAX_BYTES = 2048, PENDING_MAX = 16384, LAST_WAIT_MS = 1000 };

typedef enum out_kind { OUT_UNKNOWN, OUT_FILE, OUT_OWN, OUT_SHARED, OUT_SOCKET } out_kind;

/* Under `turn`: who gives back is a thread of its own, and says what went wrong. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static struct {
  out_kind kind;
  int fd;
  size_t size;
  char bytes[PENDING_MAX];
} pending;

/* CMD writes through the same open file, so that cannot be set not to block: it is opened once more. */
static void look_at_stderr(void) {
  struct stat info;
  pending.fd = STDERR_FILENO;
  pending.kind = OUT_FILE;
  if (fstat(STDERR_FILENO, &info) != 0 || S_ISREG(info.st_mode)) return;
  pending.kind = OUT_SOCKET;
  if (S_ISSOCK(info.st_mode)) return;
  const int own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  pending.kind = own >= 0 ? OUT_OWN : OUT_SHARED;
  if (own >= 0) pending.fd = own;
}

/* Bytes written; -1 with EAGAIN when there is no room now. */
static ssize_t put(const char *bytes, size_t size) {
  if (pending.kind == OUT_UNKNOWN) look_at_stderr();
  struct pollfd room = {.fd = pending.fd, .events = POLLOUT};
  switch (pending.kind) {
  case OUT_SOCKET: return send(pending.fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  case OUT_SHARED:
    if (poll(&room, 1, 0) == 1) return write(pending.fd, bytes, size);
    errno = EAGAIN;
    return -1;
  default: return write(pending.fd, bytes, size);
  }
}

/* Line for line, so that what CMD writes never stands in the middle of one. */
static bool flush_kept(void) {
  while (pending.size > 0) {
    const char *end = memchr(pending.bytes, '\n', pending.size);
    const size_t line = end ? (size_t)(end - pending.bytes) + 1 : pending.size;
    const ssize_t written = put(pending.bytes, line);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    const size_t gone = written < 0 ? pending.size : (size_t)written; /* nobody reads it any more */
    memmove(pending.bytes, pending.bytes + gone, pending.size - gone);
    pending.size -= gone;
  }
  return true;
}

static void add(const char *text) {
  const size_t size = strlen(text);
  flush_kept();
  if (size > sizeof pending.bytes - pending.size) return; /* thousands of bytes wait already */
  memcpy(pending.bytes + pending.size, text, size);
  pending.size += size;
  flush_kept();
}

bool exec_say_flush(void) {
  pthread_mutex_lock(&turn);
  const bool all = flush_kept();
  pthread_mutex_unlock(&turn);
  return all;
}

/* ---------------------------------------------------------------------------- a line that changes -- */

enum { COLUMNS = 80, COLUMNS_MAX = 400 };
static bool line_stands;

bool exec_say_has_line(void) {
  const char *terminal = getenv("TERM");
  const bool rewrites = terminal && *terminal && strcmp(terminal, "dumb") != 0;
  return rewrites && isatty(STDERR_FILENO) && tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static void take_line_away(void) {
  if (line_stands) add("\r\033[K");
  line_stands = false;
}

int exec_fit(const char *text, size_t most) {
  const size_t length = strnlen(text, most);
  size_t end = length;
  while (text[end] && end > 0 && length - end < 3 && ((unsigned char)text[end] & 0xC0) == 0x80) {
    end--;
  }
  return (int)end;
}

/* Bytes count as columns: what is beyond ASCII makes a line shorter than it need be, never longer. */
static void replace_line(const char *text) {
  char line[COLUMNS_MAX + 1];
  struct winsize window = {.ws_col = 0};
  if (!flush_kept() && text) return; /* a terminal that is stopped shows the next one */
  take_line_away();
  if (!text) return;
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  size_t columns = known ? (size_t)window.ws_col : COLUMNS;
  if (columns > sizeof line) columns = sizeof line;
  snprintf(line, columns, "%s", text);
  cli_disarm(line);
  if (strlen(text) >= columns) memcpy(line + exec_fit(line, columns - 2), "~", 2);
  add(line);
  line_stands = true;
}

void exec_say_line(const char *text) {
  pthread_mutex_lock(&turn);
  replace_line(text);
  pthread_mutex_unlock(&turn);
}

void exec_say_text(const char *text) {
  pthread_mutex_lock(&turn);
  take_line_away();
  add(text);
  pthread_mutex_unlock(&turn);
}

void exec_say(const char *format, ...) {
  char line[LINE_MAX_BYTES] = "latchkey exec: ";
  const size_t start = strlen(line);
  va_list args;
  va_start(args, format);
  vsnprintf(line + start, sizeof line - start, format, args);
  va_end(args);
  line[exec_fit(line, sizeof line - 2)] = '\0';
  cli_disarm(line);
  strcat(line, "\n");
  exec_say_text(line);
}

void exec_say_rest(void) {
  const int64_t until_ms = lk_now_ms() + LAST_WAIT_MS;
  while (!exec_say_flush()) {
    const int64_t left_ms = until_ms - lk_now_ms();
    struct pollfd room = {.fd = pending.fd, .events = POLLOUT};
    if (left_ms <= 0 || poll(&room, 1, (int)left_ms) == 0) return;
  }
}
