/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that are Lua files in tools/latchkey/, run by the LuaJIT inside this program. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/*
 * What LUA_PATH or the current folder hold is never run: the search path is the home's folders, and then
 * what LuaJIT was built with. The C declarations are those of the library that the program is linked with,
 * which another home does not have.
 *
 * Nothing is compiled to machine code: in LuaJIT until August 2026, Debian 12's and 13's, loops over
 * pairs() may then end early or crash (LuaJIT issues 827, 829, 1510). A checker must not lose a
 * choice, and is no slower without it.
 */
static const char start[] =
    "local home, declarations, arguments, exit_of = ...\n"
    "jit.off()\n"
    "local function without_here(path) return (path:gsub('^%.[/\\\\][^;]*;', '')) end\n"
    "package.path = home .. '/tools/?.lua;' .. home .. '/tools/?/init.lua;'\n"
    "  .. without_here(package.path)\n"
    "package.cpath = without_here(package.cpath)\n"
    "package.preload['latchkey.generated.latchkey_cdef'] = declarations\n"
    "  and loadfile(declarations .. '/latchkey_cdef.lua')\n"
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

/* The Lua modules of others, by the first word of their names, and the packages that Debian has them in. */
static const char *const packages[][2] = {
    {"argparse", "lua-argparse"}, {"cjson", "lua-cjson"}, {"lfs", "lua-filesystem"},
    {"openssl", "lua-luaossl"},   {"pl", "lua-penlight"}, {"posix", "lua-posix"},
};

/* A module that is not installed is no defect of this program's; false: it is something else. */
static bool tell_missing(const char *message) {
  static const char before[] = "module '", behind[] = "' not found:";
  const char *name = strstr(message, before);
  const char *end = name ? strstr(name, behind) : NULL;
  if (!end) return false;
  name += sizeof before - 1;
  for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
    if (strcspn(name, ".'") != strlen(packages[i][0])) continue;
    if (strncmp(name, packages[i][0], strlen(packages[i][0])) != 0) continue;
    fprintf(stderr,
            "latchkey: the Lua module %.*s is not installed; on Debian: apt-get install %s\n",
            (int)(end - name), name, packages[i][1]);
    return true;
  }
  return false;
}

static void tell_failed(const char *message) {
  if (!message) message = "no message";
  if (!tell_missing(message)) fprintf(stderr, "latchkey: a defect: %s\n", message);
}

int lua_main(int argc, char **argv) {
  char *home = home_find(argv[0]);
  if (!home) return CLI_DEFECT;
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
  char *declarations = home_declarations(argv[0]);
  lua_pushstring(lua, home);
  lua_pushstring(lua, declarations); /* nil for NULL */
  free(declarations);
  free(home);
  lua_createtable(lua, argc, 0);
  for (int i = 1; i < argc; i++) {
    lua_pushstring(lua, argv[i]);
    lua_rawseti(lua, -2, i);
  }
  lua_pushcfunction(lua, exit_of_name);
  const int failed = lua_pcall(lua, 4, 1, 1);
  if (failed) tell_failed(lua_tostring(lua, -1));
  const int code = failed ? CLI_DEFECT : (int)lua_tointeger(lua, -1);
  lua_close(lua);
  return code;
}
