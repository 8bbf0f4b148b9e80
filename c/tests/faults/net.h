/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network of two hosts on one machine: a server's namespace at the other end of a virtual cable,
 * with nftables in it. Needs root, ip and nft.
 */
#ifndef FAULTS_NET_H
#define FAULTS_NET_H

#include <stdbool.h>

typedef struct net net;

typedef enum net_trouble { NET_NONE, NET_PARTITION, NET_RESET, NET_LOSS } net_trouble;

/* NULL: it cannot be had here; *why says what is missing. */
net *net_make(const char **why);
void net_remove(net *n);

/* This thread enters it, so that what it starts lives there, and comes back. */
bool net_enter(net *n);
bool net_leave(net *n);

/* Where it is seen from outside. */
const char *net_address(const net *n);

/* Ends the trouble that there was. false: nft refused. */
bool net_make_trouble(net *n, net_trouble trouble);

#endif
