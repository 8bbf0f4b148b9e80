-- SPDX-License-Identifier: Apache-2.0
-- What happens inside scripts, as Redis 7.0.15 does it. `line`: the error ends with the script's
-- SHA1 and this line.
local null = require('latchkey.mock.convert').null

local OK = { ok = 'OK' }
local WRONGTYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local READONLY_TABLE = 'ERR Attempt to modify a readonly table'
local READONLY_HERE = 'ERR user_script:1: Attempt to modify a readonly table'
local BAD_ARGUMENT = 'ERR Lua redis lib command arguments must be strings or integers'
local BAD_CALL = 'ERR wrong number or type of arguments'
local NOT_ALLOWED = 'ERR This Redis command is not allowed from script'
local READ_ONLY_SCRIPT = 'ERR Write commands are not allowed from read-only scripts.'
local OOM = "OOM command not allowed when used memory > 'maxmemory'."
local READONLY = "READONLY You can't write against a read only replica."

local function no_global(name)
  return ("ERR user_script:1: Script attempted to access nonexistent global variable '%s'")
    :format(name)
end

return {
  -- from Redis to Lua
  { script = 'return redis.call("GET", "none") == false', gives = 1 },
  { script = 'return { 1, redis.call("GET", "none"), 3 }', gives = { 1, null, 3 } },
  { script = 'return type(redis.call("EXISTS", "k"))', gives = 'number' },
  { script = 'return redis.call("SET", "k", "v").ok', gives = 'OK' },
  { script = 'return redis.call("set", "k", "v")', gives = OK },
  { script = 'local a = redis.call("MGET", "k", "j") return { #a, tostring(a[1]) }',
    gives = { 2, 'false' } },
  { script = 'return redis.call("HGETALL", "h")', after = 'HSET h f v', gives = { 'f', 'v' } },

  -- from Lua to a reply
  { script = 'return', gives = nil },
  { script = 'return nil' },
  { script = 'return false' },
  { script = 'return type' },
  { script = 'return true', gives = 1 },
  { script = 'return 1.9', gives = 1 },
  { script = 'return -1.9', gives = -1 },
  { script = 'return 2 ^ 53', gives = 2 ^ 53 },
  { script = 'return 2 ^ 63', gives = -2 ^ 63 },
  { script = 'return 0 / 0', gives = -2 ^ 63 },
  { script = 'return -1 / 0', gives = -2 ^ 63 },
  { script = 'return "a\\0b"', gives = 'a\0b' },
  { script = 'return {}', gives = {} },
  { script = 'return { 1, nil, 3 }', gives = { 1 } },
  { script = 'return { false, true, type, "x" }', gives = { null, 1, null, 'x' } },
  { script = 'return { 1, { 2, { "three" } } }', gives = { 1, { 2, { 'three' } } } },
  { script = 'return { 1, name = "lost" }', gives = { 1 } },
  { script = 'return setmetatable({ 1 }, { __index = { 2, 3 } })', gives = { 1 } },
  { script = 'return setmetatable({}, { __index = function(_, k) return k end })', gives = {} },
  { script = 'return setmetatable({}, { __index = function() error("boom") end })', gives = {} },
  { script = 'return { 1, { ok = "fine" }, { err = "LKX bad" } }',
    gives = { 1, { ok = 'fine' }, { err = 'LKX bad' } } },
  { script = 'return { ok = "two\\r\\nlines" }', gives = { ok = 'two  lines' } },
  { script = 'return { err = "boom" }', fails = 'boom' },
  { script = 'return { err = 5 }', gives = {} },
  { script = 'return { err = "LKX two\\nlines" }', fails = 'LKX two lines' },
  { script = 'return redis.status_reply("fine")', gives = { ok = 'fine' } },
  { script = 'return redis.status_reply(1)', fails = BAD_CALL },
  { script = 'return redis.error_reply("LKX one two")', fails = 'LKX one two' },
  { script = 'return redis.error_reply("-LKX one")', fails = 'LKX one' },
  { script = 'return redis.error_reply("boom")', fails = 'ERR boom' },
  { script = 'return redis.error_reply("LKX one\\r\\n")', fails = 'LKX one' },
  { script = 'return redis.error_reply()', fails = BAD_CALL },
  { script = 'return redis.error_reply("a", "b")', fails = BAD_CALL },

  -- arguments
  { script = 'return redis.call("ECHO", 1e15)', gives = '1000000000000000' },
  { script = 'return redis.call("ECHO", 2 ^ 53)', gives = '9007199254740992' },
  { script = 'return redis.call("ECHO", 0.1)', gives = '0.10000000000000001' },
  { script = 'return redis.call("ECHO", -5)', gives = '-5' },
  { script = 'return redis.call("ECHO", 1e100)', gives = '1e+100' },
  { script = 'redis.call()', line = 1,
    fails = 'ERR Please specify at least one argument for this redis lib call' },
  { script = 'redis.call(true)', line = 1, fails = BAD_ARGUMENT },
  { script = 'redis.call("GET", {})', line = 1, fails = BAD_ARGUMENT },
  { script = 'redis.call("GET", nil)', line = 1, fails = BAD_ARGUMENT },
  { script = 'return redis.pcall("GET", nil)', fails = BAD_ARGUMENT },

  -- three ways to be no command
  { script = 'redis.call("GET")', line = 1,
    fails = 'ERR Wrong number of args calling Redis command from script' },
  { script = 'redis.call("NOSUCH", 1)', line = 1,
    fails = 'ERR Unknown Redis command called from script' },
  { script = 'redis.call("BLPOP", "l", 0)', line = 1, fails = NOT_ALLOWED, model = true },
  { script = 'redis.call("SUBSCRIBE", "c")', line = 1, fails = NOT_ALLOWED },
  { script = 'redis.call("EVAL", "return 1", 0)', line = 1, fails = NOT_ALLOWED },
  { script = 'redis.call("SCRIPT", "LOAD", "return 1")', line = 1, fails = NOT_ALLOWED },
  { script = 'redis.call("SCRIPT", "NOSUCH")', line = 1,
    fails = 'ERR Unknown Redis command called from script' },
  { script = 'redis.call("SCRIPT")', line = 1,
    fails = 'ERR Wrong number of args calling Redis command from script' },

  -- errors
  { script = 'error("boom")', line = 1, fails = 'ERR user_script:1: boom' },
  { script = 'error("LKX boom", 0)', line = 1, fails = 'ERR LKX boom' },
  { script = 'error(nil)', line = 1, fails = 'ERR nil' },
  { script = 'error({ err = "LKX boom" })', line = 1, fails = 'LKX boom' },
  { script = 'error(setmetatable({}, { __index = { err = "LKX boom" } }))', line = 1,
    fails = 'LKX boom' },
  { script = '\n\nlocal x\nlocal y = x.z', line = 4, fails_like = 'ERR user_script:4:' },
  { script = 'return error("boom")', line = 1, fails = 'ERR user_script:1: boom' },
  { script = 'return error("boom", 0)', line = 1, fails = 'ERR boom' },
  { script = 'return error"boom";', line = 1, fails = 'ERR user_script:1: boom' },
  { script = 'return--why\nerror[[boom]]', line = 2, fails = 'ERR user_script:2: boom' },
  { script = 'local e = error\nlocal f = e\nreturn f("boom")', line = 3,
    fails = 'ERR user_script:3: boom' },
  { script = 'local function f() error("boom", 2) end return f()', line = 1, fails = 'ERR boom' },
  { script = 'local function f() return error("boom") end\nreturn f()', line = 1,
    fails = 'ERR user_script:1: boom' },
  { script = 'local _, why = pcall(function() return error("boom") end) return why',
    gives = 'user_script:1: boom' },
  { script = 'return cjson.decode(\n"{")', line = 1,
    fails_like = 'ERR user_script:1: Expected object key string' },
  { script = 'return table.concat(\n{{}},\n"")', line = 1,
    fails = "ERR user_script:1: invalid value (table) at index 1 in table for 'concat'" },
  { script = 'return ("a"):rep({})', line = 1,
    fails = "ERR user_script:1: bad argument #1 to 'rep' (number expected, got table)" },
  { script = 'return tonumber("z", 37)', line = 1,
    fails = "ERR user_script:1: bad argument #2 to 'tonumber' (base out of range)" },
  { script = 'return tonumber("z", 1)', line = 1,
    fails = "ERR user_script:1: bad argument #2 to 'tonumber' (base out of range)" },
  { script = 'return tonumber({}, 16)', line = 1,
    fails = "ERR user_script:1: bad argument #1 to 'tonumber' (string expected, got table)" },
  { script = 'return tonumber("1", {})', line = 1,
    fails = "ERR user_script:1: bad argument #2 to 'tonumber' (number expected, got table)" },
  { script = 'return load(1)', line = 1,
    fails = "ERR user_script:1: bad argument #1 to 'load' (function expected, got number)" },
  { script = 'for _ in pairs(nil) do end', line = 1,
    fails = "ERR user_script:1: bad argument #1 to 'pairs' (table expected, got nil)" },
  { script = 'return pairs()', line = 1,
    fails = "ERR user_script:1: bad argument #1 to 'pairs' (table expected, got no value)" },
  -- all that a function returns is passed on
  { script = 'local function f() return string.byte("abc", 1, 3) end return { f() }',
    gives = { 97, 98, 99 } },
  { script = 'local function f() return string.byte("") end return select("#", f())', gives = 0 },
  { script = 'redis.call("SET", "j", 1)\nredis.call("HGET", "k", "f")', after = 'SET k v',
    line = 2, fails = WRONGTYPE },
  { script = '\nlocal function f()\n  return redis.call("HGET", "k", "f")\nend\nf()',
    after = 'SET k v', line = 3, fails = WRONGTYPE },
  { script = 'local call = redis.call\nlocal function same(n)\n  return n\nend\n'
    .. 'return call("HGET", same("k"), "f")', after = 'SET k v', line = 5, fails = WRONGTYPE },
  { script = 'return redis.pcall("HGET", "k", "f")', after = 'SET k v', fails = WRONGTYPE },
  { script = 'return redis.pcall("HGET", "k", "f").err', after = 'SET k v', gives = WRONGTYPE },
  { script = 'local ok, err = pcall(redis.call, "HGET", "k", "f") return { tostring(ok), err }',
    after = 'SET k v', gives = { 'false', WRONGTYPE } },
  { script = 'local ok, err = xpcall(function() redis.call("GET") end, function(e) return e end) '
    .. 'return { type(err), err.err }',
    gives = { 'table', 'ERR Wrong number of args calling Redis command from script' } },
  { script = 'local ok, err = pcall(error, "LKX") return { tostring(ok), err }',
    gives = { 'false', 'LKX' } },
  { script = 'return (', fails = 'ERR Error compiling script (new function): '
    .. "user_script:1: unexpected symbol near '<eof>'" },
  { script = 'x = = 1', fails_like = 'ERR Error compiling script (new function): user_script:1:' },

  -- globals
  { script = 'local x = y', line = 1, fails = no_global('y') },
  { script = 'return print', line = 1, fails = no_global('print') },
  { script = 'return os and os.clock and 1 or 0', line = 1, fails = no_global('os'), model = true },
  { script = 'return _G.io', line = 1, fails = no_global('io') },
  { script = 'return setfenv', line = 1, fails = no_global('setfenv'), model = true },
  { script = 'return jit', line = 1, fails = no_global('jit') },
  { script = 'y = 1', line = 1, fails = READONLY_HERE },
  { script = 'function y() end', line = 1, fails = READONLY_HERE },
  { script = 'KEYS = {}', line = 1, fails = READONLY_HERE },
  { script = 'string.x = 1', line = 1, fails = READONLY_HERE },
  { script = 'redis.call = 1', line = 1, fails = READONLY_HERE },
  { script = 'getmetatable(_G).__index = 1', line = 1, fails = READONLY_HERE },
  { script = 'getmetatable("").__index = 1', line = 1, fails = READONLY_HERE, model = true },
  { script = 'rawset(_G, "x", 1)', line = 1, fails = READONLY_TABLE },
  { script = 'setmetatable(_G, {})', line = 1, fails = READONLY_TABLE },
  { script = 'return rawget(_G, "x")' },
  { script = 'return string.x' },
  { script = 'return redis.x' },
  { script = 'KEYS[1] = "x" return KEYS[1]', keys = { 'k' }, gives = 'x' },
  { script = 'return loadstring("return 1 + 1")()', gives = 2 },
  { script = 'return loadstring("return os")()', fails_like = 'ERR', model = true },
  { script = 'local t = { "return ", "7" } local i = 0 '
    .. 'return load(function() i = i + 1 return t[i] end)()', gives = 7 },
  { script = 'return { ("x"):rep(3), table.concat({ 1, 2 }, ","), math.floor(2.5) }',
    gives = { 'xxx', '1,2', 2 } },
  { script = 'return { bit.band(6, 3), cjson.encode({ 1, "a" }), cjson.decode("[5]")[1] }',
    gives = { 2, '[1,"a"]', 5 } },
  { script = 'local c = coroutine.wrap(function(a) coroutine.yield(a + 1) end) return c(1)',
    gives = 2 },
  { script = 'local names = {} for name in pairs(_G) do names[#names + 1] = name end '
    .. 'for name in ("redis string table math bit cjson coroutine"):gmatch("%a+") do '
    .. 'for inner in pairs(_G[name]) do names[#names + 1] = name .. "." .. inner end end '
    .. 'table.sort(names) return names', globals = true, model = true },

  -- redis.*
  { script = 'return redis.sha1hex("")', gives = 'da39a3ee5e6b4b0d3255bfef95601890afd80709' },
  { script = 'return redis.sha1hex(1)', gives = '356a192b7913b04c54574d18c28d46e6395428ab' },
  { script = 'return redis.sha1hex(true)', gives = 'da39a3ee5e6b4b0d3255bfef95601890afd80709' },
  { script = 'return redis.sha1hex()', line = 1, fails = 'ERR wrong number of arguments' },
  { script = 'return redis.log(redis.LOG_DEBUG, "text")' },
  { script = 'redis.log(1)', line = 1, fails = 'ERR redis.log() requires two arguments or more.' },
  { script = 'redis.log("a", "b")', line = 1,
    fails = 'ERR First argument must be a number (log level).' },
  { script = 'redis.log(9, "b")', line = 1, fails = 'ERR Invalid debug level.' },
  { script = 'return redis.setresp(2)' },
  { script = 'redis.setresp()', line = 1, fails = 'ERR redis.setresp() requires one argument.' },
  { script = 'redis.setresp(4)', line = 1, fails = 'ERR RESP version must be 2 or 3.' },
  { script = 'return redis.set_repl(redis.REPL_ALL)' },
  { script = 'redis.set_repl()', line = 1, fails = 'ERR redis.set_repl() requires two arguments.' },
  { script = 'redis.set_repl(99)', line = 1, fails = 'ERR Invalid replication flags. '
    .. 'Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.' },
  { script = 'return redis.replicate_commands()', gives = 1 },
  { script = 'return redis.breakpoint()' },
  { script = 'return redis.acl_check_cmd("GET", "k")', gives = 1 },
  { script = 'return redis.acl_check_cmd("NOSUCH")', line = 1,
    fails = 'ERR Invalid command passed to redis.acl_check_cmd()' },
  { script = 'redis.acl_check_cmd()', line = 1,
    fails = 'ERR Please specify at least one argument for this redis lib call' },
  { script = 'return { redis.REDIS_VERSION_NUM >= 0x070000, redis.REPL_SLAVE }', gives = { 1, 2 } },

  -- what stays
  { script = 'redis.call("SET", "k", 1) redis.call("NOSUCH")', line = 1,
    fails = 'ERR Unknown Redis command called from script' },
  { script = 'return redis.call("HDEL", "h", "f")', after = 'HSET h f v', gives = 1 },
  { script = 'return redis.call("PEXPIRE", "k", 0)', after = 'SET k v', gives = 1 },
  { script = 'return redis.call("PEXPIRE", "k", 1.5)', after = 'SET k v', line = 1,
    fails = 'ERR value is not an integer or out of range' },
  { script = 'return redis.call("PUBLISH", "c", "m")', gives = 0 },
  { script = 'return redis.call("SPUBLISH", "c", "m")', gives = 0 },
  { script = 'return #redis.call("TIME")', gives = 2 },

  -- time goes on, expiry waits for the script's end
  { script = [[
      local function now()
        local time = redis.call('TIME')
        return time[1] * 1000 + math.floor(time[2] / 1000)
      end
      local start = now()
      redis.call('SET', 'k', 'v', 'PX', 3)
      while now() < start + 6 do
      end
      return { redis.call('GET', 'k'), redis.call('PTTL', 'k'), redis.call('EXISTS', 'k') }]],
    gives = { 'v', 0, 1 }, model = true },

  -- shebang and flags
  { script = '#!lua\nreturn 1', gives = 1 },
  { script = '#!lua', fails = 'ERR Invalid script shebang' },
  { script = '#!foo\nreturn 1', fails = 'ERR Unexpected engine in script shebang: #!foo' },
  { script = '#! lua\nreturn 1', fails = 'ERR Unexpected engine in script shebang: #!' },
  { script = '#!lua x=1\nreturn 1', fails = 'ERR Unknown lua shebang option: x=1' },
  { script = '#!lua flags=foo\nreturn 1', fails = 'ERR Unexpected flag in script shebang: foo' },
  { script = '#!lua flags=no-writes,\nreturn 1',
    fails = 'ERR Unexpected flag in script shebang: ' },
  { script = '#!lua flags=\nreturn 1', gives = 1 },
  { script = '#!lua "flags=\nreturn 1', fails = 'ERR Invalid engine in script shebang' },
  { script = '#!lua flags=no-writes,allow-oom,allow-stale,no-cluster,allow-cross-slot-keys\n'
    .. 'error("boom")', line = 2, fails = 'ERR user_script:2: boom' },
  { script = '#!lua flags=no-writes\nreturn redis.call("SET", "k", "v")', line = 2,
    fails = READ_ONLY_SCRIPT },
  { script = '#!lua flags=no-writes\nreturn redis.call("PUBLISH", "c", "m")', line = 2,
    fails = READ_ONLY_SCRIPT },
  { script = '#!lua flags=no-writes\nreturn redis.call("GET", "k")', after = 'SET k v',
    gives = 'v' },
  { script = '#!lua\nreturn 1', full = true, fails = OOM },
  { script = '#!lua flags=no-writes\nreturn 1', full = true, gives = 1 },
  { script = '#!lua flags=allow-oom\nreturn redis.call("SET", "k", "v")', full = true, gives = OK },
  { script = 'return redis.call("SET", "k", "v")', full = true, line = 1, fails = OOM },
  { script = 'redis.call("DEL", "k") return redis.call("SET", "k", "v")', full = true, gives = OK },
  { script = 'redis.call("GET", "k") return redis.call("SET", "k", "v")', full = true, line = 1,
    fails = OOM },
  { script = '#!lua\nreturn 1', replica = true, fails = READONLY },
  { script = '#!lua flags=no-writes,allow-stale\nreturn 1', replica = true, gives = 1 },
  { script = 'return redis.call("SET", "k", "v")', replica = true, line = 1, fails = READONLY },
  { script = 'return redis.call("GET", "k")', replica = true, after = 'SET k v', gives = 'v' },
}
