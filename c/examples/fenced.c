/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A holder is stopped for longer than its lease, and goes on writing. The resource remembers the token
 * of the next holder, and refuses.
 *
 *   fenced [URL]     (local:)
 */
#include <latchkey/fence.h>

#include <stdio.h>
#include <string.h>

enum { LEASE_MS = 100, WAIT_MS = 60000 };

static const char resource[] = "example:file";

static int fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

/* A hold as it writes: its token and owner travel with every write, wherever the resource is. */
typedef struct holder {
  lk_lock *lock;
  char owner[LK_OWNER_MAX + 1];
  lk_stamp stamp;
} holder;

static lk_status begin(lk_client *client, const lk_lock_options *options, lk_caller *caller,
                       holder *h, lk_error *error) {
  lk_status status = lk_lock_open(client, LK_FENCED, "example:job", options, &h->lock, error);
  if (status == LK_OK) status = lk_lock_acquire(h->lock, caller, WAIT_MS, error);
  if (status != LK_OK) return status;
  lk_lock_owner(h->lock, caller, h->owner, sizeof h->owner);
  h->stamp = (lk_stamp){.token = lk_lock_token(h->lock, caller), .owner = h->owner, .seq = 0};
  printf("a hold with token %lld\n", (long long)h->stamp.token);
  return LK_OK;
}

static lk_status write_text(lk_client *client, const holder *h, const char *text, lk_error *error) {
  lk_bytes value = {text, strlen(text)};
  return lk_fence_admit_set(client, resource, &h->stamp, value, NULL, error);
}

static int run(lk_client *client, lk_caller *next, holder *slow, holder *quick) {
  lk_lock_options brief = LK_LOCK_OPTIONS_INIT;
  lk_error error;
  brief.lease_ms = LEASE_MS; /* and not renewed */
  if (begin(client, &brief, NULL, slow, &error) != LK_OK) return fail("acquire", &error);
  if (write_text(client, slow, "one", &error) != LK_OK) return fail("write", &error);

  /* The first holder stands still; its lease ends, and the next one comes. */
  if (begin(client, NULL, next, quick, &error) != LK_OK) return fail("acquire", &error);
  if (write_text(client, quick, "two", &error) != LK_OK) return fail("write", &error);

  if (write_text(client, slow, "late", &error) != LK_OVERTAKEN) return fail("late write", &error);
  printf("refused: %s\n", error.message);

  if (lk_lock_release(slow->lock, NULL, &error) != LK_LOST) return fail("late release", &error);
  if (lk_lock_release(quick->lock, next, &error) != LK_OK) return fail("release", &error);
  return 0;
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_caller *next = NULL;
  lk_error error;
  holder slow = {.lock = NULL}, quick = {.lock = NULL};
  int failed = 1;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_caller_new(client, &next, &error) != LK_OK) {
    fail("open", &error);
  } else {
    failed = run(client, next, &slow, &quick);
  }
  lk_lock_close(slow.lock);
  lk_lock_close(quick.lock);
  lk_caller_free(next);
  lk_client_close(client);
  return failed;
}
