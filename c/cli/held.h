/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LATCHKEY_HELD: which holds a command runs under, for an `exec` inside it.
 *
 * Entries are separated by a space, their fields by a comma:
 *   kind,name,owner,lease in ms,process that holds it,server,fencing token (0: the kind has none),
 *   PID namespace of that process (0, or left out: not known)
 * A byte that is neither a letter, a digit nor one of - . _ ~ : / @ + stands as %XX.
 */
#ifndef CLI_HELD_H
#define CLI_HELD_H

#include <latchkey/latchkey.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct held_entry {
  const char *kind;
  const char *name;
  const char *owner;
  int64_t lease_ms;
  pid_t process;
  const char *target;
  int64_t token;
  int64_t space;
} held_entry;

typedef struct held_list {
  held_entry *entries;
  size_t count;
} held_list;

/* False when the text is malformed or memory is short; held_clear() also then. NULL is an empty list. */
bool held_parse(const char *text, held_list *out);
void held_clear(held_list *list);
/* NULL if the list has none inside which another exec can run; of several, the last: it was appended by the nearest
 * ancestor. Mutexes and permits are listed only so that others are told of them. */
const held_entry *held_find(const held_list *list, const char *name, const char *target);
/* The next one of those that are of other targets, or of this one under another name; `after`: the one before, NULL:
 * none was. */
const held_entry *held_find_elsewhere(const held_list *list, const char *name, const char *target,
                                      const held_entry *after);
/* The number of this process's PID namespace; 0: not known, as without /proc. */
int64_t held_space(void);
/* The entry, without the space that separates it from others. */
void held_print(FILE *out, const held_entry *entry);

/* `text` with every byte that is not in the list above as %XX. */
void percent_print(FILE *out, const char *text);

#endif
