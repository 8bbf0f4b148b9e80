/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "os/clock.h"
#include "os/local.h"

enum { STARTERS = 4, DEADLINE_MS = 20000, SECOND_US = 1000000 };

static char root[64]; /* a folder for this test */
static char dir[80];  /* the server's folder in it */
static char *search;  /* the search path as it was */

static void path_in(const char *folder, const char *name, char *buffer, size_t size) {
  assert_true((size_t)snprintf(buffer, size, "%s/%s", folder, name) < size);
}

static int open_root(void **state) {
  (void)state;
  search = strdup(getenv("PATH"));
  if (!search) return -1;
  strcpy(root, "/tmp/latchkey-test-XXXXXX");
  if (!mkdtemp(root)) return -1;
  path_in(root, "local", dir, sizeof dir);
  unsetenv("XDG_RUNTIME_DIR");
  unsetenv("TMPDIR");
  return setenv("LATCHKEY_LOCAL_DIR", dir, 1);
}

static redisContext *look(void) {
  char path[120];
  path_in(dir, "redis.sock", path, sizeof path);
  return redisConnectUnix(path);
}

static void stop_server(void) {
  redisContext *c = look();
  if (c && !c->err) freeReplyObject(redisCommand(c, "SHUTDOWN NOSAVE FORCE"));
  if (c) redisFree(c);
}

static int close_root(void **state) {
  (void)state;
  setenv("PATH", search, 1);
  free(search);
  stop_server();
  char command[100];
  snprintf(command, sizeof command, "rm -rf -- '%s'", root);
  return system(command);
}

/* With these in the place of /run/user and /tmp. */
static lk_status dir_in_root(char *buffer, size_t size, lk_error *error) {
  char users[80], temporary[80];
  path_in(root, "users", users, sizeof users);
  path_in(root, "tmp", temporary, sizeof temporary);
  return lk_local_dir_in(&(lk_local_roots){users, temporary}, buffer, size, error);
}

static void assert_dir(const char *expected) {
  char buffer[256];
  lk_error error;
  if (dir_in_root(buffer, sizeof buffer, &error) != LK_OK) fail_msg("%s", error.message);
  assert_string_equal(buffer, expected);
  struct stat info;
  assert_int_equal(stat(buffer, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
}

static void assert_dir_refused(const char *why) {
  char buffer[256];
  lk_error error;
  assert_int_equal(lk_local_dir(buffer, sizeof buffer, &error), LK_LOCAL);
  if (!strstr(error.message, why)) fail_msg("\"%s\" does not say %s", error.message, why);
}

static void start(void) {
  lk_url url = {.local = true};
  lk_error error;
  if (lk_local_start(&url, &error) != LK_OK) fail_msg("%s", error.message);
  char path[120];
  path_in(dir, "redis.sock", path, sizeof path);
  assert_string_equal(url.path, path);
  lk_url_clear(&url);
}

static void assert_start_refused(const char *why) {
  lk_url url = {.local = true};
  lk_error error;
  assert_int_equal(lk_local_start(&url, &error), LK_LOCAL);
  if (!strstr(error.message, why)) fail_msg("\"%s\" does not say %s", error.message, why);
  assert_null(url.path);
}

/* One value of CONFIG GET or one line of INFO, as text. */
static void ask(const char *command, const char *name, char *buffer, size_t size) {
  redisContext *c = look();
  assert_non_null(c);
  assert_int_equal(c->err, 0);
  redisReply *reply = redisCommand(c, command, name);
  assert_non_null(reply);
  if (reply->type == REDIS_REPLY_ARRAY) {
    assert_int_equal(reply->elements, 2);
    snprintf(buffer, size, "%s", reply->element[1]->str);
  } else {
    const char *at = strstr(reply->str, name);
    assert_non_null(at);
    at += strlen(name) + 1;
    snprintf(buffer, size, "%.*s", (int)strcspn(at, "\r"), at);
  }
  freeReplyObject(reply);
  redisFree(c);
}

static pid_t server_pid(void) {
  char text[32];
  ask("INFO server", "process_id", text, sizeof text);
  return (pid_t)atoi(text);
}

static void write_program(const char *name, const char *text) {
  char path[120];
  path_in(root, name, path, sizeof path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  assert_int_equal(chmod(path, 0700), 0);
}

static void the_folder_comes_from_the_first_variable_that_is_set(void **state) {
  (void)state;
  char runtime[120], temporary[120];
  path_in(root, "latchkey", runtime, sizeof runtime);
  snprintf(temporary, sizeof temporary, "%s/latchkey-%lu", root, (unsigned long)geteuid());
  setenv("XDG_RUNTIME_DIR", root, 1);
  setenv("TMPDIR", root, 1);
  assert_dir(dir);
  unsetenv("LATCHKEY_LOCAL_DIR");
  assert_dir(runtime);
  unsetenv("XDG_RUNTIME_DIR");
  assert_dir(temporary);
}

/* What is empty or relative counts as not set. */
static void a_variable_without_an_absolute_path_is_passed_over(void **state) {
  (void)state;
  char temporary[120], shared[120];
  snprintf(temporary, sizeof temporary, "%s/latchkey-%lu", root, (unsigned long)geteuid());
  setenv("LATCHKEY_LOCAL_DIR", "", 1);
  setenv("XDG_RUNTIME_DIR", "relative", 1);
  setenv("TMPDIR", root, 1);
  assert_dir(temporary);
  path_in(root, "tmp", shared, sizeof shared);
  assert_int_equal(mkdir(shared, 0700), 0);
  snprintf(shared, sizeof shared, "%s/tmp/latchkey-%lu", root, (unsigned long)geteuid());
  setenv("TMPDIR", "relative", 1);
  assert_dir(shared);
  unsetenv("TMPDIR");
  assert_dir(shared);
}

/* /run/user/UID, which the system makes for this user. */
static void make_runtime(char *buffer, size_t size) {
  path_in(root, "users", buffer, size);
  assert_int_equal(mkdir(buffer, 0700), 0);
  snprintf(buffer, size, "%s/users/%lu", root, (unsigned long)geteuid());
  assert_int_equal(mkdir(buffer, 0700), 0);
}

static void what_the_system_made_for_the_user_comes_before_the_environment(void **state) {
  (void)state;
  char made[120], own[140], runtime[120];
  path_in(root, "latchkey", runtime, sizeof runtime);
  make_runtime(made, sizeof made);
  path_in(made, "latchkey", own, sizeof own);
  unsetenv("LATCHKEY_LOCAL_DIR");
  assert_dir(own);
  setenv("XDG_RUNTIME_DIR", root, 1);
  assert_dir(own);
  assert_int_equal(chmod(made, 0777), 0); /* anybody may put something there */
  assert_dir(runtime);
}

/* As a bare su leaves them: of another user, or of a session that has ended. */
static void folders_of_others_and_missing_ones_are_passed_over(void **state) {
  (void)state;
  char own[120], of_another[120], missing[120];
  path_in(root, "tmp", own, sizeof own);
  assert_int_equal(mkdir(own, 0700), 0);
  snprintf(own, sizeof own, "%s/tmp/latchkey-%lu", root, (unsigned long)geteuid());
  path_in(root, "another", of_another, sizeof of_another);
  assert_int_equal(mkdir(of_another, 0500), 0); /* root may write there all the same */
  if (geteuid() == 0) assert_int_equal(chown(of_another, 1, 1), 0);
  path_in(root, "missing", missing, sizeof missing);
  unsetenv("LATCHKEY_LOCAL_DIR");
  setenv("TMPDIR", of_another, 1);
  assert_dir(own);
  setenv("TMPDIR", missing, 1);
  assert_dir(own);
  setenv("XDG_RUNTIME_DIR", missing, 1);
  assert_dir(own);
  setenv("XDG_RUNTIME_DIR", geteuid() == 0 ? of_another : "/", 1);
  assert_dir(own);
}

/* cron and su start it without what a login sets, or before it. */
static void a_server_that_runs_in_another_of_the_folders_is_used(void **state) {
  (void)state;
  char made[120], own[140];
  path_in(root, "latchkey", dir, sizeof dir);
  setenv("LATCHKEY_LOCAL_DIR", dir, 1);
  start();
  make_runtime(made, sizeof made);
  path_in(made, "latchkey", own, sizeof own);
  unsetenv("LATCHKEY_LOCAL_DIR");
  setenv("XDG_RUNTIME_DIR", root, 1);
  assert_dir(dir);
  stop_server();
  char buffer[256];
  int64_t until_ms = lk_clock_ms() + DEADLINE_MS;
  do { /* until it has ended */
    assert_int_equal(dir_in_root(buffer, sizeof buffer, NULL), LK_OK);
  } while (strcmp(buffer, dir) == 0 && lk_clock_ms() < until_ms);
  assert_dir(own);
}

static void a_folder_that_others_can_reach_is_refused(void **state) {
  (void)state;
  assert_int_equal(mkdir(dir, 0700), 0);
  assert_int_equal(chmod(dir, 0750), 0);
  assert_dir_refused("chmod 700");
}

static void a_symbolic_link_is_refused(void **state) {
  (void)state;
  char target[120];
  path_in(root, "target", target, sizeof target);
  assert_int_equal(mkdir(target, 0700), 0);
  assert_int_equal(symlink(target, dir), 0);
  assert_dir_refused("symbolic link");
}

static void a_folder_of_another_user_is_refused(void **state) {
  (void)state;
  if (geteuid() != 0) {
    setenv("LATCHKEY_LOCAL_DIR", "/", 1);
  } else {
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(chown(dir, 1, 1), 0);
  }
  assert_dir_refused("another user");
}

static void a_folder_that_cannot_be_made_is_refused(void **state) {
  (void)state;
  setenv("LATCHKEY_LOCAL_DIR", "/nowhere/at/all", 1);
  assert_dir_refused("/nowhere/at/all cannot be made: No such file");
  setenv("LATCHKEY_LOCAL_DIR", "relative", 1);
  assert_dir_refused("absolute");
}

static void a_buffer_that_is_too_small_is_refused(void **state) {
  (void)state;
  char buffer[8] = "before";
  assert_int_equal(lk_local_dir(buffer, sizeof buffer, NULL), LK_INVALID);
  assert_string_equal(buffer, "");
  assert_int_equal(lk_local_dir(buffer, 0, NULL), LK_INVALID);
}

static void a_folder_whose_socket_has_too_long_a_name_is_refused(void **state) {
  (void)state;
  char deep[200];
  snprintf(deep, sizeof deep, "%s/%0100d", root, 0);
  setenv("LATCHKEY_LOCAL_DIR", deep, 1);
  assert_start_refused("too long");
}

static void the_server_is_private_and_keeps_what_it_is_told(void **state) {
  (void)state;
  start();

  char path[120], value[64];
  struct stat info;
  path_in(dir, "redis.sock", path, sizeof path);
  assert_int_equal(stat(path, &info), 0);
  assert_true(S_ISSOCK(info.st_mode));
  assert_int_equal(info.st_mode & 0777, 0700);
  static const char *const settings[][2] = {{"port", "0"},
                                            {"appendonly", "yes"},
                                            {"appendfsync", "everysec"},
                                            {"maxmemory-policy", "noeviction"},
                                            {"protected-mode", "yes"}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    ask("CONFIG GET %s", settings[i][0], value, sizeof value);
    assert_string_equal(value, settings[i][1]);
  }
}

static void the_server_is_looked_for_in_absolute_folders(void **state) {
  (void)state;
  static char long_path[5000];
  write_program("redis-server", "#!/bin/sh\nexit 1\n");
  memset(long_path, 'x', sizeof long_path - 1);
  long_path[0] = '/';
  char paths[5200];
  snprintf(paths, sizeof paths, "%s:relative::%s:/nowhere", long_path, root);
  setenv("PATH", paths, 1);
  assert_start_refused("redis-server refused to start");
}

static void the_server_is_looked_for_in_the_usual_folders_where_no_other_is_named(void **state) {
  (void)state;
  if (access("/usr/bin/redis-server", X_OK) != 0) {
    print_message("# does not apply: this machine's redis-server is not in /usr/bin\n");
    skip();
  }
  write_program("redis-server", "#!/bin/sh\nexit 1\n");
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(root), 0);
  setenv("PATH", ".", 1);
  start();
  stop_server();
  unsetenv("PATH");
  start();
  assert_int_equal(chdir(before), 0);
}

static void a_lock_file_that_cannot_be_opened_is_named(void **state) {
  (void)state;
  char path[120];
  assert_int_equal(mkdir(dir, 0700), 0);
  path_in(dir, "lock", path, sizeof path);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_start_refused("lock cannot be locked: Is a directory");
}

static void a_server_that_runs_is_used_again(void **state) {
  (void)state;
  start();
  pid_t first = server_pid();
  start();
  assert_int_equal(server_pid(), first);
}

static void require_password(redisContext *c, const char *password) {
  redisReply *reply = redisCommand(c, "CONFIG SET requirepass %s", password);
  assert_non_null(reply);
  assert_int_equal(reply->type, REDIS_REPLY_STATUS);
  freeReplyObject(reply);
}

static void a_refusal_is_an_answer_too(void **state) {
  (void)state;
  start();
  pid_t first = server_pid();
  redisContext *c = look();
  require_password(c, "secret");
  start();
  require_password(c, "");
  redisFree(c);
  assert_int_equal(server_pid(), first);
}

enum { LOADS = 3 };
static atomic_int looked; /* how often it was asked */

/* Answers that it loads, so many times, and then a PING. */
static void *load_for_a_while(void *argument) {
  int listener = *(int *)argument;
  for (int i = 0; i <= LOADS; i++) {
    const char *reply =
        i < LOADS ? "-LOADING Redis is loading the dataset in memory\r\n" : "+PONG\r\n";
    char asked[16];
    int fd = accept(listener, NULL, NULL);
    atomic_fetch_add(&looked, 1);
    if (recv(fd, asked, sizeof asked, 0) > 0) send(fd, reply, strlen(reply), MSG_NOSIGNAL);
    close(fd);
  }
  close(listener);
  return NULL;
}

static void a_server_that_loads_what_it_kept_is_waited_for(void **state) {
  (void)state;
  pthread_t server;
  char made[256];
  lk_error error;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  assert_int_equal(lk_local_dir(made, sizeof made, &error), LK_OK);
  path_in(dir, "redis.sock", address.sun_path, sizeof address.sun_path);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(listener, 8), 0);
  pthread_create(&server, NULL, load_for_a_while, &listener);
  start();
  assert_int_equal(atomic_load(&looked), LOADS + 1);
  pthread_join(server, NULL);
  unlink(address.sun_path);
}

static void the_server_blocks_no_signal_that_its_starter_does(void **state) {
  (void)state;
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  start();
  sigprocmask(SIG_SETMASK, &before, NULL);
  pid_t first = server_pid();
  assert_int_equal(kill(first, SIGTERM), 0);
  redisContext *c = look();
  while (c && !c->err) {
    redisFree(c);
    poll(NULL, 0, 5);
    c = look();
  }
  redisFree(c);
}

static redisReply *get_token(void) {
  redisContext *c = look();
  redisReply *reply = redisCommand(c, "GET token");
  redisFree(c);
  assert_non_null(reply);
  return reply;
}

static void what_was_written_outlives_a_restart(void **state) {
  (void)state;
  start();
  redisContext *c = look();
  freeReplyObject(redisCommand(c, "SET token 7"));
  redisFree(c);
  stop_server();
  start();
  redisReply *reply = get_token();
  while (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0) {
    freeReplyObject(reply);
    reply = get_token();
  }
  assert_string_equal(reply->str, "7");
  freeReplyObject(reply);
}

static void a_server_that_was_killed_is_started_again(void **state) {
  (void)state;
  start();
  pid_t first = server_pid();
  assert_int_equal(kill(first, SIGKILL), 0);
  start();
  assert_int_not_equal(server_pid(), first);
}

static void many_starters_get_one_server(void **state) {
  (void)state;
  pid_t starters[STARTERS];
  for (int i = 0; i < STARTERS; i++) {
    starters[i] = kit_fork();
    if (starters[i] == 0) {
      lk_url url = {.local = true};
      _exit(lk_local_start(&url, NULL) == LK_OK ? 0 : 1);
    }
  }
  for (int i = 0; i < STARTERS; i++) kit_end_child(starters[i]);
  char path[120], line[256];
  path_in(dir, "redis.log", path, sizeof path);
  FILE *log = fopen(path, "r");
  assert_non_null(log);
  int starts = 0;
  while (fgets(line, sizeof line, log)) starts += strstr(line, "erver initialized") != NULL;
  fclose(log);
  assert_int_equal(starts, 1);
}

static atomic_bool passed;
static int64_t moved_us;

/* Time flies until the starter has given up. */
static void *pass_the_deadline(void *unused) {
  while (!atomic_load(&passed)) {
    lk_clock_shift_us(SECOND_US);
    moved_us += SECOND_US;
    poll(NULL, 0, 5);
  }
  return unused;
}

static void a_silent_server_is_not_replaced(void **state) {
  (void)state;
  start();
  pid_t pid = server_pid();
  assert_int_equal(kill(pid, SIGSTOP), 0);
  char path[120];
  path_in(dir, "redis.sock", path, sizeof path);
  assert_int_equal(unlink(path), 0);
  pthread_t mover;
  assert_int_equal(pthread_create(&mover, NULL, pass_the_deadline, NULL), 0);
  assert_start_refused("does not answer");
  atomic_store(&passed, true);
  pthread_join(mover, NULL);
  lk_clock_shift_us(-moved_us);
  assert_int_equal(kill(pid, SIGKILL), 0);
}

static void a_server_that_refuses_to_start_is_reported_with_its_log(void **state) {
  (void)state;
  write_program("redis-server", "#!/bin/sh\necho why\nexit 1\n");
  setenv("PATH", root, 1);
  assert_start_refused("refused to start; see ");
  write_program("redis-server", "#!/bin/sh\nexit 0\n");
  assert_start_refused("ended at once; see ");
}

/* The emulator qemu-user makes a process of its own where vfork() would share one: what fails in that, its
 * parent does not hear. */
static bool spawn_tells(void) {
  char *const argv[] = {"nothing", NULL};
  pid_t pid;
  const int failure = posix_spawn(&pid, "/nowhere/at/all", NULL, NULL, argv, argv + 1);
  if (failure == 0) waitpid(pid, NULL, 0);
  return failure != 0;
}

static void a_program_that_cannot_be_run_is_named(void **state) {
  (void)state;
  if (!spawn_tells()) {
    print_message("# does not apply: posix_spawn() does not tell here that it failed\n");
    skip();
  }
  write_program("redis-server", "not a program");
  setenv("PATH", root, 1);
  assert_start_refused("redis-server cannot be run: Exec format error");
}

/* As on a disk that is full, where it can write no log either. */
static void a_server_that_says_nothing_is_not_blamed_on_its_log(void **state) {
  (void)state;
  write_program("redis-server", "#!/bin/sh\nexit 1\n");
  setenv("PATH", root, 1);
  assert_start_refused("and wrote nothing to ");
  write_program("redis-server", "#!/bin/sh\n/bin/rm \"${0%/*}/local/redis.log\"\nexit 1\n");
  assert_start_refused("refused to start; see ");
}

static void the_server_keeps_nothing_of_its_starter(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  start();
  close(ends[1]);
  struct pollfd closed = {.fd = ends[0], .events = POLLIN};
  assert_int_equal(poll(&closed, 1, DEADLINE_MS), 1);
  assert_true(closed.revents & POLLHUP);
  close(ends[0]);
}

static void the_starter_keeps_nothing_of_the_server(void **state) {
  (void)state;
  int before = kit_count("fd");
  start();
  assert_int_equal(kit_count("fd"), before);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
}

static void an_application_may_ignore_its_children(void **state) {
  (void)state;
  signal(SIGCHLD, SIG_IGN);
  start();
  signal(SIGCHLD, SIG_DFL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_root, close_root)
  const struct CMUnitTest tests[] = {
      TEST(the_folder_comes_from_the_first_variable_that_is_set),
      TEST(a_variable_without_an_absolute_path_is_passed_over),
      TEST(what_the_system_made_for_the_user_comes_before_the_environment),
      TEST(folders_of_others_and_missing_ones_are_passed_over),
      TEST(a_server_that_runs_in_another_of_the_folders_is_used),
      TEST(a_folder_that_others_can_reach_is_refused),
      TEST(a_symbolic_link_is_refused),
      TEST(a_folder_of_another_user_is_refused),
      TEST(a_folder_that_cannot_be_made_is_refused),
      TEST(a_buffer_that_is_too_small_is_refused),
      TEST(a_folder_whose_socket_has_too_long_a_name_is_refused),
      TEST(the_server_is_private_and_keeps_what_it_is_told),
      TEST(the_server_is_looked_for_in_absolute_folders),
      TEST(the_server_is_looked_for_in_the_usual_folders_where_no_other_is_named),
      TEST(a_lock_file_that_cannot_be_opened_is_named),
      TEST(a_server_that_runs_is_used_again),
      TEST(a_refusal_is_an_answer_too),
      TEST(a_server_that_loads_what_it_kept_is_waited_for),
      TEST(the_server_blocks_no_signal_that_its_starter_does),
      TEST(what_was_written_outlives_a_restart),
      TEST(a_server_that_was_killed_is_started_again),
      TEST(many_starters_get_one_server),
      TEST(a_silent_server_is_not_replaced),
      TEST(a_server_that_says_nothing_is_not_blamed_on_its_log),
      TEST(a_server_that_refuses_to_start_is_reported_with_its_log),
      TEST(a_program_that_cannot_be_run_is_named),
      TEST(the_server_keeps_nothing_of_its_starter),
      TEST(the_starter_keeps_nothing_of_the_server),
      TEST(an_application_may_ignore_its_children),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
