/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include "../torture/parent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void start_bewitched(stage *s, const server_options *made) {
  clock_bewitch(FAULTS_SHIM, s->clock_path);
  if (s->net) need(net_enter(s->net), "the server's network namespace");
  if (made)
    s->server = server_start(made);
  else
    server_restart(s->server);
  if (s->net) need(net_leave(s->net), "the network namespace outside");
  clock_release();
  s->running = true;
}

static void make_url(stage *s, bool tls, const char *user, const char *host, int port, char *url) {
  int len = snprintf(url, URL_SIZE, "%s://%s:" PASSWORD "@%s:%d", tls ? "rediss" : "redis", user,
                     host, port);
  if (tls)
    snprintf(url + len, URL_SIZE - (size_t)len, "?cacert=%s&sni=locks.example",
             server_file(s->server, "ca.crt"));
}

/* The proxy stands outside, and half of the workers go past it. */
static void make_urls(stage *s, bool tls) {
  const char *host = s->net ? net_address(s->net) : "127.0.0.1";
  int port = server_port(s->server);
  s->proxy = proxy_start(host, port);
  need(s->proxy != NULL, "a proxy");
  make_url(s, tls, WORKER_USER, "127.0.0.1", proxy_port(s->proxy), s->urls[0]);
  make_url(s, tls, WORKER_USER, host, port, s->urls[1]);
  make_url(s, tls, IDLE_USER, "127.0.0.1", proxy_port(s->proxy), s->idle_url);
}

/*
 * Its log of writes is handed to the kernel before each reply, so that only the machine's own fall
 * could lose any of it. It is written anew often: the log of half an hour would take longer to load than faults last.
 */
static void set_server(stage *s, bool tls) {
  /* clang-format off */
  static const char *const args[] = {
      "--bind", "0.0.0.0", "--protected-mode", "no",
      "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-min-size", "4mb",
      "--user", WORKER_USER, "on", ">" PASSWORD, "~*", "&*", "+@all",
      "--user", IDLE_USER, "on", ">" PASSWORD, "~*", "&*", "+@all", NULL};
  /* clang-format on */
  snprintf(s->clock_path, sizeof s->clock_path, "/tmp/latchkey-clock-XXXXXX");
  s->clock = clock_make(s->clock_path);
  need(s->clock != NULL, s->clock_path);
  s->net = net_make(&s->no_net);
  start_bewitched(s, &(server_options){.tls = tls, .args = args});
  make_urls(s, tls);
}

static void set_fleet(stage *s, bool cluster, bool tls) {
  s->fleet = cluster ? fleet_cluster(tls, FLEET_HASTY_MS) : fleet_sentinel(tls, FLEET_HASTY_MS);
  s->running = true;
  char *urls[] = {s->urls[0], s->urls[1], s->idle_url};
  for (int i = 0; i < 3; i++) snprintf(urls[i], URL_SIZE, "%s", fleet_url(s->fleet));
}

void stage_set(stage *s, topology form, bool tls) {
  memset(s, 0, sizeof *s);
  if (form == STANDALONE)
    set_server(s, tls);
  else
    set_fleet(s, form == CLUSTER, tls);
}

server *stage_server_of(stage *s, const char *key) {
  return s->fleet ? fleet_server(s->fleet, fleet_master(s->fleet, key)) : s->server;
}

const char *stage_operator_url(const stage *s) {
  return s->fleet ? fleet_url(s->fleet) : server_url(s->server);
}

void stage_strike(stage *s) {
  if (s->fleet) {
    fleet_stop(s->fleet);
    return;
  }
  proxy_stop(s->proxy);
  server_stop(s->server);
  net_remove(s->net);
  if (s->clock) unlink(s->clock_path);
}

void stage_kill(stage *s) {
  server_kill(s->server);
  s->running = false;
}

void stage_restart(stage *s) { start_bewitched(s, NULL); }
