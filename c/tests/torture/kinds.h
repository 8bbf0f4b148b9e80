/* SPDX-License-Identifier: Apache-2.0 */
/* What the torture has to know of each kind of lock: how it is looked at, and how it is broken. */
#ifndef TORTURE_KINDS_H
#define TORTURE_KINDS_H

#include "history.h"

#include <latchkey/latchkey.h>

typedef struct lock_kind {
  const char *name; /* as --kind takes it */
  lk_kind kind;     /* of read-write locks: the side that writes */
  const char *inspect;
  size_t owners_at; /* where the owners begin in what it answers */
  size_t stride;    /* from one owner to the next; the count follows the owner, if it is above 1 */
  const char *break_script;
} lock_kind;

/* Ends with one without a name. */
extern const lock_kind lock_kinds[];

enum { HOLDERS_MAX = 100 };

typedef struct inspection {
  bool reads;       /* a read-write lock that is held for reading, or free, and no writer waits */
  int64_t lease_ms; /* of the lock */
  size_t count;
  struct {
    char owner[HISTORY_OWNER_SIZE];
    int32_t count;
    int64_t lease_ms; /* of this hold; below 0: it is over */
  } holders[HOLDERS_MAX];
} inspection;

enum { KEY_SIZE = 320 };

/* The keys that a look at the lock takes, one by one; false: there are no more. */
bool kind_key(lk_client *client, const lock_kind *kind, const char *name, size_t place,
              char key[KEY_SIZE]);
/* false: no answer. */
bool kind_inspect(lk_client *client, const lock_kind *kind, const char *name, inspection *out);
bool kind_break(lk_client *client, const lock_kind *kind, const char *name, const char *owner);

/* Does this owner's name say that it writes? */
bool owner_writes(const char *owner);

#endif
