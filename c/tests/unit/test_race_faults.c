/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other threads do in the middle of a call. The linker hands every pthread_mutex_unlock() to this
 * file, so that a call can be stopped at the moment when it lets go of the client's mutex; every pthread_cond_wait(),
 * so that it is known who waits for whom; every calloc() and free(), so that one piece of memory can be made
 * unreadable as soon as it is freed; and every malloc() and realloc(), so that one thread has no memory.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <latchkey/fence.h>
#include <latchkey/multilock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"
#include "kit.h"
#include "locks/attempt.h"
#include "net/pipe_drive.h"
#include "task.h"

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  pthread_t thread;
  pthread_mutex_t *mutex; /* of the client that may be gone by then; NULL: any */
  bool (*is_moment)(void);
  int unlocks;
  atomic_bool stopped, goes_on;
  bool starves; /* who was stopped has no memory then */
  _Atomic(pthread_cond_t *) awaited;
  atomic_bool waits, closed; /* somebody waits for that; the client is closed */
  atomic_int told;
  lk_status status;
  lk_watch *watch;
  int64_t remaining_ms;
} fixture;

static fixture fix;
static _Thread_local bool is_watched, has_no_memory, has_no_room;

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

/* Whoever lets go of it, for the so-manieth time from now, rests for a while, whatever others do then; NULL: nobody. */
static _Atomic(pthread_mutex_t *) rests_after;
static atomic_int unlocks_before;

/* Nobody wakes it: who is woken knows all that the other has done before. */
static void rest(void) {
  enum { REST_US = 500 * 1000 };
  is_watched = false;
  atomic_store(&fix.stopped, true);
  usleep(REST_US);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
  pthread_mutex_t *awaited = mutex;
  bool rests = atomic_load(&rests_after) == mutex && atomic_fetch_sub(&unlocks_before, 1) == 0 &&
               atomic_compare_exchange_strong(&rests_after, &awaited, NULL);
  bool stops = is_watched && (!fix.mutex || mutex == fix.mutex) && fix.is_moment();
  int result = __real_pthread_mutex_unlock(mutex);
  if (rests) {
    rest();
  } else if (stops) {
    is_watched = false;
    atomic_store(&fix.stopped, true);
    UNTIL(atomic_load(&fix.goes_on));
    has_no_memory = fix.starves;
  }
  return result;
}

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
  if (cond == atomic_load(&fix.awaited)) atomic_store(&fix.waits, true);
  return __real_pthread_cond_wait(cond, mutex);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) { return has_no_memory ? NULL : __real_malloc(size); }

void *__wrap_realloc(void *memory, size_t size) {
  return has_no_room ? NULL : __real_realloc(memory, size);
}

static atomic_size_t
    guarded_size; /* of the next piece that is to have a page of its own; 0: none */
static void *_Atomic guarded;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);

void *__wrap_calloc(size_t count, size_t size) {
  size_t wanted = size;
  bool guards = count == 1 && size > 0 && atomic_compare_exchange_strong(&guarded_size, &wanted, 0);
  if (!guards) return __real_calloc(count, size);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(page != MAP_FAILED);
  atomic_store(&guarded, page);
  return page;
}

void __wrap_free(void *memory) {
  if (!memory || memory != atomic_load(&guarded)) {
    __real_free(memory);
  } else {
    mprotect(memory, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
  }
}

/* A call has begun, and now has what it came for. */
static bool is_second_unlock(void) { return ++fix.unlocks == 2; }

/* The acquire can be found and run by others. */
static bool is_in_line(void) {
  const lk_attempt *a = fix.lock->record->first;
  return a && !a->base.steps.running;
}

static void open_client(lk_callbacks callbacks) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.callbacks = callbacks;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  fix.task = kit_caller(fix.client);
  fix.mutex = &fix.client->mutex.system;
}

static int setup(void **state) {
  (void)state;
  atomic_store(&rests_after, NULL);
  atomic_store(&unlocks_before, 0);
  fix = (fixture){.server = fake_open()};
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(fix.lock);
  lk_caller_free(fix.task);
  if (fix.client) lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

/* Runs it on another thread until that moment. */
static void stop_in(void *(*call)(void *), bool (*is_moment)(void)) {
  fix.is_moment = is_moment;
  assert_int_equal(pthread_create(&fix.thread, NULL, call, NULL), 0);
  UNTIL(atomic_load(&fix.stopped));
}

static void go_on(void) {
  atomic_store(&fix.goes_on, true);
  pthread_join(fix.thread, NULL);
}

static void tell(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error, (void)user;
  fix.status = status;
  atomic_fetch_add(&fix.told, 1);
}

static void *start_acquire(void *unused) {
  (void)unused;
  is_watched = true;
  EXPECT(LK_OK,
         lk_lock_acquire_async(fix.lock, fix.task, LK_FOREVER, tell, NULL, NULL, &kit_error));
  return NULL;
}

static void an_acquire_may_end_before_the_call_that_begins_it(void **state) {
  (void)state;
  open_client(LK_ON_DISPATCH);
  stop_in(start_acquire, is_in_line);
  lk_client_close(fix.client);
  fix.client = NULL;
  assert_int_equal(atomic_load(&fix.told), 1);
  assert_int_equal(fix.status, LK_CLOSED);
  go_on();
  assert_int_equal(atomic_load(&fix.told), 1);
}

static void *ask(void *unused) {
  (void)unused;
  is_watched = true;
  fix.remaining_ms = lk_lock_remaining_ms(fix.lock, fix.task);
  return NULL;
}

static void a_hold_may_be_released_while_somebody_asks_about_it(void **state) {
  (void)state;
  kit_job job;
  open_client(LK_ON_DISPATCH);
  kit_begin_acquire(&job, fix.lock, fix.task, 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  stop_in(ask, is_second_unlock);
  kit_begin_release(&job, fix.lock, fix.task);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/release"), RELEASED);
  EXPECT(LK_OK, kit_end(&job));
  go_on();
  assert_in_range(fix.remaining_ms, 0, 30000);
}

/* The keeper is about to renew it. ThreadSanitizer says so when it looks at what the other thread changes. */
static void a_hold_may_be_renewed_while_it_is_re_entered_for_longer(void **state) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  lk_lock *shorter, *longer;
  kit_job job;
  (void)state;
  open_client(LK_ON_DISPATCH);
  options.renew = true;
  options.lease_ms = 3000;
  shorter = kit_lock(fix.client, LK_LOCK, "renewed", &options);
  options.lease_ms = 60000;
  longer = kit_lock(fix.client, LK_LOCK, "renewed", &options);
  kit_begin_acquire(&job, shorter, fix.task, 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  atomic_store(&rests_after, fix.mutex);
  UNTIL(atomic_load(&fix.stopped));
  kit_begin_acquire(&job, longer, fix.task, 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), "*2\r\n:1\r\n:2\r\n");
  EXPECT(LK_OK, kit_end(&job));
  fake_answer(fix.server, fake_take_script(fix.server, "lock/renew"), "*1\r\n:1\r\n");
  assert_true(lk_lock_remaining_ms(longer, fix.task) > 3000);
  lk_lock_close(shorter);
  lk_lock_close(longer);
}

/* Takes two locks of two clients as one; the second one's is fix.lock. */
typedef struct pair {
  lk_client *client;
  lk_lock *locks[2];
  lk_multilock *multi;
  pthread_t thread, answering;
  lk_status status;
  fake_command late; /* of the re-entry that is given up */
  atomic_bool done;
} pair;

static void *take_pair(void *argument) {
  pair *p = argument;
  p->status = lk_multilock_acquire(p->multi, fix.task, LK_FOREVER, NULL, NULL);
  return NULL;
}

static void begin_pair(pair *p) {
  assert_int_equal(pthread_create(&p->thread, NULL, take_pair, p), 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
}

/* The late answer comes while the other thread rests, and then those to what that and the background ask. */
static void *answer_late(void *argument) {
  enum { REST_BEGINS_US = 100 * 1000 };
  pair *p = argument;
  usleep(REST_BEGINS_US);
  fake_answer(fix.server, p->late, "*2\r\n:1\r\n:2\r\n");
  while (!atomic_load(&p->done)) {
    if (fake_is_idle(fix.server)) {
      kit_pause();
    } else {
      fake_answer(fix.server, fake_take(fix.server), "*2\r\n:1\r\n:1\r\n");
    }
  }
  return NULL;
}

/* A member's client is closed while all are re-entered: another member's answer comes when its caller has gone on, and
 * re-enters it by itself. ThreadSanitizer says so when both touch the count at once. */
static void a_hold_may_be_re_entered_while_a_re_entry_that_was_given_up_ends(void **state) {
  enum { FIRST_MOMENT = 4, LAST_MOMENT = 8 }; /* how often it lets go of the mutex before */
  (void)state;
  for (int moment = FIRST_MOMENT; moment <= LAST_MOMENT; moment++) {
    pair p = {0};
    open_client(LK_ON_DISPATCH);
    p.client = kit_client(fake_url(fix.server), NULL);
    p.locks[0] = kit_lock(p.client, LK_LOCK, "a", NULL);
    p.locks[1] = fix.lock;
    EXPECT(LK_OK, lk_multilock_open(p.locks, 2, 2, &p.multi, &kit_error));
    begin_pair(&p);
    fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
    pthread_join(p.thread, NULL);
    EXPECT(LK_OK, p.status);
    begin_pair(&p);
    p.late = fake_take_script(fix.server, "lock/acquire");
    lk_client_close(p.client);
    pthread_join(p.thread, NULL);
    assert_int_equal(p.status, LK_CLOSED);

    assert_int_equal(pthread_create(&p.answering, NULL, answer_late, &p), 0);
    atomic_store(&unlocks_before, moment);
    atomic_store(&rests_after, fix.mutex);
    atomic_store(&fix.stopped, false);
    EXPECT(LK_OK, lk_lock_acquire(fix.lock, fix.task, 0, &kit_error));
    assert_true(atomic_load(&fix.stopped)); /* somebody has rested meanwhile */
    atomic_store(&p.done, true);
    pthread_join(p.answering, NULL);
    lk_multilock_close(p.multi);
    lk_lock_close(p.locks[0]);
    lk_caller_free(fix.task);
    lk_lock_close(fix.lock);
    fake_refuse(fix.server, true);
    lk_client_close(fix.client);
    fake_refuse(fix.server, false);
    fix.client = NULL;
    fix.lock = NULL;
    fix.task = NULL;
  }
}

/* A majority of three servers, which are one. What is known of it is of the size of this. */
enum { MEMBERS = 3 };
typedef struct majority {
  uint64_t numbers[2];
  void *next, **at;
} majority;

typedef struct trio {
  lk_client *clients[MEMBERS];
  lk_lock *locks[MEMBERS];
  lk_multilock *multi;
  lk_caller *task;
  pthread_t thread;
  bool releases;
  lk_status status;
  atomic_bool done;
} trio;

static void *run_trio(void *argument) {
  trio *t = argument;
  t->status = t->releases ? lk_multilock_release(t->multi, t->task, NULL, NULL)
                          : lk_multilock_acquire(t->multi, t->task, LK_FOREVER, NULL, NULL);
  atomic_store(&t->done, true);
  return NULL;
}

/* Every call is granted, as soon as it comes. */
static void call_trio(trio *t, bool releases) {
  t->releases = releases;
  atomic_store(&t->done, false);
  assert_int_equal(pthread_create(&t->thread, NULL, run_trio, t), 0);
  while (!atomic_load(&t->done)) {
    if (fake_is_idle(fix.server)) {
      kit_pause();
    } else {
      fake_answer(fix.server, fake_take(fix.server), TAKEN);
    }
  }
  pthread_join(t->thread, NULL);
}

static void open_trio(trio *t) {
  for (int i = 0; i < MEMBERS; i++) {
    t->clients[i] = kit_client(fake_url(fix.server), NULL);
    t->locks[i] = kit_lock(t->clients[i], LK_LOCK, "job", NULL);
  }
  t->task = kit_caller(t->clients[0]);
  EXPECT(LK_OK, lk_multilock_open(t->locks, MEMBERS, 2, &t->multi, &kit_error));
}

static void close_trio(trio *t) {
  lk_multilock_close(t->multi);
  lk_caller_free(t->task);
  for (int i = 0; i < MEMBERS; i++) {
    lk_lock_close(t->locks[i]);
    lk_client_close(t->clients[i]);
  }
}

static trio three;

static void *ask_three(void *unused) {
  (void)unused;
  is_watched = true;
  fix.remaining_ms = lk_multilock_remaining_ms(three.multi, three.task);
  return NULL;
}

static bool is_first_unlock(void) { return true; }

static void a_majority_may_be_released_while_somebody_asks_about_it(void **state) {
  (void)state;
  open_trio(&three);
  atomic_store(&guarded_size, sizeof(majority));
  call_trio(&three, false);
  EXPECT(LK_OK, three.status);
  assert_int_equal(atomic_load(&guarded_size), 0);
  stop_in(ask_three, is_first_unlock);
  call_trio(&three, true);
  go_on();
  assert_in_range(fix.remaining_ms, 0, 30000);
  close_trio(&three);
}

static void close_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  (void)reason, (void)user;
  lk_watch_close(watch);
  atomic_fetch_add(&fix.told, 1);
}

static void *open_watch(void *unused) {
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  (void)unused;
  spec.lease_ms = 100;
  spec.since_ms = lk_now_ms() - 1000;
  spec.on_lost = close_lost;
  is_watched = true;
  EXPECT(LK_OK, lk_watch_open(fix.client, &spec, &fix.watch, &kit_error));
  return NULL;
}

static void a_watch_may_be_lost_and_closed_while_it_is_opened(void **state) {
  (void)state;
  open_client(LK_ON_BACKGROUND);
  stop_in(open_watch, is_second_unlock);
  UNTIL(atomic_load(&fix.told) == 1);
  go_on();
}

static bool is_closing(void) { return fix.client->closing; }

static void *take_permit(void *semaphore) {
  is_watched = true;
  fix.status = lk_semaphore_acquire(semaphore, 1, 0, NULL);
  return NULL;
}

static void *run_close(void *client) {
  lk_client_close(client);
  atomic_store(&fix.closed, true);
  return NULL;
}

/* Granted while the client closes, and the way to give it back is gone, or there is no memory for that. */
static void lose_a_permit(bool starves) {
  pthread_t closer;
  open_client(LK_ON_DISPATCH);
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  lk_semaphore *semaphore = open_semaphore(fix.client, "places", NULL);
  fix.starves = starves;
  fix.is_moment = is_closing;
  assert_int_equal(pthread_create(&fix.thread, NULL, take_permit, semaphore), 0);
  fake_command taking = fake_take_script(fix.server, "semaphore/acquire");
  assert_int_equal(pthread_create(&closer, NULL, run_close, fix.client), 0);
  UNTIL(lk_client_is_closing(fix.client));
  fake_answer(fix.server, taking, "*2\r\n:1\r\n:4\r\n");
  UNTIL(atomic_load(&fix.stopped));
  if (!starves) fake_refuse(fix.server, true);
  UNTIL(starves || lk_pipe_place(pipe) == 0);
  go_on();
  pthread_join(closer, NULL);
  fix.client = NULL;
  assert_int_equal(fix.status, LK_UNSURE);
  lk_semaphore_close(semaphore);
}

static void a_permit_that_cannot_be_given_back_is_not_said_to_be_free(void **state) {
  (void)state;
  lose_a_permit(false);
}

static void a_permit_that_no_memory_is_left_to_give_back_is_not_said_to_be_free(void **state) {
  (void)state;
  lose_a_permit(true);
}

/* The call that it has begun is over, and it has not returned. */
static bool is_over(void) { return fix.client->active == 0; }

/* Of more bytes than there is room for, so it ends on the thread that begins it. */
static void *start_eval(void *unused) {
  char text[8192] = "";
  const lk_bytes key = kit_bytes("job"), arg = {text, sizeof text};
  (void)unused;
  is_watched = has_no_room = true;
  EXPECT(LK_OK,
         lk_eval_async(fix.client, "lock/inspect", &key, 1, &arg, 1, tell, NULL, NULL, &kit_error));
  return NULL;
}

static void a_close_waits_for_who_is_about_to_leave_a_connection(void **state) {
  (void)state;
  pthread_t closer;
  atomic_store(&guarded_size, sizeof(lk_pipe));
  open_client(LK_ON_DISPATCH);
  assert_int_equal(atomic_load(&guarded_size), 0);
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  assert_ptr_equal(pipe, atomic_load(&guarded));
  atomic_store(&fix.awaited, &pipe->left.system);
  stop_in(start_eval, is_over);
  lk_lock_close(fix.lock);
  lk_caller_free(fix.task);
  fix.lock = NULL;
  fix.task = NULL;
  assert_int_equal(pthread_create(&closer, NULL, run_close, fix.client), 0);
  UNTIL(atomic_load(&fix.waits) || atomic_load(&fix.closed));
  go_on();
  pthread_join(closer, NULL);
  fix.client = NULL;
  assert_true(atomic_load(&fix.waits));
  assert_int_equal(atomic_load(&fix.told), 1);
  assert_int_equal(fix.status, LK_NOMEM);
}

static void *guard(void *unused) {
  const lk_bytes argv[] = {kit_bytes("SET"), kit_bytes("{job}:work"), kit_bytes("1")};
  (void)unused;
  is_watched = true;
  fix.status = lk_guard_call(fix.lock, fix.task, argv, 3, NULL, NULL);
  return NULL;
}

static void a_hold_of_a_closing_client_is_not_said_to_be_none(void **state) {
  (void)state;
  kit_job job;
  pthread_t closer;
  open_client(LK_ON_DISPATCH);
  kit_begin_acquire(&job, fix.lock, fix.task, 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  stop_in(guard, is_first_unlock);
  assert_int_equal(pthread_create(&closer, NULL, run_close, fix.client), 0);
  UNTIL(lk_client_is_closing(fix.client));
  go_on();
  pthread_join(closer, NULL);
  fix.client = NULL;
  assert_int_equal(fix.status, LK_CLOSED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_acquire_may_end_before_the_call_that_begins_it),
      TEST(a_hold_may_be_released_while_somebody_asks_about_it),
      TEST(a_hold_may_be_renewed_while_it_is_re_entered_for_longer),
      TEST(a_hold_may_be_re_entered_while_a_re_entry_that_was_given_up_ends),
      TEST(a_majority_may_be_released_while_somebody_asks_about_it),
      TEST(a_watch_may_be_lost_and_closed_while_it_is_opened),
      TEST(a_permit_that_cannot_be_given_back_is_not_said_to_be_free),
      TEST(a_permit_that_no_memory_is_left_to_give_back_is_not_said_to_be_free),
      TEST(a_close_waits_for_who_is_about_to_leave_a_connection),
      TEST(a_hold_of_a_closing_client_is_not_said_to_be_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
