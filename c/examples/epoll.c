/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on one thread: its guests ask for a lock over their connections, and none of them keeps it
 * from serving the others. The guests are threads at the other ends of socket pairs.
 *
 *   epoll [URL]     (local:)
 */
#include <latchkey/latchkey.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GUESTS = 4, WAIT_MS = 60000 };

typedef struct guest {
  lk_lock *lock;
  lk_caller *caller; /* each is a holder of its own, on whatever thread */
  int fd, other_end;
  int *left;
} guest;

static atomic_int inside, failures;

static void say(const guest *g, char word) {
  if (write(g->fd, &word, 1) != 1) atomic_fetch_add(&failures, 1);
}

static void granted(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op;
  if (status != LK_OK) fprintf(stderr, "acquire: %s\n", error->message);
  say(user, status == LK_OK ? 'h' : 'x');
}

static void given_back(lk_op *op, lk_status status, const lk_error *error, void *user) {
  const guest *g = user;
  (void)op;
  if (status != LK_OK) fprintf(stderr, "release: %s\n", error->message);
  say(g, status == LK_OK ? 'f' : 'x');
  --*g->left;
}

/* A guest has sent a word: `a` acquire, `r` release. */
static void hear(guest *g) {
  char word = 0;
  if (read(g->fd, &word, 1) != 1) return;
  lk_error error;
  const lk_status status =
      word == 'a' ? lk_lock_acquire_async(g->lock, g->caller, WAIT_MS, granted, g, NULL, &error)
                  : lk_lock_release_async(g->lock, g->caller, given_back, g, &error);
  if (status != LK_OK) say(g, 'x');
}

/* Sends a word and waits for the answer. */
static int ask(int fd, char word, char wanted) {
  char answer = 0;
  return write(fd, &word, 1) == 1 && read(fd, &answer, 1) == 1 && answer == wanted;
}

static void *visit(void *argument) {
  const guest *g = argument;
  if (!ask(g->other_end, 'a', 'h')) atomic_fetch_add(&failures, 1);
  if (atomic_fetch_add(&inside, 1) != 0) atomic_fetch_add(&failures, 1);
  printf("one inside\n");
  atomic_fetch_sub(&inside, 1);
  if (!ask(g->other_end, 'r', 'f')) atomic_fetch_add(&failures, 1);
  return NULL;
}

static void serve(lk_client *client, guest *guests, const int *left) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}; /* NULL: the client */
  epoll_ctl(poller, EPOLL_CTL_ADD, lk_client_fd(client), &event);
  for (int i = 0; i < GUESTS; i++) {
    event.data.ptr = &guests[i];
    epoll_ctl(poller, EPOLL_CTL_ADD, guests[i].fd, &event);
  }
  while (*left > 0) {
    if (epoll_wait(poller, &event, 1, -1) != 1) continue;
    if (event.data.ptr) {
      hear(event.data.ptr);
    } else {
      lk_client_dispatch(client); /* calls granted() and given_back() */
    }
  }
  close(poller);
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_lock *lock = NULL;
  lk_error error;
  guest guests[GUESTS];
  pthread_t threads[GUESTS];
  int left = GUESTS;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_lock_open(client, LK_LOCK, "example:epoll", NULL, &lock, &error) != LK_OK) {
    fprintf(stderr, "open: %s\n", error.message);
    return 1;
  }
  for (int i = 0; i < GUESTS; i++) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    guests[i] = (guest){.lock = lock, .fd = ends[0], .other_end = ends[1], .left = &left};
    if (lk_caller_new(client, &guests[i].caller, &error) != LK_OK) return 1;
    if (pthread_create(&threads[i], NULL, visit, &guests[i]) != 0) errx(1, "no thread");
  }
  serve(client, guests, &left);
  for (int i = 0; i < GUESTS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < GUESTS; i++) lk_caller_free(guests[i].caller);
  lk_lock_close(lock);
  lk_client_close(client);
  return atomic_load(&failures) != 0;
}
