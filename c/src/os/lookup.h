/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a name, without waiting for them: the system may take longer to say than anybody here
 * has time, and cannot be hurried. So a thread of the name's own asks; it ends by itself, also when
 * nobody wants to know any more.
 */
#ifndef LK_LOOKUP_H
#define LK_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>

typedef struct lk_lookup lk_lookup;

/* What is an address already. 0 or what getaddrinfo() says. */
int lk_lookup_address(const char *host, int port, struct addrinfo **out);
/* NULL: no memory, no descriptors or no thread. */
lk_lookup *lk_lookup_start(const char *host, int port);
/* Readable once it has ended. NULL: -1. */
int lk_lookup_fd(const lk_lookup *lookup);
bool lk_lookup_has_ended(lk_lookup *lookup);
/* Once it has ended: 0 and the addresses, for freeaddrinfo(), or what getaddrinfo() says. */
int lk_lookup_take(lk_lookup *lookup, struct addrinfo **out);
/* What failed, in words. */
const char *lk_lookup_says(int failed);
/* Addresses. NULL is fine. */
void lk_lookup_free(struct addrinfo *addresses);
/* Nobody wants to know. NULL is fine. */
void lk_lookup_drop(lk_lookup *lookup);

#endif
