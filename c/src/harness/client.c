/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/client.h"

#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/sync.h"
#include "os/thread.h"

int64_t lk_now_ms(void) { return lk_clock_ms(); }

/* --------------------------------------------------------------------------------- life, death -- */

void lk_client_keep(lk_client *client) { atomic_fetch_add(&client->refs, 1); }

void lk_client_drop(lk_client *client) {
  if (atomic_fetch_sub(&client->refs, 1) == 1) client->destroy(client);
}

bool lk_client_is_mine(const lk_client *client) {
  return client->generation == lk_fork_generation();
}

lk_status lk_client_enter(lk_client *client, lk_error *error) {
  if (!client) return lk_fail(error, LK_INVALID, "the client is NULL");
  if (!lk_client_is_mine(client)) {
    return lk_fail(error, LK_FORKED, "the client was opened by the parent of this process");
  }
  lk_mutex_lock(&client->mutex);
  bool closing = client->closing;
  if (!closing) client->active++;
  lk_mutex_unlock(&client->mutex);
  return closing ? lk_fail(error, LK_CLOSED, "the client is closed") : LK_OK;
}

void lk_client_leave(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  client->active--;
  if (client->closing && client->active == 0) lk_cond_broadcast(&client->idle);
  lk_mutex_unlock(&client->mutex);
}

bool lk_client_is_closing(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  bool closing = client->closing;
  lk_mutex_unlock(&client->mutex);
  return closing;
}

void lk_client_sleep(lk_client *client, int64_t until_us) {
  lk_client_send_gathered(client);
  lk_mutex_lock(&client->mutex);
  while (!client->closing && lk_clock_us() < until_us) {
    lk_cond_wait_until(&client->idle, &client->mutex, until_us);
  }
  lk_mutex_unlock(&client->mutex);
}

/* ------------------------------------------------------------------------------------- asking -- */

const char *lk_client_target(const lk_client *client) { return client ? client->target : ""; }

const char *lk_client_name(const lk_client *client) { return client ? client->settings.name : ""; }

int lk_client_fd(lk_client *client) {
  if (!client || !lk_client_is_mine(client)) return -1;
  return client->events.poller;
}

bool lk_client_gathers(const lk_client *client) {
  uint64_t dispatcher = atomic_load(&client->dispatcher);
  return dispatcher != 0 && dispatcher == lk_thread_number();
}

static void client_send_gathered(lk_client *client) {
  if (lk_client_enter(client, NULL) == LK_OK) {
    lk_route_flush(client->route);
    lk_client_leave(client);
  } else {
    lk_keeper_poke(client->keeper); /* it sends them as long as it runs */
  }
}

void lk_client_send_gathered(lk_client *client) {
  if (lk_client_gathers(client)) client_send_gathered(client);
}

/* What so many callbacks started goes out in one piece: the server begins with it while others run. And a
 * dispatch goes back to other descriptors after so long, though replies come on and on. */
enum { GATHER_MOST = 16, STAY_US = 500 };

/* What has come, unless the client closes: its last replies are the keeper's. So are those of an application that only
 * dispatches to hear of losses: renewals need not wait for one more thread. */
static bool client_read(lk_client *client) {
  if (!atomic_load(&client->completes)) return false;
  if (lk_client_enter(client, NULL) != LK_OK) return false;
  lk_events_reads(&client->events, true);
  bool came = lk_route_read(client->route);
  lk_events_reads(&client->events, false);
  lk_client_leave(client);
  return came;
}

/* Returns how many ran. */
static size_t read_and_run(lk_client *client) {
  size_t ran = 0, lately;
  bool sends = client_read(client);
  do {
    lately = lk_events_dispatch(&client->events, GATHER_MOST);
    if (sends || lately > 0) lk_client_send_gathered(client);
    sends = false;
    ran += lately;
  } while (lately == GATHER_MOST);
  return ran;
}

/* Does a reply come in the next moment? A sleep and a wake-up cost more. */
static bool client_look(lk_client *client, int64_t until_us) {
  if (lk_client_enter(client, NULL) != LK_OK) return false;
  int64_t look_us = lk_route_look_us(client->route), now_us = lk_clock_us();
  lk_client_leave(client);
  if (look_us == 0 || now_us >= until_us) return false;
  return lk_poller_look(client->events.poller, now_us + look_us);
}

size_t lk_client_dispatch(lk_client *client) {
  if (!client || !lk_client_is_mine(client)) return 0;
  lk_client_keep(client);          /* a callback may close it */
  lk_client_send_gathered(client); /* a callback that dispatches again may wait for what it began */
  uint64_t nobody = 0, me = lk_thread_number();
  bool gathers = atomic_compare_exchange_strong(&client->dispatcher, &nobody, me);
  int64_t until_us = lk_clock_us() + STAY_US;
  size_t ran = 0, lately;
  do {
    lately = read_and_run(client);
    ran += lately;
  } while (lately > 0 && client_look(client, until_us));
  if (gathers) atomic_store(&client->dispatcher, 0);
  lk_client_drop(client);
  return ran;
}

size_t lk_script_count(const lk_client *client) {
  return client ? lk_catalog_count(client->catalog) : 0;
}

bool lk_script_at(const lk_client *client, size_t index, lk_script *out) {
  const lk_script_def *def = client ? lk_catalog_at(client->catalog, index) : NULL;
  if (!def || !out) return lk_output_none(out);
  const lk_script script = {.name = def->name,
                            .version = def->version,
                            .sha1 = def->sha1,
                            .source = {def->source, def->source_len},
                            .overridden = !lk_catalog_is_embedded(def)};
  return lk_output_copy(out, &script, sizeof script);
}

size_t lk_script_key(const lk_client *client, const char *script, size_t index, const char *name,
                     char *buffer, size_t size) {
  const lk_script_def *def = client && script ? lk_catalog_find(client->catalog, script) : NULL;
  if (!def || index >= def->nkeys || !name || def->keys[index].plus[0] != '\0') return 0;
  size_t len = lk_name_form(&def->keys[index], name, NULL, 0);
  if (buffer && len < size) lk_name_form(&def->keys[index], name, buffer, size);
  return len;
}

/* ---------------------------------------------------------------------------------------- trouble -- */

/* A refusal is an answer: the server does what it is there for. */
static bool is_trouble(lk_status status) {
  return lk_may_pass(status) && status != LK_BUSY && status != LK_TIMEOUT &&
         status != LK_QUEUE_FULL;
}

void lk_trouble_note(lk_client *client, lk_status status, const lk_error *said) {
  bool trouble = is_trouble(status);
  if (!trouble && !atomic_load(&client->troubled)) return; /* as nearly always */
  lk_mutex_lock(&client->mutex);
  if (trouble && said) {
    client->trouble = *said;
  } else {
    lk_fail(&client->trouble, status, "%s", lk_status_text((int)status));
  }
  client->trouble.status = trouble ? status : LK_OK;
  atomic_store(&client->troubled, trouble);
  lk_mutex_unlock(&client->mutex);
}

lk_status lk_client_trouble(lk_client *client, lk_error *error) {
  lk_succeed(error);
  if (!client || !lk_client_is_mine(client) || !atomic_load(&client->troubled)) return LK_OK;
  lk_mutex_lock(&client->mutex);
  lk_status status = client->trouble.status;
  if (error && status != LK_OK) *error = client->trouble;
  lk_mutex_unlock(&client->mutex);
  return status;
}
