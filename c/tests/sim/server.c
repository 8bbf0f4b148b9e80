/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "judge.h"
#include "topology.h"

typedef struct world_server {
  bool down;
  int64_t down_until_ns, stalled_until_ns, step_ms, wakes_ms;
  uint32_t epoch;
  bool set_back;
  unsigned refusals; /* under way */
} world_server;

static world_server servers[NET_SERVERS];
static lua_State *server_lua;
static bool server_has_replicas;
int server_count, server_total;
uint64_t server_commands;

bool server_is_up(int server) { return server < server_total && !servers[server].down; }
uint32_t server_epoch(int server) { return topology_epoch(server, false); }
uint32_t server_epoch_of(int member) { return servers[member].epoch; }
/* All that have the same data make a step at once. */
bool server_was_set_back(int server) { return servers[server].set_back; }

/* ----------------------------------------------------------------------------------------- Lua -- */

static void give_up(const char *what) {
  fprintf(stderr, "sim: %s: %s\n", what, lua_tostring(server_lua, -1));
  fflush(stdout);
  _exit(70); /* no finding: the world itself is wrong */
}

/* Modules in C keep memory that only LuaJIT's own heap refers to, where no leak checker looks. */
static void unload(void) { lua_close(server_lua); }

void server_load(const char *home) {
  char path[1024];
  server_lua = luaL_newstate();
  atexit(unload);
  luaL_openlibs(server_lua);
  lua_pushstring(server_lua, home);
  lua_setglobal(server_lua, "HOME");
  snprintf(path, sizeof path, "%s/c/tests/sim/bridge.lua", home);
  if (luaL_dofile(server_lua, path)) give_up(path);
  snprintf(path, sizeof path, "%s/scripts", home);
  server_know(path);
}

void server_know(const char *folder) {
  lua_getglobal(server_lua, "bridge_know");
  lua_pushstring(server_lua, folder);
  if (lua_pcall(server_lua, 1, 0, 0)) give_up(folder);
}

void server_warm(void) {
  lua_getglobal(server_lua, "bridge_warm");
  if (lua_pcall(server_lua, 0, 0, 0)) give_up("warm.lua");
}

/* The function, the server and its time; the rest of the arguments follow. */
static lua_State *begin_call(const char *function, int server) {
  lua_State *l = server_lua;
  int64_t ms = sched_now_ns() / 1000000 + servers[server].step_ms;
  lua_getglobal(l, function);
  lua_pushinteger(l, server);
  lua_pushnumber(l, (double)ms);
  return l;
}

static void call(lua_State *l, int arguments, int results) {
  if (lua_pcall(l, arguments + 2, results, 0)) give_up("the mock");
}

static int tell_story(lua_State *l) {
  STORY("server", "%s", lua_tostring(l, 1));
  return 0;
}

static int tell_keys(lua_State *l) {
  STORY("keys", "%s", lua_tostring(l, 1));
  return 0;
}

void server_begin(int count) {
  if (story_is_told) {
    lua_register(server_lua, "story_of_server", tell_story);
    lua_register(server_lua, "story_of_keys", tell_keys);
  }
  server_count = server_total = count;
  server_has_replicas = false;
  for (int i = 0; i < NET_SERVERS; i++) servers[i] = (world_server){0};
}

void server_add(int member, int master, server_seat seat) {
  if (master < 0) {
    call(begin_call("bridge_new", member), 0, 0);
    return;
  }
  server_has_replicas = true;
  lua_State *l = begin_call("bridge_new_member", member);
  lua_pushinteger(l, master);
  if (seat.cluster >= 0) {
    lua_pushinteger(l, seat.cluster);
    lua_pushinteger(l, seat.shard);
    lua_pushinteger(l, seat.stride);
  }
  call(l, seat.cluster >= 0 ? 4 : 1, 0);
}

void server_add_sentinel(int number) {
  server_total = number + 1;
  call(begin_call("bridge_new_sentinel", number), 0, 0);
}

server_hold server_look(int server, const char *key, const char *owner) {
  lua_State *l = begin_call("bridge_look", topology_at(server, key));
  lua_pushstring(l, key);
  lua_pushstring(l, owner);
  call(l, 2, 2);
  server_hold hold = {(int64_t)lua_tonumber(l, -2), (int64_t)lua_tonumber(l, -1)};
  lua_pop(l, 2);
  return hold;
}

bool server_older_is_last(int server, const char *key, const char *owner) {
  lua_State *l = begin_call("bridge_older_is_last", topology_at(server, key));
  lua_pushstring(l, key);
  lua_pushstring(l, owner);
  call(l, 2, 1);
  bool older = lua_toboolean(l, -1);
  lua_pop(l, 1);
  return older;
}

void server_holder(int server, const char *key, char *out, size_t size) {
  lua_State *l = begin_call("bridge_holder", topology_at(server, key));
  lua_pushstring(l, key);
  call(l, 1, 1);
  snprintf(out, size, "%s", lua_tostring(l, -1));
  lua_pop(l, 1);
}

bool server_has(int server, const char *key) {
  lua_State *l = begin_call("bridge_has", topology_at(server, key));
  lua_pushstring(l, key);
  call(l, 1, 1);
  bool has = lua_toboolean(l, -1);
  lua_pop(l, 1);
  return has;
}

int64_t server_number(int server, const char *key) {
  lua_State *l = begin_call("bridge_number", topology_at(server, key));
  lua_pushstring(l, key);
  call(l, 1, 1);
  int64_t number = (int64_t)lua_tonumber(l, -1);
  lua_pop(l, 1);
  return number;
}

void server_command(int server, const char *verb, const char *key, ...) {
  lua_State *l = begin_call("bridge_command", topology_at(server, key));
  va_list words;
  int n = 2;
  lua_pushstring(l, verb);
  lua_pushstring(l, key);
  va_start(words, key);
  for (const char *word; (word = va_arg(words, const char *)) != NULL; n++) lua_pushstring(l, word);
  va_end(words);
  call(l, n, 0);
}

void server_left(int server, int64_t ms, char *out, size_t size) {
  lua_State *l = begin_call("bridge_left", server);
  lua_pushnumber(l, (double)ms);
  call(l, 1, 1);
  snprintf(out, size, "%s", lua_tostring(l, -1));
  lua_pop(l, 1);
}

/* ------------------------------------------------------------------------------------- serving -- */

static net_conn *conn_of(uint32_t number) {
  for (net_conn *c = net_first(); c; c = c->next) {
    if (c->number == number) return c;
  }
  return NULL;
}

/* Threes: a connection, what it is told, and whether it ends behind that. */
static void deliver(lua_State *l, int top) {
  int got = lua_gettop(l) - top;
  for (int i = 1; i + 2 <= got; i += 3) {
    size_t len;
    net_conn *to = conn_of((uint32_t)lua_tonumber(l, top + i));
    const char *bytes = lua_tolstring(l, top + i + 1, &len);
    sim_mix_bytes(bytes, len);
    if (!to) continue;
    if (len > 0) {
      STORY("server", "%d   -> %u %.*s", to->server, to->number, (int)(len < 60 ? len : 60), bytes);
    }
    net_reply(to, bytes, len);
    if (lua_toboolean(l, top + i + 2)) net_cut(to, false);
  }
  lua_settop(l, top);
}

static void plan_wake(int server);

static void wake_up(void *a, int64_t server) {
  int top = lua_gettop(server_lua);
  (void)a;
  servers[server].wakes_ms = 0;
  if (servers[server].down) return;
  call(begin_call("bridge_wake", (int)server), 0, LUA_MULTRET);
  deliver(server_lua, top);
  plan_wake((int)server);
}

/* For those who wait for replicas. */
static void plan_wake(int server) {
  lua_State *l = begin_call("bridge_due", server);
  call(l, 0, 1);
  int64_t ms = (int64_t)lua_tonumber(l, -1);
  lua_pop(l, 1);
  if (ms < 0 || (servers[server].wakes_ms && servers[server].wakes_ms <= ms)) return;
  servers[server].wakes_ms = ms;
  int64_t at_ns = (ms - servers[server].step_ms) * 1000000, soon_ns = sched_now_ns() + 1000000;
  sched_at(at_ns > soon_ns ? at_ns : soon_ns, wake_up, NULL, server);
}

static bool listens(const net_conn *c) {
  lua_State *l = begin_call("bridge_listens", c->server);
  lua_pushinteger(l, (lua_Integer)c->number);
  call(l, 1, 1);
  bool does = lua_toboolean(l, -1);
  lua_pop(l, 1);
  return does;
}

static void feed(net_conn *c) {
  int top = lua_gettop(server_lua);
  server_commands++;
  sim_mix_bytes(c->to_server.data, c->to_server.len);
  sim_mix((uint64_t)sched_now_ns());
  lua_State *l = begin_call("bridge_hear", c->server);
  lua_pushinteger(l, (lua_Integer)c->number);
  lua_pushlstring(l, c->to_server.data, c->to_server.len);
  net_take(&c->to_server, c->to_server.len);
  lua_pushboolean(l, c->client_closed);
  call(l, 3, LUA_MULTRET);
  deliver(l, top);
  if (server_has_replicas) plan_wake(c->server);
  bool asks_sentinel = c->server >= server_count;
  if (asks_sentinel && c->listens_ns == 0 && listens(c)) c->listens_ns = sched_now_ns();
}

static void hear_again(void *a, int64_t b) {
  (void)b;
  server_hears(a);
}

void server_hears(net_conn *c) {
  int64_t until_ns = servers[c->server].stalled_until_ns;
  if (c->server_closed || c->to_server.len == 0) return;
  if (until_ns > sched_now_ns()) {
    sched_at(until_ns, hear_again, c, 0);
  } else {
    feed(c);
  }
}

void server_loses(net_conn *c) {
  lua_State *l = begin_call("bridge_gone", c->server);
  lua_pushinteger(l, (lua_Integer)c->number);
  call(l, 1, 0);
}

/* --------------------------------------------------------------------------------- what breaks -- */

static void come_up(void *a, int64_t server) {
  (void)a;
  if (!servers[server].down || sched_now_ns() < servers[server].down_until_ns) return;
  servers[server].down = false;
  STORY("server", "%d takes connections again", (int)server);
}

/* One that is down already stays so for as long as the longer of both. */
void server_restart(int server, bool empty, int64_t down_us) {
  STORY("server", "%d restarts %s, down for %lld ms", server, empty ? "empty" : "with its data",
        (long long)down_us / 1000);
  int64_t until_ns = sched_now_ns() + down_us * 1000;
  sched_at(until_ns, come_up, NULL, server);
  if (until_ns > servers[server].down_until_ns) servers[server].down_until_ns = until_ns;
  if (servers[server].down) return;
  servers[server].down = true;
  if (empty) servers[server].epoch++;
  net_cut_all(server);
  lua_State *l = begin_call("bridge_restart", server);
  lua_pushboolean(l, empty);
  call(l, 1, 0);
}

/* One that stalls already does so for as long as the longer of both: what it was sent waits for that. */
void server_stall(int server, int64_t us) {
  STORY("server", "%d stalls for %lld ms", server, (long long)us / 1000);
  int64_t until_ns = sched_now_ns() + us * 1000;
  if (until_ns > servers[server].stalled_until_ns) servers[server].stalled_until_ns = until_ns;
}

int64_t server_stalled_until_ns(int server) { return servers[server].stalled_until_ns; }

void server_lose_reply(int server, const char *how) {
  STORY("server", "%d: the next reply is lost, %s", server, how);
  lua_State *l = begin_call("bridge_lose_reply", server);
  lua_pushstring(l, how);
  call(l, 1, 0);
}

void server_flush_scripts(int server) {
  STORY("server", "%d forgets its scripts", server);
  call(begin_call("bridge_flush", server), 0, 0);
}

static void refuse_no_more(void *a, int64_t server) {
  (void)a;
  if (--servers[server].refusals) return;
  lua_State *l = begin_call("bridge_refuse", (int)server);
  lua_pushboolean(l, 0);
  call(l, 1, 0);
}

void server_refuse(int server, const char *what, int64_t us) {
  STORY("server", "%d refuses for %lld ms: %s", server, (long long)us / 1000, what);
  servers[server].refusals++;
  lua_State *l = begin_call("bridge_refuse", server);
  lua_pushstring(l, what);
  call(l, 1, 0);
  sched_at(sched_now_ns() + us * 1000, refuse_no_more, NULL, server);
}

void server_step_clock(int server, int64_t ms) {
  STORY("server", "%d: its clock makes a step of %lld ms", server, (long long)ms);
  servers[server].step_ms += ms;
  if (ms < 0) servers[server].set_back = true;
  servers[server].epoch++;
}

/* ------------------------------------------------------------------------------------ replicas -- */

server_loss server_promote(int member) {
  lua_State *l = begin_call("bridge_promote", member);
  call(l, 0, 2);
  server_loss loss = {.writes = lua_toboolean(l, -2), .moved = lua_toboolean(l, -1)};
  lua_pop(l, 2);
  return loss;
}

void server_cut_off(int master) { call(begin_call("bridge_cut_off", master), 0, 0); }

/* Sentinel has it close its connections; a cluster does not. */
void server_follow(int member, int master) {
  if (topology_kind() == TOPOLOGY_sentinel) net_cut_all(member);
  lua_State *l = begin_call("bridge_follow", member);
  lua_pushinteger(l, master);
  call(l, 1, 0);
}

void server_lag(int member, int64_t lag_ms) {
  lua_State *l = begin_call("bridge_lag", member);
  lua_pushnumber(l, (double)lag_ms);
  call(l, 1, 0);
}

void server_hear_of(int sentinel, const char *name, int port, int64_t epoch) {
  int top = lua_gettop(server_lua);
  lua_State *l = begin_call("bridge_hear_of", sentinel);
  lua_pushstring(l, name);
  lua_pushinteger(l, port);
  lua_pushnumber(l, (double)epoch);
  call(l, 3, LUA_MULTRET);
  deliver(l, top);
}

/* -------------------------------------------------------------------------------------- clusters -- */

bool server_add_cluster(int number, int shards) {
  sim_stream dice = decide_stream(STREAM_WORLD, 16 + (uint32_t)number);
  bool old = decide_chance(&dice, D_WORK, 200000);
  lua_State *l = begin_call("bridge_new_cluster", number);
  lua_pushinteger(l, shards);
  lua_pushboolean(l, old);
  lua_pushboolean(l, decide_chance(&dice, D_WORK, 300000)); /* without addresses */
  lua_pushboolean(l, decide_chance(&dice, D_WORK, 300000)); /* ASK where others say TRYAGAIN */
  call(l, 4, 0);
  return old;
}

static void push_masters(lua_State *l, const int *masters) {
  for (int i = 0; i < TOPOLOGY_SHARDS; i++) lua_pushinteger(l, masters[i]);
}

int server_find(int cluster, const char *key, const int *masters) {
  lua_State *l = begin_call("bridge_find", cluster);
  lua_pushstring(l, key);
  push_masters(l, masters);
  call(l, 1 + TOPOLOGY_SHARDS, 1);
  int member = (int)lua_tointeger(l, -1);
  lua_pop(l, 1);
  return member;
}

int64_t server_begin_move(int cluster, int64_t pick, int64_t by, const int *masters, int *from,
                          int *to) {
  lua_State *l = begin_call("bridge_begin_move", cluster);
  lua_pushnumber(l, (double)pick);
  lua_pushnumber(l, (double)by);
  push_masters(l, masters);
  call(l, 2 + TOPOLOGY_SHARDS, 3);
  int64_t slot = (int64_t)lua_tonumber(l, -3);
  *from = (int)lua_tointeger(l, -2);
  *to = (int)lua_tointeger(l, -1);
  lua_pop(l, 3);
  return slot;
}

bool server_move_key(int cluster) {
  lua_State *l = begin_call("bridge_move_key", cluster);
  call(l, 0, 1);
  bool moved = lua_toboolean(l, -1);
  lua_pop(l, 1);
  return moved;
}

int server_hand_over(int cluster, int64_t serial) {
  lua_State *l = begin_call("bridge_hand_over", cluster);
  lua_pushnumber(l, (double)serial);
  call(l, 1, 1);
  int shard = (int)lua_tointeger(l, -1);
  lua_pop(l, 1);
  return shard;
}

/* Who hears of something may end subscriptions. */
static void hear(lua_State *l, int arguments, int top) {
  call(l, arguments, LUA_MULTRET);
  deliver(l, top);
}

void server_hear_of_slot(int member, int64_t slot, int shard, int64_t serial) {
  int top = lua_gettop(server_lua);
  lua_State *l = begin_call("bridge_hear_of_slot", member);
  lua_pushnumber(l, (double)slot);
  lua_pushinteger(l, shard);
  lua_pushnumber(l, (double)serial);
  hear(l, 3, top);
}

void server_hear_of_master(int member, int master, int64_t serial) {
  int top = lua_gettop(server_lua);
  lua_State *l = begin_call("bridge_hear_of_master", member);
  lua_pushinteger(l, master);
  lua_pushnumber(l, (double)serial);
  hear(l, 2, top);
}

void server_hear_all(int member, int from) {
  int top = lua_gettop(server_lua);
  lua_State *l = begin_call("bridge_hear_all", member);
  lua_pushinteger(l, from);
  hear(l, 1, top);
}
