/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server inherits the descriptor on which its starter took the lock file's flock, and so keeps
 * the lock while it lives: whoever gets that lock knows that no server runs here, also when a
 * starter was killed half-way or a server is stopped and silent. Two servers on one append-only
 * file would each grant the same lock.
 */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np, secure_getenv */
#include "os/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "os/clock.h"

enum { START_MS = 10000, PING_MS = 500, PAUSE_MS = 10, PATH_SIZE = 4096 };

extern char **environ;

static lk_status check_dir(const char *dir, lk_error *error) {
  struct stat info;
  if (lstat(dir, &info) != 0)
    return lk_fail(error, LK_LOCAL, "%s cannot be used: %s", dir, strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return lk_fail(error, LK_LOCAL, "%s is not a directory (a symbolic link is refused, too)", dir);
  if (info.st_uid != geteuid())
    return lk_fail(error, LK_LOCAL, "%s belongs to another user; set LATCHKEY_LOCAL_DIR", dir);
  if (info.st_mode & 077)
    return lk_fail(error, LK_LOCAL, "%s is open to other users; run: chmod 700 %s", dir, dir);
  return LK_OK;
}

/* As the system makes one for a user: nobody else puts anything there. After `su` the environment names another's. */
static bool is_own_folder(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         !(info.st_mode & 022);
}

static bool has_runtime_folder(const char *users) {
  char path[PATH_SIZE];
  int length = snprintf(path, sizeof path, "%s/%lu", users, (unsigned long)geteuid());
  return length > 0 && (size_t)length < sizeof path && is_own_folder(path);
}

/* This user's or the system's, and the user can put something there. */
static bool is_temporary_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
         (info.st_uid == geteuid() || info.st_uid == 0) &&
         faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

enum { FOLDER_RUNTIME, FOLDER_XDG, FOLDER_TMPDIR, FOLDER_TEMPORARY, FOLDERS };

/* The first that there is counts. false: there is none of this kind. */
static bool folder_of(int kind, const lk_local_roots *roots, char path[PATH_SIZE]) {
  const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
  const char *temporary = secure_getenv("TMPDIR");
  const unsigned long user = (unsigned long)geteuid();
  int length = 0;
  if (kind == FOLDER_RUNTIME && has_runtime_folder(roots->users))
    length = snprintf(path, PATH_SIZE, "%s/%lu/latchkey", roots->users, user);
  else if (kind == FOLDER_XDG && runtime && *runtime == '/' && is_own_folder(runtime))
    length = snprintf(path, PATH_SIZE, "%s/latchkey", runtime);
  else if (kind == FOLDER_TMPDIR && temporary && *temporary == '/' &&
           is_temporary_folder(temporary))
    length = snprintf(path, PATH_SIZE, "%s/latchkey-%lu", temporary, user);
  else if (kind == FOLDER_TEMPORARY)
    length = snprintf(path, PATH_SIZE, "%s/latchkey-%lu", roots->temporary, user);
  return length > 0 && length < PATH_SIZE;
}

/* A server runs there, or is being started: it keeps the lock. */
static bool is_lived_in(const char *dir) {
  char path[PATH_SIZE + 16];
  if (check_dir(dir, NULL) != LK_OK) return false;
  snprintf(path, sizeof path, "%s/lock", dir);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  bool taken = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (fd >= 0) close(fd);
  return taken;
}

/* Sessions, cron and su differ in their environment: a server that one of them has started serves all. */
static void choose_folder(const lk_local_roots *roots, char path[PATH_SIZE]) {
  for (int kind = 0; kind < FOLDERS; kind++)
    if (folder_of(kind, roots, path) && is_lived_in(path)) return;
  for (int kind = 0; kind < FOLDERS; kind++)
    if (folder_of(kind, roots, path)) return;
}

static lk_status find_dir(const lk_local_roots *roots, char *buffer, size_t size, lk_error *error) {
  const char *given = secure_getenv("LATCHKEY_LOCAL_DIR");
  char chosen[PATH_SIZE];
  bool is_given = given && *given;
  if (!buffer) return lk_fail(error, LK_INVALID, "there is no buffer for the folder's name");
  if (!is_given) choose_folder(roots, chosen);
  int length = snprintf(buffer, size, "%s", is_given ? given : chosen);
  if (length < 0 || (size_t)length >= size)
    return lk_fail(error, LK_INVALID, "the buffer is too small for the folder's name");
  if (*buffer != '/')
    return lk_fail(error, LK_LOCAL, "LATCHKEY_LOCAL_DIR must be an absolute path");
  if (mkdir(buffer, 0700) != 0 && errno != EEXIST)
    return lk_fail(error, LK_LOCAL, "%s cannot be made: %s", buffer, strerror(errno));
  lk_status status = check_dir(buffer, error);
  return status == LK_OK ? lk_succeed(error) : status;
}

lk_status lk_local_dir_in(const lk_local_roots *roots, char *buffer, size_t size, lk_error *error) {
  const lk_status status = find_dir(roots, buffer, size, error);
  if (status != LK_OK && buffer && size > 0) *buffer = '\0';
  return status;
}

lk_status lk_local_dir(char *buffer, size_t size, lk_error *error) {
  static const lk_local_roots system = {.users = "/run/user", .temporary = "/tmp"};
  return lk_local_dir_in(&system, buffer, size, error);
}

typedef enum presence { PRESENCE_NONE, PRESENCE_LOADS, PRESENCE_READY } presence;

/* Does anything that speaks the protocol answer a PING there? NOAUTH is an answer, and LOADING will be one. */
static presence local_look(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return PRESENCE_NONE;
  char reply[] = "-LOADING";
  ssize_t len = 0;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
      send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6) {
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (poll(&readable, 1, PING_MS) == 1) len = recv(fd, reply, strlen(reply), 0);
  }
  close(fd);
  if (len < 1 || (reply[0] != '+' && reply[0] != '-')) return PRESENCE_NONE;
  return strcmp(reply, "-LOADING") == 0 ? PRESENCE_LOADS : PRESENCE_READY;
}

static bool find_in(const char *folders, const char *program, char *buffer, size_t size) {
  for (const char *at = folders; *at;) {
    size_t len = strcspn(at, ":");
    int length = snprintf(buffer, size, "%.*s/%s", (int)len, at, program);
    if (*at == '/' && length > 0 && (size_t)length < size && access(buffer, X_OK) == 0) return true;
    at += len + (at[len] == ':');
  }
  return false;
}

static bool local_find_server(char *buffer, size_t size) {
  static const char *const programs[] = {"redis-server", "valkey-server"};
  const char *path = secure_getenv("PATH");
  for (size_t i = 0; i < 2; i++)
    if (find_in(path ? path : "", programs[i], buffer, size) ||
        find_in("/usr/sbin:/usr/bin", programs[i], buffer, size))
      return true;
  return false;
}

/* Waits for the program that was spawned: it puts the server in the background and ends. */
static bool ended_well(pid_t pid) {
  int outcome = 0;
  while (waitpid(pid, &outcome, 0) < 0)
    if (errno != EINTR) return errno == ECHILD; /* the application ignores SIGCHLD */
  return WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0;
}

typedef struct place {
  char socket[sizeof((struct sockaddr_un *)0)->sun_path];
  char dir[PATH_SIZE];
  char log[PATH_SIZE + 16];
  char pid[PATH_SIZE + 16];
  char lock[PATH_SIZE + 16];
} place;

static lk_status find_place(place *where, lk_error *error) {
  lk_status status = lk_local_dir(where->dir, sizeof where->dir, error);
  if (status != LK_OK) return status;
  int length = snprintf(where->socket, sizeof where->socket, "%s/redis.sock", where->dir);
  if ((size_t)length >= sizeof where->socket)
    return lk_fail(error, LK_LOCAL, "%s is too long a name for a socket's folder", where->dir);
  snprintf(where->log, sizeof where->log, "%s/redis.log", where->dir);
  snprintf(where->pid, sizeof where->pid, "%s/redis.pid", where->dir);
  snprintf(where->lock, sizeof where->lock, "%s/lock", where->dir);
  return LK_OK;
}

/* A server that finds no room on the disk cannot even write that down. */
static lk_status blame(const place *where, const char *what, lk_error *error) {
  struct statvfs disk;
  struct stat log;
  if (statvfs(where->dir, &disk) == 0 && disk.f_bavail == 0)
    return lk_fail(error, LK_LOCAL, "%.150s: no room is left on the disk of %s", what, where->dir);
  if (stat(where->log, &log) == 0 && log.st_size == 0)
    return lk_fail(error, LK_LOCAL, "%.150s, and wrote nothing to %s", what, where->log);
  return lk_fail(error, LK_LOCAL, "%.150s; see %s", what, where->log);
}

#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
#define LOCAL_HAS_CLOSEFROM
#endif
#endif

/* From this one on: or the server would keep the caller's pipes open for as long as it lives. */
static int close_from(posix_spawn_file_actions_t *actions, int first) {
#ifdef LOCAL_HAS_CLOSEFROM
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
#else
  /* Other C libraries do not mind one that is gone by then. */
  DIR *open_now = opendir("/proc/self/fd");
  int failure = 0;
  for (struct dirent *entry; open_now && !failure && (entry = readdir(open_now)) != NULL;) {
    const int fd = (int)strtol(entry->d_name, NULL, 10);
    if (fd >= first) failure = posix_spawn_file_actions_addclose(actions, fd);
  }
  if (open_now) closedir(open_now);
  return failure;
#endif
}

static int prepare_child(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes,
                         const place *where, int lock) {
  sigset_t signals;
  sigemptyset(&signals);
  int failure = posix_spawnattr_setsigmask(attributes, &signals);
  sigfillset(&signals);
  if (!failure) failure = posix_spawnattr_setsigdefault(attributes, &signals);
  if (!failure)
    failure = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (!failure) failure = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (!failure)
    failure = posix_spawn_file_actions_addopen(actions, 1, where->log,
                                               O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!failure) failure = posix_spawn_file_actions_adddup2(actions, 1, 2);
  if (!failure) failure = posix_spawn_file_actions_adddup2(actions, lock, 3);
  if (!failure) failure = close_from(actions, 4);
  return failure;
}

static lk_status spawn_server(const place *where, int lock, lk_error *error) {
  char program[PATH_SIZE];
  if (!local_find_server(program, sizeof program))
    return lk_fail(error, LK_LOCAL,
                   "no redis-server or valkey-server in PATH; install the package redis-server "
                   "(Debian, Ubuntu), valkey (Fedora) or redis (Homebrew)");
  const char *const argv[] = {program,
                              "--port",
                              "0",
                              "--unixsocket",
                              where->socket,
                              "--unixsocketperm",
                              "700",
                              "--dir",
                              where->dir,
                              "--logfile",
                              where->log,
                              "--appendonly",
                              "yes",
                              "--appendfsync",
                              "everysec",
                              "--save",
                              "",
                              "--maxmemory-policy",
                              "noeviction",
                              "--protected-mode",
                              "yes",
                              "--daemonize",
                              "yes",
                              "--pidfile",
                              where->pid,
                              NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int failure = posix_spawn_file_actions_init(&actions);
  if (failure) return lk_fail(error, LK_NOMEM, "out of memory");
  failure = posix_spawnattr_init(&attributes);
  if (failure) {
    posix_spawn_file_actions_destroy(&actions);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  pid_t pid = -1;
  failure = prepare_child(&actions, &attributes, where, lock);
  if (!failure)
    failure = posix_spawn(&pid, program, &actions, &attributes, (char *const *)argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure) return lk_fail(error, LK_LOCAL, "%s cannot be run: %s", program, strerror(failure));
  if (ended_well(pid)) return LK_OK;
  char what[PATH_SIZE + 32];
  snprintf(what, sizeof what, "%s refused to start", program);
  return blame(where, what, error);
}

/* Gives the lock file's descriptor, above the standard ones, or -1 with errno: EWOULDBLOCK when a
 * server or its starter holds the lock. */
static int take_lock(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
  int failure = high < 0 || flock(high, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
  if (fd >= 0) close(fd);
  if (failure && high >= 0) close(high);
  errno = failure;
  return failure ? -1 : high;
}

static lk_status local_start(const place *where, lk_error *error) {
  const int64_t deadline = lk_clock_ms() + START_MS;
  bool spawned = false;
  presence seen;
  while ((seen = local_look(where->socket)) != PRESENCE_READY) {
    bool late = lk_clock_ms() >= deadline;
    if (late && seen == PRESENCE_LOADS) break; /* whoever connects is told so */
    if (late)
      return lk_fail(error, LK_LOCAL, "the server in %s does not answer; see %s", where->dir,
                     where->log);
    if (seen == PRESENCE_LOADS) {
      poll(NULL, 0, PAUSE_MS);
      continue;
    }
    int lock = take_lock(where->lock);
    if (lock < 0 && errno != EWOULDBLOCK)
      return lk_fail(error, LK_LOCAL, "%s cannot be locked: %s", where->lock, strerror(errno));
    if (lock < 0) {
      poll(NULL, 0, PAUSE_MS);
      continue;
    }
    lk_status status = spawned ? blame(where, "the server ended at once", error)
                               : spawn_server(where, lock, error);
    close(lock);
    if (status != LK_OK) return status;
    spawned = true;
  }
  return lk_succeed(error);
}

lk_status lk_local_start(lk_url *url, lk_error *error) {
  place where;
  lk_status status = find_place(&where, error);
  if (status == LK_OK) status = local_start(&where, error);
  if (status != LK_OK) return status;
  char *path = strdup(where.socket);
  if (!path) return lk_fail(error, LK_NOMEM, "out of memory");
  free(url->path);
  url->path = path;
  return LK_OK;
}
