/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/seq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/sync.h"

struct lk_seq {
  lk_seq *next;
  uint64_t last;
  char caller[64];
  char number[24];
};

lk_seq *lk_seq_take(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  lk_seq *seq = client->seqs;
  if (seq) client->seqs = seq->next;
  lk_mutex_unlock(&client->mutex);
  if (seq) return seq;
  seq = calloc(1, sizeof *seq);
  if (!seq) return NULL;
  snprintf(seq->caller, sizeof seq->caller, "%s:%llu", client->prefix,
           (unsigned long long)atomic_fetch_add(&client->serials, 1) + 1);
  return seq;
}

void lk_seq_give(lk_client *client, lk_seq *seq) {
  lk_mutex_lock(&client->mutex);
  seq->next = client->seqs;
  client->seqs = seq;
  lk_mutex_unlock(&client->mutex);
}

void lk_seq_next(lk_seq *seq, lk_value *caller, lk_value *number) {
  int len = snprintf(seq->number, sizeof seq->number, "%llu", (unsigned long long)(seq->last += 1));
  *caller = lk_value_of("caller", seq->caller, strlen(seq->caller));
  *number = lk_value_of("seq", seq->number, (size_t)len);
}

void lk_seq_free_all(lk_client *client) {
  lk_seq *seq;
  while ((seq = client->seqs) != NULL) {
    client->seqs = seq->next;
    free(seq);
  }
}
