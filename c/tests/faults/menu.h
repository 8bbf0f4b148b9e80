/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults and when they come. A run has rounds: a burst, then a hush in which nobody asks for a
 * lock anew, so that whoever missed a message stays asleep and is seen, then undisturbed work. The
 * burst of every other round has faults of one kind, so that what follows is that kind's doing;
 * the others mix all kinds. What a round brings depends on the seed and its number alone, not on
 * what happened before.
 */
#ifndef FAULTS_MENU_H
#define FAULTS_MENU_H

#include "census.h"
#include "stage.h"

#include "../torture/parent.h"

typedef struct menu {
  stage *stage;
  census *census;
  unsigned chosen; /* bit 1 << fault_kind */
  FILE *log;
  int round;          /* -1 before the first */
  unsigned kinds;     /* of this round */
  dice dice;          /* of this round */
  int64_t next_us;    /* the next fault */
  int64_t stepped_us; /* the last step of the clock */
  bool idle_cut;
  bool hush_seen; /* by the census */
  struct {
    int64_t from_us;  /* 0: not under way */
    int64_t until_us; /* when it shall end */
  } lasting[FAULT_KINDS];
} menu;

/* Does this kind exist here? If not, *why says what is missing. */
bool menu_offers(const stage *s, fault_kind kind, const char **why);

/* As parent's inject and calm_down; the parent's `stage` is the menu. */
void menu_inject(parent *p, int64_t now_us);
void menu_calm_down(parent *p);

#endif
