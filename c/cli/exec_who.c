/* SPDX-License-Identifier: Apache-2.0 */
/* Who has the lock that is waited for. Servers are asked on a thread of their own: signals are heard meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static bool runs, wanted, stops;

/* What the thread looks at. */
static struct {
  lk_client *clients[EXEC_SERVERS_MAX];
  size_t count;
  lk_kind kind;
  const char *name;
} target;

static exec_rival found;

/* Of several servers the first on which somebody else has it. */
static bool look(lk_holder *out) {
  for (size_t i = 0; i < target.count; i++) {
    lk_error error;
    *out = (lk_holder){.size = sizeof *out};
    const lk_status status = lk_who(target.clients[i], target.kind, target.name, out, &error);
    if (status == LK_OK && (out->holders > 0 || i + 1 == target.count)) return true;
  }
  return false;
}

/* A lease that ends later than it did was renewed. */
static void note(const lk_holder *holder) {
  const int64_t now_ms = lk_now_ms(), ends_ms = now_ms + holder->left_ms;
  const bool same = found.known && strcmp(found.holder.owner, holder->owner) == 0;
  enum { MORE_MS = 100 };
  if (!same) found = (exec_rival){.known = true, .seen_ms = now_ms};
  found.renewed |= same && holder->left_ms > 0 && ends_ms > found.ends_ms + MORE_MS;
  found.ends_ms = ends_ms;
  found.holder = *holder;
}

static void *looker(void *unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!stops) {
    if (!wanted) {
      pthread_cond_wait(&asked, &mutex);
      continue;
    }
    lk_holder holder;
    pthread_mutex_unlock(&mutex);
    const bool seen = look(&holder);
    pthread_mutex_lock(&mutex);
    wanted = false;
    if (seen) note(&holder);
    exec_wake();
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

void exec_who_ask(const exec_clients *clients, const exec_hold *hold) {
  if (hold->outer) return; /* what an ancestor has is waited for only while the server is away */
  pthread_mutex_lock(&mutex);
  if (!wanted && !stops) {
    const bool other = !target.name || strcmp(target.name, hold->name) != 0;
    if (other) found = (exec_rival){.known = false};
    memcpy(target.clients, clients->list, sizeof target.clients);
    target.count = clients->count;
    target.kind = hold->options->kind->kind;
    target.name = hold->name;
    if (!runs) runs = pthread_create(&thread, NULL, looker, NULL) == 0;
    wanted = runs;
    pthread_cond_signal(&asked);
  }
  pthread_mutex_unlock(&mutex);
}

bool exec_who_get(const char *name, exec_rival *out) {
  pthread_mutex_lock(&mutex);
  const bool looks = wanted;
  *out = found;
  if (target.name && strcmp(target.name, name) != 0) *out = (exec_rival){.known = false};
  pthread_mutex_unlock(&mutex);
  return looks;
}

void exec_who_stop(void) {
  pthread_mutex_lock(&mutex);
  const bool ran = runs;
  stops = true;
  pthread_cond_signal(&asked);
  pthread_mutex_unlock(&mutex);
  if (ran) pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------------------------- in words -- */

bool exec_who_client(const lk_holder *holder, exec_person *out) {
  const char *const host = strchr(holder->client, ':');
  const char *const process = host ? strchr(host + 1, ':') : NULL;
  const char *const id = process ? strchr(process + 1, ':') : NULL;
  if (!id) return false;
  const char *const label = strchr(id + 1, ':');
  snprintf(out->host, sizeof out->host, "%.*s", (int)(process - host - 1), host + 1);
  out->process = strtoll(process + 1, NULL, 10);
  snprintf(out->label, sizeof out->label, "%s", label ? label + 1 : "");
  return true;
}

/* Released, and kept for the rest of a time: lk_lock_release_after(). */
static bool is_kept(const char *owner) {
  static const char kept[] = ":kept";
  const size_t length = strlen(owner);
  return length >= sizeof kept && strcmp(owner + length - (sizeof kept - 1), kept) == 0;
}

/* What is to be said of an owner of a latchkey whose client is not found, though it might be. */
static const char *about_absent(const lk_holder *holder) {
  if (is_kept(holder->owner)) return " (released; --at-least keeps it)";
  return holder->unnamed == LK_OK ? " (its client is not connected)" : "";
}

/* "web-3 pid 4711 (pg_dump@nightly)" */
static void print_owner(FILE *to, const lk_holder *holder) {
  exec_person person;
  if (exec_who_client(holder, &person)) {
    fprintf(to, "%s pid %lld", person.host, (long long)person.process);
    if (*person.label) fprintf(to, " (%s)", person.label);
    return;
  }
  percent_print(to, holder->owner);
  if (holder->unnamed == LK_DENIED) {
    fputs(" (whose that is, this user may not read)", to);
  } else if (holder->unnamed == LK_BUSY) {
    fputs(" (latchkey inspect says whose that is)", to);
  } else if (strncmp(holder->owner, "lk-", 3) == 0) {
    fputs(about_absent(holder), to);
  } else {
    fputs(" (not a client of latchkey's)", to);
  }
}

static void print_permits(FILE *to, const lk_holder *holder) {
  if (holder->holders == 1) {
    fputs("the permit is taken", to);
  } else {
    fprintf(to, "%lld permits are taken", (long long)holder->holders);
  }
}

static void print_lease(FILE *to, const exec_rival *rival) {
  const int64_t now_ms = lk_now_ms();
  const int64_t held_s = (now_ms - rival->seen_ms) / 1000,
                left_s = (rival->ends_ms - now_ms) / 1000;
  if (held_s > 0) fprintf(to, " for %lld s or more", (long long)held_s);
  if (rival->holder.left_ms < 0) {
    fputs(", without a lease", to);
  } else if (rival->renewed) {
    fputs(", lease renewed", to);
  } else {
    fprintf(to, ", lease ends in %lld s", (long long)(left_s > 0 ? left_s : 0));
  }
}

void exec_who_print(const exec_rival *rival, lk_kind kind, char *text, size_t size) {
  const lk_holder *holder = &rival->holder;
  FILE *to = fmemopen(text, size, "w");
  *text = '\0';
  if (!to) return;
  if (holder->holders == 0) {
    fputs("nobody holds it now", to);
  } else if (kind == 0) {
    print_permits(to, holder);
  } else {
    fputs("held by ", to);
    print_owner(to, holder);
    if (holder->holders > 1) fprintf(to, " and %lld more", (long long)holder->holders - 1);
    print_lease(to, rival);
  }
  if (holder->waiting > 1) fprintf(to, "; %lld wait", (long long)holder->waiting);
  fclose(to);
  text[size - 1] = '\0';
}
