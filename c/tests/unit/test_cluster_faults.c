/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster whose servers are at other addresses all the time, from a scripted server that is all of them. The
 * linker hands every realloc() to this file, which refuses one of a certain size.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <latchkey/counters.h>

#include "base/slots.h"
#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "os/clock.h"

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define TWO_LEFT "*3\r\n:1\r\n:-1\r\n:2\r\n"
#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"

enum { TEXT_MOST = 64 * 1024, MINUTE_US = 61 * 1000 * 1000 };

typedef struct fixture {
  fake *server;
  char url[64];
  char *map; /* what the cluster says of itself */
  lk_client *client;
  lk_lock *lock;
  kit_job job;
} fixture;

static fixture fix;
static atomic_size_t refused_size; /* 0: none */

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size) {
  size_t refused = size;
  if (size > 0 && atomic_compare_exchange_strong(&refused_size, &refused, 0)) return NULL;
  return __real_realloc(old, size);
}

static int port(void) { return atoi(strrchr(fake_url(fix.server), ':') + 1); }

static void add_node(char *text, const char *host, int at) {
  size_t len = strlen(text);
  snprintf(text + len, TEXT_MOST - len, "*3\r\n$%zu\r\n%s\r\n:%d\r\n$1\r\na\r\n", strlen(host),
           host, at);
}

/* All slots at this port of this master, and so many replicas whose addresses nobody had before. */
static char *map_at(const char *master, int at, int replicas) {
  static int addresses;
  char *text = calloc(1, TEXT_MOST);
  assert_non_null(text);
  snprintf(text, TEXT_MOST, "*1\r\n*%d\r\n:0\r\n:16383\r\n", 3 + replicas);
  add_node(text, master, at);
  for (int i = 0; i < replicas; i++) {
    char host[32];
    addresses++;
    snprintf(host, sizeof host, "127.1.%d.%d", addresses / 250, addresses % 250 + 1);
    add_node(text, host, 7);
  }
  return text;
}

static char *map_of(const char *master, int replicas) { return map_at(master, port(), replicas); }

static void tell_map(const char *master, int replicas) {
  fake_command asked = fake_take(fix.server);
  assert_string_equal(asked.argv->element[0]->str, "CLUSTER");
  free(fix.map);
  fix.map = map_of(master, replicas);
  fake_answer(fix.server, asked, fix.map);
}

/* The next that is no question for the map, which may be asked for once more. */
static fake_command take_call(void) {
  fake_command command = fake_take(fix.server);
  while (strcmp(command.argv->element[0]->str, "CLUSTER") == 0) {
    fake_answer(fix.server, command, fix.map);
    command = fake_take(fix.server);
  }
  return command;
}

/* Something is doubtful, so that the map is fetched anew. */
static void learn_anew(const char *master, int replicas) {
  uint64_t before = lk_route_version(fix.client->route);
  size_t count = lk_route_count(fix.client->route);
  lk_route_doubt(fix.client->route);
  tell_map(master, replicas);
  UNTIL(lk_route_version(fix.client->route) != before ||
        lk_route_count(fix.client->route) != count || replicas == 0 || count == 1000);
}

static void *open_client(void *unused) {
  (void)unused;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.no_load = true;
  fix.client = kit_client(fix.url, &options);
  return NULL;
}

/* What it says to SHARDNUMSUB. */
static int open_cluster(const char *sharded) {
  pthread_t thread;
  fix.server = fake_open();
  snprintf(fix.url, sizeof fix.url, "redis-cluster://127.0.0.1:%d", port());
  pthread_create(&thread, NULL, open_client, NULL);
  tell_map("127.0.0.1", 0);
  fake_answer(fix.server, fake_take(fix.server), sharded);
  pthread_join(thread, NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  return 0;
}

static int setup(void **state) {
  (void)state;
  return open_cluster("-ERR unknown subcommand\r\n");
}

static int setup_sharded(void **state) {
  (void)state;
  return open_cluster("*0\r\n");
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  fake_close(fix.server);
  free(fix.map);
  fix.map = NULL;
  return 0;
}

/* Takes the lock and gives it back; the connection that the server was asked on. */
static int use_lock(void) {
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&fix.job, fix.lock, task, 0);
  fake_command command = take_call();
  int link = command.link;
  fake_answer(fix.server, command, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_release(&fix.job, fix.lock, task);
  fake_answer(fix.server, take_call(), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_caller_free(task);
  return link;
}

static void tell(const char *map) {
  fake_command asked = fake_take(fix.server);
  assert_string_equal(asked.argv->element[0]->str, "CLUSTER");
  assert_string_equal(asked.argv->element[1]->str, "SLOTS");
  fake_answer(fix.server, asked, map);
}

/* Of another kind than the client's, where servers speak TLS and plain text. */
static void a_master_without_a_port_is_at_that_of_who_answers(void **state) {
  (void)state;
  int first = use_lock();
  char *map = map_at("127.1", 0, 0);
  uint64_t version = lk_route_version(fix.client->route);
  lk_route_doubt(fix.client->route);
  tell(map);
  UNTIL(lk_route_version(fix.client->route) != version);
  assert_int_not_equal(use_lock(), first);
  free(map);
}

/* Who may not ask keeps to what there was, as where the answer is none. */
static void what_is_no_map_leaves_slots_where_they_were(void **state) {
  (void)state;
  static const char *const answers[] = {"-NOPERM no permissions\r\n", "*0\r\n", "*1\r\n:7\r\n"};
  int first = use_lock();
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    lk_route_doubt(fix.client->route);
    tell(answers[i]);
    assert_int_equal(use_lock(), first);
  }
}

static void *fail_to_open(void *error) {
  lk_client *client = NULL;
  return (void *)(uintptr_t)lk_client_open(fix.url, NULL, &client, error);
}

static void who_may_not_ask_for_the_map_is_told_so(void **state) {
  (void)state;
  lk_error error;
  pthread_t thread;
  void *status = NULL;
  pthread_create(&thread, NULL, fail_to_open, &error);
  tell("-NOPERM User x has no permissions to run the 'cluster|slots' command\r\n");
  pthread_join(thread, &status);
  EXPECT(LK_DENIED, (lk_status)(uintptr_t)status);
  assert_non_null(strstr(error.message, "cluster|slots"));
}

static fake_command take_verb(const char *verb) {
  fake_command command = take_call();
  assert_string_equal(command.argv->element[0]->str, verb);
  return command;
}

/* The command with this name. Looks of who is not heard find it held; who asks for sharded channels is told so,
 * NULL: nobody does. */
static fake_command take_beside(const char *verb, const char *sharded) {
  for (;;) {
    fake_command command = take_call();
    const char *word = command.argv->element[0]->str;
    if (strcmp(word, verb) == 0) return command;
    bool looks = strcmp(word, "EVALSHA") == 0;
    if (!looks) assert_string_equal(word, sharded ? "PUBSUB" : verb);
    fake_answer(fix.server, command, looks ? HELD_BY_ANOTHER : sharded);
  }
}

static void confirm(fake_command command) {
  fake_confirm(fix.server, &command);
  fake_forget(&command);
}

static fake_command take_subscribe(void) { return take_beside("SUBSCRIBE", NULL); }

/* Who has left a cluster, or serves no slot any more and may leave it, is told nothing of what the others publish. */
static void a_channel_of_all_nodes_is_heard_where_a_master_is(void **state) {
  (void)state;
  lk_caller *task = kit_caller(fix.client);
  fake_leave(fix.server, "SUBSCRIBE");
  kit_begin_acquire(&fix.job, fix.lock, task, LK_FOREVER);
  fake_command first = take_subscribe();
  fake_confirm(fix.server, &first);
  UNTIL(lk_channels_is_heard(fix.client->channels, first.argv->element[1]->str));
  free(fix.map);
  fix.map = map_of("127.1", 0);
  lk_route_doubt(fix.client->route);
  fake_command second = take_subscribe();
  assert_int_not_equal(second.link, first.link);
  fake_confirm(fix.server, &second);
  fake_forget(&first);
  fake_forget(&second);
  fake_answer(fix.server, take_call(), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_caller_free(task);
}

/* The slot of this key at `master`, all others where they were. */
static void place_slot(const char *key, const char *master) {
  unsigned slot = lk_slot_of(lk_bytes_of(key));
  char *text = calloc(1, TEXT_MOST);
  assert_non_null(text);
  snprintf(text, TEXT_MOST, "*3\r\n*3\r\n:0\r\n:%u\r\n", slot - 1);
  add_node(text, "127.0.0.1", port());
  snprintf(text + strlen(text), TEXT_MOST - strlen(text), "*3\r\n:%u\r\n:%u\r\n", slot, slot);
  add_node(text, master, port());
  snprintf(text + strlen(text), TEXT_MOST - strlen(text), "*3\r\n:%u\r\n:16383\r\n", slot + 1);
  add_node(text, "127.0.0.1", port());
  free(fix.map);
  fix.map = text;
}

static void give_slot(const char *key, const char *master) {
  place_slot(key, master);
  lk_route_doubt(fix.client->route);
}

/* Heard, and found held once more, on this connection. */
static int wait_heard(fake_command *listening, const char *held) {
  *listening = take_subscribe();
  fake_confirm(fix.server, listening);
  fake_command look = take_call();
  int link = look.link;
  fake_answer(fix.server, look, held);
  UNTIL(fake_is_idle(fix.server));
  return link;
}

static fake_command take_look(void) { return take_verb("EVALSHA"); }

/* What the new master knows of a hold nobody may have published: neither it, before, nor the old one any more. */
static void who_waits_looks_again_when_another_master_has_its_slot(void **state) {
  (void)state;
  lk_caller *task = kit_caller(fix.client);
  fake_command listening;
  fake_leave(fix.server, "SUBSCRIBE");
  kit_begin_acquire(&fix.job, fix.lock, task, LK_FOREVER);
  int link = wait_heard(&listening, HELD_BY_ANOTHER);
  give_slot("job", "127.1");
  fake_command look = take_look();
  assert_int_not_equal(look.link, link);
  fake_answer(fix.server, look, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&listening);
  lk_caller_free(task);
}

/* Each MOVED names the other: a look for each would send calls to and fro as fast as the network can. */
static void masters_that_disagree_are_not_looked_at_all_the_time(void **state) {
  (void)state;
  enum { LOOKS = 4, SOON_US = 500 * 1000 };
  const char *const hosts[] = {"127.1", "127.0.0.1"};
  lk_caller *task = kit_caller(fix.client);
  fake_command listening;
  fake_leave(fix.server, "SUBSCRIBE");
  kit_begin_acquire(&fix.job, fix.lock, task, LK_FOREVER);
  wait_heard(&listening, HELD_BY_ANOTHER);
  int64_t begun_us = lk_clock_us();
  for (int i = 0; i < LOOKS; i++) {
    char moved[64];
    snprintf(moved, sizeof moved, "MOVED %u %s:%d", lk_slot_of(lk_bytes_of("job")), hosts[i % 2],
             port());
    place_slot("job", hosts[i % 2]); /* it says the same */
    lk_route_moved(fix.client->route, lk_route_at(fix.client->route, 0), moved);
    fake_command look = take_look();
    fake_answer(fix.server, look, i < LOOKS - 1 ? HELD_BY_ANOTHER : TAKEN);
  }
  assert_true(lk_clock_us() - begun_us > SOON_US);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&listening);
  lk_caller_free(task);
}

static void *wait_for_latch(void *latch) {
  lk_error error;
  return (void *)(uintptr_t)lk_countdown_wait(latch, 20000, &error);
}

/* The latch is at its tag's slot, its channel elsewhere. */
static void who_waits_for_a_latch_with_a_tag_looks_again_for_the_slot_of_the_latch(void **state) {
  (void)state;
  lk_countdown *latch;
  lk_error error;
  pthread_t thread;
  void *status = NULL;
  fake_command listening;
  EXPECT(LK_OK, lk_countdown_open(fix.client, "job{a}", NULL, &latch, &error));
  fake_leave(fix.server, "SUBSCRIBE");
  pthread_create(&thread, NULL, wait_for_latch, latch);
  fake_answer(fix.server, take_look(), TWO_LEFT);
  int link = wait_heard(&listening, TWO_LEFT);
  give_slot("job{a}", "127.1");
  fake_command look = take_look();
  assert_int_not_equal(look.link, link);
  fake_answer(fix.server, look, "*1\r\n:0\r\n");
  pthread_join(thread, &status);
  EXPECT(LK_OK, (lk_status)(uintptr_t)status);
  fake_forget(&listening);
  lk_countdown_close(latch);
}

static void *open_lazily(void *unused) {
  (void)unused;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.no_load = true;
  options.lazy = true;
  fix.client = kit_client(fix.url, &options);
  return NULL;
}

/* As for who begins before its cluster. */
static void open_while_down(void) {
  pthread_t thread;
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  pthread_create(&thread, NULL, open_lazily, NULL);
  tell("*0\r\n");
  pthread_join(thread, NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  lk_route_doubt(fix.client->route);
}

/* The next look takes the lock; its release is told by this verb. */
static void take_and_release(lk_caller *task, const char *publish) {
  fake_answer(fix.server, take_look(), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_release(&fix.job, fix.lock, task);
  fake_command release = take_call();
  assert_string_equal(release.argv->element[release.argv->elements - 1]->str, publish);
  fake_answer(fix.server, release, RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_caller_free(task);
}

/* Else it would publish where nobody listens, and listen where nobody publishes. */
static void
who_opened_a_client_of_a_cluster_that_was_down_learns_of_sharded_channels(void **state) {
  (void)state;
  open_while_down();
  fake_command asked = fake_take(fix.server);
  assert_string_equal(asked.argv->element[1]->str, "SHARDNUMSUB");
  fake_answer(fix.server, asked, "-CLUSTERDOWN The cluster is down\r\n");
  tell_map("127.0.0.1", 0);
  asked = fake_take(fix.server); /* that was no answer */
  assert_string_equal(asked.argv->element[1]->str, "SHARDNUMSUB");
  fake_answer(fix.server, asked, "*0\r\n");
  tell_map("127.0.0.1", 0);

  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&fix.job, fix.lock, task, LK_FOREVER);
  fake_command listening = take_beside("SSUBSCRIBE", NULL);
  fake_forget(&listening);
  take_and_release(task, "SPUBLISH");
}

/* Redis before 7.0 has none. Until a server says so, they count as there. */
static void
who_listens_on_sharded_channels_that_a_cluster_does_not_have_listens_anew(void **state) {
  (void)state;
  static const char down[] = "-CLUSTERDOWN The cluster is down\r\n";
  open_while_down();
  free(fix.map);
  fix.map = map_of("127.0.0.1", 0);

  lk_caller *task = kit_caller(fix.client);
  fake_leave(fix.server,
             "SUBSCRIBE"); /* which may come at once behind the answer to what is before it */
  kit_begin_acquire(&fix.job, fix.lock, task, LK_FOREVER);
  fake_command listening = take_beside("SSUBSCRIBE", down);
  fake_confirm(fix.server, &listening);
  UNTIL(lk_channels_is_heard(fix.client->channels, listening.argv->element[1]->str));
  fake_forget(&listening);
  lk_route_doubt(fix.client->route);
  confirm(take_beside("SUNSUBSCRIBE", "-ERR unknown subcommand\r\n"));
  confirm(take_subscribe());
  take_and_release(task, "PUBLISH");
}

static void a_channel_that_a_cluster_without_its_slot_refuses_is_asked_for_again(void **state) {
  (void)state;
  lk_caller *task = kit_caller(fix.client);
  fake_leave(fix.server, "SUBSCRIBE");
  kit_begin_acquire(&fix.job, fix.lock, task, LK_FOREVER);
  fake_answer(fix.server, take_subscribe(), "-CLUSTERDOWN Hash slot not served\r\n");
  fake_command again = take_subscribe();
  fake_confirm(fix.server, &again);
  UNTIL(lk_channels_is_heard(fix.client->channels, again.argv->element[1]->str));
  fake_forget(&again);
  fake_answer(fix.server, take_call(), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_caller_free(task);
}

static void *listen_to_news(void *out) {
  *(lk_wait **)out = kit_wait(fix.client, "news");
  return NULL;
}

static void learn(char *map) {
  free(fix.map);
  fix.map = map;
  lk_route_doubt(fix.client->route);
}

/* It was to be left for a server that is not there, and is asked for anew before that is answered. */
static void a_channel_that_was_back_before_it_was_left_goes_where_its_slot_goes(void **state) {
  (void)state;
  char moved[64];
  lk_wait *wait = NULL;
  pthread_t thread;
  pthread_create(&thread, NULL, listen_to_news, &wait);
  fake_command first = take_verb("SSUBSCRIBE");
  int link = first.link;
  confirm(first);
  pthread_join(thread, NULL);
  learn(map_at("127.0.0.1", 7, 0));
  fake_command leaves = take_verb("SUNSUBSCRIBE");
  learn(map_of("127.0.0.1", 0));
  fake_command back = take_verb("SSUBSCRIBE");
  assert_int_equal(back.link, link);
  confirm(leaves);
  snprintf(moved, sizeof moved, "-MOVED %u 127.1:%d\r\n", lk_slot_of(kit_bytes("news")), port());
  free(fix.map);
  fix.map = map_of("127.1", 0);
  fake_answer(fix.server, back, moved);
  fake_command there = take_verb("SSUBSCRIBE");
  assert_int_not_equal(there.link, link);
  confirm(there);
  UNTIL(lk_channels_is_heard(fix.client->channels, "news"));
  lk_wait_close(wait);
}

static void a_master_at_a_new_address_is_reached_after_thousands_of_others(void **state) {
  (void)state;
  int first = use_lock();
  for (int i = 0; i < 5; i++) learn_anew("127.0.0.1", 300);
  uint64_t before = lk_route_version(fix.client->route);
  learn_anew("127.1", 0);
  UNTIL(lk_route_version(fix.client->route) != before);
  assert_int_not_equal(use_lock(), first);
}

static void replicas_take_no_room_from_masters(void **state) {
  (void)state;
  enum { REPLICAS = 1100 };
  int first = use_lock();
  char *text = calloc(1, TEXT_MOST);
  assert_non_null(text);
  snprintf(text, TEXT_MOST, "*2\r\n*%d\r\n:0\r\n:0\r\n", 3 + REPLICAS);
  add_node(text, "127.0.0.1", port());
  for (int i = 0; i < REPLICAS; i++) {
    char host[32];
    snprintf(host, sizeof host, "127.2.%d.%d", i / 250, i % 250 + 1);
    add_node(text, host, 7);
  }
  snprintf(text + strlen(text), TEXT_MOST - strlen(text), "*3\r\n:1\r\n:16383\r\n");
  add_node(text, "127.1", port());
  uint64_t before = lk_route_version(fix.client->route);
  lk_route_doubt(fix.client->route);
  tell(text);
  UNTIL(lk_route_version(fix.client->route) != before);
  assert_int_not_equal(use_lock(), first);
  free(text);
}

static void what_left_the_cluster_is_forgotten_after_a_while(void **state) {
  (void)state;
  learn_anew("127.0.0.1", 3);
  learn_anew("127.0.0.1", 3);
  int descriptors = kit_count("fd");
  for (int i = 0; i < 4; i++) {
    lk_clock_shift_us(MINUTE_US);
    lk_route_doubt(fix.client->route);
    tell_map(i % 2 ? "127.0.0.1" : "127.1", 3);
    use_lock();
  }
  assert_in_range(lk_route_count(fix.client->route), 4, 8);
  assert_in_range(kit_count("fd"), 0, descriptors + 8);
}

typedef struct evaluation {
  pthread_t thread;
  char argument[2048];
  lk_status status;
  lk_reply *reply;
} evaluation;

static void *evaluate(void *argument) {
  evaluation *e = argument;
  const lk_bytes key = kit_bytes("job"), value = kit_bytes(e->argument);
  e->status = lk_eval(fix.client, "lock/acquire", &key, 1, &value, 1, &e->reply, NULL);
  return NULL;
}

/* The slot is on its way: this call is to be asked of the other. */
static void begin_astray(evaluation *e, size_t len, size_t refused) {
  char reply[64];
  memset(e, 0, sizeof *e);
  memset(e->argument, 'x', len);
  pthread_create(&e->thread, NULL, evaluate, e);
  snprintf(reply, sizeof reply, "-ASK 1 127.1:%d\r\n", port());
  fake_command command = take_call();
  atomic_store(&refused_size, refused);
  fake_answer(fix.server, command, reply);
}

static void a_call_that_memory_was_short_for_gives_no_other_a_wrong_reply(void **state) {
  (void)state;
  evaluation e;
  begin_astray(&e, 2000, 4096); /* of the connection's buffer, with ASKING in it already */
  pthread_join(e.thread, NULL);
  assert_int_equal(e.status, LK_NOMEM);
  assert_int_equal(atomic_load(&refused_size), 0);
  begin_astray(&e, 20, 0);
  fake_command command = take_call();
  while (strcmp(command.argv->element[0]->str, "ASKING") == 0) {
    fake_answer(fix.server, command, "+OK\r\n");
    command = take_call();
  }
  fake_answer(fix.server, command, TAKEN);
  pthread_join(e.thread, NULL);
  assert_int_equal(e.status, LK_OK);
  assert_int_equal(lk_reply_count(e.reply), 2);
  lk_reply_free(e.reply);
}

/* One copy may have run when the next is sent to a server that is not there. */
static void a_copy_without_a_reply_stays_in_doubt_when_the_slot_has_moved(void **state) {
  (void)state;
  evaluation e = {.argument = "x"};
  pthread_create(&e.thread, NULL, evaluate, &e);
  fake_command first = take_call();
  fake_hang_up(fix.server, &first);
  fake_forget(&first);
  fake_answer(fix.server, take_call(), "-ASK 1 127.1:7\r\n"); /* where nobody listens */
  pthread_join(e.thread, NULL);
  assert_int_equal(e.status, LK_UNSURE);
}

static void an_error_of_a_later_copy_leaves_the_first_in_doubt(void **state) {
  (void)state;
  evaluation e = {.argument = "x"};
  pthread_create(&e.thread, NULL, evaluate, &e);
  fake_command first = take_call();
  fake_hang_up(fix.server, &first);
  fake_forget(&first);
  fake_answer(fix.server, take_call(), "-OOM no memory\r\n");
  pthread_join(e.thread, NULL);
  assert_int_equal(e.status, LK_UNSURE);
}

/* The answer to a call that is sent on to where nobody can be asked. */
static void expect_nowhere(const char *reply, const char *why) {
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&fix.job, fix.lock, task, 0);
  fake_answer(fix.server, take_call(), reply);
  EXPECT(LK_CLUSTERDOWN, kit_end(&fix.job));
  EXPECT_MESSAGE(why);
  lk_caller_free(task);
}

static void a_redirection_without_an_address_passes(void **state) {
  (void)state;
  expect_nowhere("-MOVED 3999 127.0.0.1:0\r\n",
                 "names no address of the slot's server: MOVED 3999");
  expect_nowhere("-ASK 3999 127.0.0.1:0\r\n", "names no address of the slot's server: ASK 3999");
}

/* The least number that a descriptor could have is above the limit. */
static void forbid_descriptors(struct rlimit *before) {
  int next = dup(0);
  assert_true(next >= 0);
  close(next);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
  const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before->rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void a_redirection_passes_that_no_descriptor_is_left_for(void **state) {
  (void)state;
  struct rlimit before;
  use_lock();
  forbid_descriptors(&before);
  expect_nowhere("-MOVED 3999 127.1.1.1:7\r\n",
                 "no memory or descriptors for a connection to the slot's server 127.1.1.1:7");
  expect_nowhere("-ASK 3999 127.1.1.2:7\r\n",
                 "no memory or descriptors for a connection to the slot's server 127.1.1.2:7");
  setrlimit(RLIMIT_NOFILE, &before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SHARDED(name) cmocka_unit_test_setup_teardown(name, setup_sharded, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_master_without_a_port_is_at_that_of_who_answers),
      TEST(what_is_no_map_leaves_slots_where_they_were),
      TEST(who_may_not_ask_for_the_map_is_told_so),
      TEST(a_channel_of_all_nodes_is_heard_where_a_master_is),
      TEST(who_waits_looks_again_when_another_master_has_its_slot),
      TEST(masters_that_disagree_are_not_looked_at_all_the_time),
      TEST(who_waits_for_a_latch_with_a_tag_looks_again_for_the_slot_of_the_latch),
      TEST(who_opened_a_client_of_a_cluster_that_was_down_learns_of_sharded_channels),
      TEST(who_listens_on_sharded_channels_that_a_cluster_does_not_have_listens_anew),
      TEST(a_channel_that_a_cluster_without_its_slot_refuses_is_asked_for_again),
      TEST_SHARDED(a_channel_that_was_back_before_it_was_left_goes_where_its_slot_goes),
      TEST(a_master_at_a_new_address_is_reached_after_thousands_of_others),
      TEST(a_call_that_memory_was_short_for_gives_no_other_a_wrong_reply),
      TEST(replicas_take_no_room_from_masters),
      TEST(what_left_the_cluster_is_forgotten_after_a_while),
      TEST(a_copy_without_a_reply_stays_in_doubt_when_the_slot_has_moved),
      TEST(an_error_of_a_later_copy_leaves_the_first_in_doubt),
      TEST(a_redirection_without_an_address_passes),
      TEST(a_redirection_passes_that_no_descriptor_is_left_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
