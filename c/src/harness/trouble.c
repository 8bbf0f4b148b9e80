/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/trouble.h"

#include "base/status.h"
#include "os/sync.h"

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
