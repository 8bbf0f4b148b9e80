/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts of one's own, without a lock of the library's: a desk that one at a time may sit at. A folder of
 * three scripts is loaded and run by name, a lease is kept alive, and a channel is waited for.
 *
 *   own_scripts [URL]     (local:)
 */
#include <latchkey/latchkey.h>
#include <latchkey/nodes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DESK "example:desk" /* a key, and the channel beside it */
#define LEASE "3000"
enum { LEASE_MS = 3000, PATIENCE_MS = 10000 };

static const struct {
  const char *verb, *code;
} scripts[] = {
    {"sit", "if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[1]) then return {1} end\n"
            "return {0}\n"},
    {"stay", "if redis.call('GET', KEYS[1]) ~= ARGV[2] then return {-1} end\n"
             "redis.call('PEXPIRE', KEYS[1], ARGV[1])\nreturn {1}\n"},
    {"rise", "if redis.call('GET', KEYS[1]) ~= ARGV[2] then return {-1} end\n"
             "redis.call('DEL', KEYS[1])\nredis.call(ARGV[3], KEYS[1], 'free')\nreturn {1}\n"},
};
enum { SCRIPTS = sizeof scripts / sizeof scripts[0] };

static void fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  exit(1);
}

static void expect(const char *what, int true_now) {
  printf("%s: %s\n", what, true_now ? "yes" : "NO");
  if (!true_now) exit(1);
}

/* desk/sit.lua and so on: a header with the name and the version, and the code behind it. */
static void write_scripts(const char *home) {
  char path[200];
  snprintf(path, sizeof path, "%s/desk", home);
  if (mkdir(path, 0700) != 0) exit(1);
  for (size_t i = 0; i < SCRIPTS; i++) {
    snprintf(path, sizeof path, "%s/desk/%s.lua", home, scripts[i].verb);
    FILE *file = fopen(path, "w");
    if (!file) exit(1);
    fprintf(file, "#!lua\n--[[ latchkey-script\nname:     desk/%s\nversion:  1.0.0\n]]\n%s",
            scripts[i].verb, scripts[i].code);
    fclose(file);
  }
}

static void remove_scripts(const char *home) {
  char path[200];
  for (size_t i = 0; i < SCRIPTS; i++) {
    snprintf(path, sizeof path, "%s/desk/%s.lua", home, scripts[i].verb);
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/desk", home);
  rmdir(path);
  rmdir(home);
}

static lk_bytes bytes(const char *text) { return (lk_bytes){text, strlen(text)}; }

/* The first number of the reply. */
static int64_t run(lk_client *client, const char *script, const char *who) {
  lk_error error;
  lk_reply *reply = NULL;
  const lk_bytes verb = bytes(lk_publish_verb(client, DESK)); /* a cluster's is another */
  const lk_bytes key = bytes(DESK), args[] = {bytes(LEASE), bytes(who), verb};
  if (lk_eval(client, script, &key, 1, args, 3, &reply, &error) != LK_OK) fail(script, &error);
  const int64_t outcome = lk_reply_integer(lk_reply_at(reply, 0));
  lk_reply_free(reply);
  return outcome;
}

int main(int argc, char **argv) {
  char home[] = "/tmp/latchkey-own-XXXXXX";
  lk_error error;
  lk_client *client = NULL;
  lk_watch *watch = NULL;
  lk_wait *wait = NULL;
  if (!mkdtemp(home)) return 1;
  write_scripts(home);

  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.script_dir = home;
  const lk_status opened = lk_client_open(argc > 1 ? argv[1] : "local:", &options, &client, &error);
  remove_scripts(home); /* they have been read */
  if (opened != LK_OK) fail("open", &error);
  const lk_bytes key = bytes(DESK), args[] = {bytes(LEASE), bytes("ann")};
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  spec.script = "desk/stay";
  spec.keys = &key, spec.nkeys = 1;
  spec.args = args, spec.nargs = 2;
  spec.lease_ms = LEASE_MS;
  spec.since_ms = lk_now_ms(); /* from before the call that is granted the lease */
  expect("ann sits down", run(client, "desk/sit", "ann") == 1);
  if (lk_watch_open(client, &spec, &watch, &error) != LK_OK) fail("watch", &error);
  if (lk_wait_open(client, DESK, &wait, &error) != LK_OK) fail("listen", &error);

  nanosleep(&(struct timespec){.tv_sec = 3 * LEASE_MS / 1000}, NULL);
  expect("three leases later it is hers still", lk_watch_remaining_ms(watch) > 0);
  expect("bob finds it taken", run(client, "desk/sit", "bob") == 0);

  lk_watch_close(watch);
  expect("ann gets up", run(client, "desk/rise", "ann") == 1);
  if (lk_wait_for(wait, PATIENCE_MS, &error) != LK_OK) fail("wait", &error);
  expect("bob hears it and sits down", run(client, "desk/sit", "bob") == 1);
  expect("bob gets up", run(client, "desk/rise", "bob") == 1);
  lk_wait_close(wait);
  lk_client_close(client);
  return 0;
}
