/* SPDX-License-Identifier: Apache-2.0 */
/* Lists whose links stand in what is listed. Nothing is allocated, and anything may be taken out of its middle. */
#ifndef LK_LIST_H
#define LK_LIST_H

#include <stddef.h>
#include <stdint.h>

/* What has this as its member; the pointer may be one to a constant. */
/* clang-format off */
#define LK_OF(type, member, pointer)                                                               \
  ((type *)(void *)((char *)(uintptr_t)(pointer)-offsetof(type, member)))
/* clang-format on */

/* A list without an order: items with `next`, and with `at`, where the pointer to them stands. */
#define LK_LIST_PUT(first, item)                                                                   \
  do {                                                                                             \
    (item)->at = (first);                                                                          \
    (item)->next = *(first);                                                                       \
    if ((item)->next) (item)->next->at = &(item)->next;                                            \
    *(first) = (item);                                                                             \
  } while (0)
#define LK_LIST_TAKE(item)                                                                         \
  do {                                                                                             \
    *(item)->at = (item)->next;                                                                    \
    if ((item)->next) (item)->next->at = (item)->at;                                               \
    (item)->at = NULL;                                                                             \
  } while (0)

/* A line, in the order of arrival: `first` and `last`, and items with `next` and `previous`. */
#define LK_LINE_JOIN(line, item)                                                                   \
  do {                                                                                             \
    (item)->next = NULL;                                                                           \
    (item)->previous = (line)->last;                                                               \
    *((line)->last ? &(line)->last->next : &(line)->first) = (item);                               \
    (line)->last = (item);                                                                         \
  } while (0)
#define LK_LINE_LEAVE(line, item)                                                                  \
  do {                                                                                             \
    *((item)->previous ? &(item)->previous->next : &(line)->first) = (item)->next;                 \
    *((item)->next ? &(item)->next->previous : &(line)->last) = (item)->previous;                  \
  } while (0)

#endif
