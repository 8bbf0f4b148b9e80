/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that are Lua files in tools/latchkey/, run by the LuaJIT inside this program. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/*
 * What LUA_PATH or the current folder hold is never run: the search path is the home's folders, the
 * build tree's for the generated tables, and then what LuaJIT was built with.
 *
 * Nothing is compiled to machine code: in LuaJIT until August 2026, Debian 12's and 13's, loops over
 * pairs() may then end early or crash (LuaJIT issues 827, 829, 1510). A checker must not lose a
 * choice, and is no slower without it.
 */
static const char start[] =
    "local home, build, arguments, exit_of = ...\n"
    "jit.off()\n"
    "local function without_here(path) return (path:gsub('^%.[/\\\\][^;]*;', '')) end\n"
    "package.path = home .. '/tools/?.lua;' .. home .. '/tools/?/init.lua;'\n"
    "  .. (build and build .. '/?.lua;' or '')\n"
    "  .. without_here(package.path)\n"
    "package.cpath = without_here(package.cpath)\n"
    "return require('latchkey.cli').main(home, arguments, exit_of)\n";

/* "LK_BUSY" -> 75 */
static int exit_of_name(lua_State *lua) {
  const char *wanted = luaL_checkstring(lua, 1);
#define CLI_EXIT_OF(name, number, retriable, text, hint)                                           \
  if (strcmp(wanted, "LK_" #name) == 0) {                                                          \
    lua_pushinteger(lua, exit_of(LK_##name));                                                      \
    return 1;                                                                                      \
  }
  LK_STATUS_TABLE(CLI_EXIT_OF)
#undef CLI_EXIT_OF
  return luaL_argerror(lua, 1, "no status has that name");
}

static int with_traceback(lua_State *lua) {
  luaL_traceback(lua, lua, lua_tostring(lua, 1), 1);
  return 1;
}

int lua_main(int argc, char **argv) {
  char *home = home_find(argv[0]);
  if (!home) {
    fprintf(stderr,
            "latchkey: its scripts and tools were not found; set LATCHKEY_HOME to the folder "
            "that holds scripts/ and tools/\n");
    return CLI_DEFECT;
  }
  lua_State *lua = luaL_newstate();
  if (!lua) {
    fprintf(stderr, "latchkey: %s\n", strerror(ENOMEM));
    free(home);
    return CLI_DEFECT;
  }
  lua_pushboolean(lua, 1);
  lua_setfield(lua, LUA_REGISTRYINDEX, "LUA_NOENV");
  luaL_openlibs(lua);

  lua_pushcfunction(lua, with_traceback);
  luaL_loadbuffer(lua, start, sizeof start - 1, "=latchkey");
  char *build = home_build(argv[0]);
  lua_pushstring(lua, home);
  lua_pushstring(lua, build); /* nil for NULL */
  free(build);
  free(home);
  lua_createtable(lua, argc, 0);
  for (int i = 1; i < argc; i++) {
    lua_pushstring(lua, argv[i]);
    lua_rawseti(lua, -2, i);
  }
  lua_pushcfunction(lua, exit_of_name);
  const int failed = lua_pcall(lua, 4, 1, 1);
  if (failed) fprintf(stderr, "latchkey: a defect: %s\n", lua_tostring(lua, -1));
  const int code = failed ? CLI_DEFECT : (int)lua_tointeger(lua, -1);
  lua_close(lua);
  return code;
}
