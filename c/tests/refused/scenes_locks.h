/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes with locks; those with everything else are in scenes.c. */
#ifndef LK_TEST_SCENES_LOCKS_H
#define LK_TEST_SCENES_LOCKS_H

#include "stage.h"

void play_mutex(stage *st);
void play_lock(stage *st);
void play_fenced(stage *st);
void play_fair(stage *st);
void play_rw(stage *st);
void play_async(stage *st);
void play_contended(stage *st);
void play_fair_contended(stage *st);
void play_spun(stage *st);
void play_multilock(stage *st);
void play_replicas(stage *st);
void play_closing(stage *st);

#endif
