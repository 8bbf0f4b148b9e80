-- SPDX-License-Identifier: Apache-2.0
-- Functions, as Redis 7.0.15 answers.
local null = require('latchkey.mock.convert').null

local LIBRARY = '#!lua name=lib\n'
local BAD_NAME = 'ERR Library names can only contain letters, numbers, or underscores(_) and must '
  .. 'be at least one character long'

-- A library with this code.
local function load(code, ...)
  return { 'FUNCTION', 'LOAD', LIBRARY .. code, ... }
end

local function named(fields)
  return load(('redis.register_function{function_name="f", callback=function() end, %s}')
    :format(fields))
end

-- What it says when its code cannot be used.
local function refused(why)
  return 'ERR Error registering functions: ERR ' .. why
end

local PUT = load('redis.register_function("put", function(keys, args)\n'
  .. ' return redis.call("SET", keys[1], args[1]) end)')
local LOOK = { 'FUNCTION', 'LOAD', '#!lua name=looks\nredis.register_function{'
  .. 'function_name="look", description="reads", flags={"no-writes", "allow-oom"}, '
  .. 'callback=function(keys) return redis.call("GET", keys[1]) end}' }
local NARROW = load('redis.register_function("globals", function() return KEYS end)\n'
  .. 'redis.register_function("later", function() redis.register_function("x", print) end)\n'
  .. 'redis.register_function("fails", function() error("x") end)\n'
  .. 'redis.register_function("throws", function() error({err = "CODE y"}) end)\n'
  .. 'redis.register_function("answers", function() return {err = "CODE z"} end)')

local LATE = load('redis.register_function("late", function()\n'
  .. ' return cjson.encode({ math.floor(1.5) }) .. tostring(_G ~= nil) end)')

local cases = {
  { PUT, gives = 'lib' },
  { { 'FUNCTION', 'LOAD', 'return 1' }, fails = 'ERR Missing library metadata' },
  { { 'FUNCTION', 'LOAD', '#!lua name=lib' }, fails = 'ERR Invalid library metadata' },
  { { 'FUNCTION', 'LOAD', '#!lua\nreturn 1' }, fails = 'ERR Library name was not given' },
  { { 'FUNCTION', 'LOAD', '#!lua name=a-b\nreturn 1' }, fails = BAD_NAME },
  { { 'FUNCTION', 'LOAD', '#!js name=lib\nreturn 1' }, fails = "ERR Engine 'js' not found" },
  { { 'FUNCTION', 'LOAD', '#!lua name=lib name=lib\nreturn 1' },
    fails = 'ERR Invalid metadata value, name argument was given multiple times' },
  { { 'FUNCTION', 'LOAD', '#!lua name=lib what\nreturn 1' },
    fails = 'ERR Invalid metadata value given: what' },
  { { 'FUNCTION', 'LOAD', 'WHAT', LIBRARY }, fails = 'ERR Unknown option given: WHAT' },
  { PUT, after = { PUT }, fails = "ERR Library 'lib' already exists" },
  { { 'FUNCTION', 'LOAD', 'REPLACE', PUT[3] }, after = { PUT }, gives = 'lib' },
  { { 'FUNCTION', 'LOAD', '#!lua name=other' .. PUT[3]:sub(#'#!lua name=lib' + 1) },
    after = { PUT }, fails = 'ERR Function put already exists' },
  { load('x y'), fails = "ERR Error compiling function: user_function:2: '=' expected near 'y'" },
  { load('return 1'), fails = 'ERR No functions registered' },
  { load('redis.register_function()'),
    fails = refused('wrong number of arguments to redis.register_function') },
  { load('redis.register_function("f")'), fails = refused('calling redis.register_function with a '
    .. 'single argument is only applicable to Lua table (representing named arguments).') },
  { load('redis.register_function({}, 1)'),
    fails = refused('first argument to redis.register_function must be a string') },
  { load('redis.register_function("f", 1)'),
    fails = refused('second argument to redis.register_function must be a function') },
  { load('redis.register_function("a-b", function() end)'), fails = refused(BAD_NAME:sub(5)) },
  { load(('redis.register_function("f", function() end) '):rep(2)),
    fails = refused('Function already exists in the library') },
  { load('redis.register_function{}'),
    fails = refused('redis.register_function must get a function name argument') },
  { load('redis.register_function{function_name="f"}'),
    fails = refused('redis.register_function must get a callback argument') },
  { load('redis.register_function{function_name="f", callback=1}'),
    fails = refused('callback argument given to redis.register_function must be a function') },
  { named('what=1'), fails = refused('unknown argument given to redis.register_function') },
  { named('flags={"what"}'), fails = refused('unknown flag given') },
  { named('flags=1'), fails = refused('flags argument to redis.register_function must be a table '
    .. 'representing function flags') },
  { named('description={}'),
    fails = refused('description argument given to redis.register_function must be a string') },
  { load('redis.call("GET", "k")'), fails = refused('user_function:2: Script attempted to access '
    .. "nonexistent global variable 'call'") },

  { 'FCALL put 1 k v', after = { PUT }, gives = { ok = 'OK' } },
  { 'FCALL PUT 1 k v', after = { PUT }, gives = { ok = 'OK' } },
  { 'FCALL none 0', fails = 'ERR Function not found' },
  { 'FCALL put x', after = { PUT }, fails = 'ERR Bad number of keys provided' },
  { 'FCALL put 2 k', after = { PUT },
    fails = "ERR Number of keys can't be greater than number of args" },
  { 'FCALL put -1', after = { PUT }, fails = "ERR Number of keys can't be negative" },
  { 'FCALL_RO put 1 k v', after = { PUT },
    fails = 'ERR Can not execute a script with write flag using *_ro command.' },
  { 'FCALL_RO look 1 k', after = { LOOK, { 'SET', 'k', 'v' } }, gives = 'v' },
  { 'FCALL look 1 k', after = { LOOK, { 'HSET', 'k', 'f', 'v' } },
    fails = 'WRONGTYPE Operation against a key holding the wrong kind of value script: look, on '
      .. '@user_function:2.' },
  { 'FCALL globals 0', after = { NARROW }, fails = 'ERR user_function:2: Script attempted to '
    .. "access nonexistent global variable 'KEYS' script: globals, on @user_function:2." },
  { 'FCALL fails 0', after = { NARROW },
    fails = 'ERR user_function:4: x script: fails, on @user_function:4.' },
  { 'FCALL throws 0', after = { NARROW }, fails = 'CODE y script: throws, on @user_function:5.' },
  { 'FCALL answers 0', after = { NARROW }, fails = 'CODE z' },

  { 'FCALL late 0', after = { LATE }, gives = '[1]true' },
  { load('redis.register_function(("x"):rep(2, ","), function() end)'), gives = 'lib' },

  { 'FUNCTION LIST', gives = {} },
  { 'FUNCTION LIST', after = { LOOK }, gives = { { 'library_name', 'looks', 'engine', 'LUA',
    'functions', { { 'name', 'look', 'description', 'reads', 'flags',
      { { ok = 'no-writes' }, { ok = 'allow-oom' } } } } } } },
  { 'FUNCTION LIST LIBRARYNAME l?b WITHCODE', after = { PUT, LOOK }, gives = { { 'library_name',
    'lib', 'engine', 'LUA', 'functions', { { 'name', 'put', 'description', null, 'flags', {} } },
    'library_code', PUT[3] } } },
  { 'FUNCTION LIST LIBRARYNAME L?B', after = { PUT }, gives = { { 'library_name', 'lib', 'engine',
    'LUA', 'functions', { { 'name', 'put', 'description', null, 'flags', {} } } } } },
  { 'FUNCTION LIST LIBRARYNAME', fails = 'ERR library name argument was not given' },
  { 'FUNCTION LIST WHAT', fails = 'ERR Unknown argument WHAT' },
  { 'FUNCTION STATS', after = { PUT, LOOK }, gives = { 'running_script', null, 'engines',
    { 'LUA', { 'libraries_count', 2, 'functions_count', 2 } } } },
  { 'FUNCTION DELETE lib', after = { PUT }, gives = { ok = 'OK' } },
  { 'FCALL put 1 k v', after = { PUT, { 'FUNCTION', 'DELETE', 'lib' } },
    fails = 'ERR Function not found' },
  { 'FUNCTION DELETE lib', fails = 'ERR Library not found' },
  { 'FUNCTION FLUSH', after = { PUT }, gives = { ok = 'OK' } },
  { 'FCALL put 1 k v', after = { PUT, { 'FUNCTION', 'FLUSH', 'SYNC' } },
    fails = 'ERR Function not found' },
  { 'FUNCTION FLUSH WHAT', fails = 'ERR FUNCTION FLUSH only supports SYNC|ASYNC option' },
  { 'FUNCTION KILL', fails = 'NOTBUSY No scripts in execution right now.' },
  { 'PUBSUB NUMSUB c', gives = { 'c', 0 } },
  { 'PUBSUB CHANNELS', gives = {} },
  { 'PUBSUB NUMPAT', gives = 0 },
}

-- What a library does not have while it is loaded, though its functions have it later.
for name in ([[assert error ipairs pairs next select tonumber tostring type unpack pcall
  xpcall rawget rawset rawequal getmetatable setmetatable load loadstring collectgarbage gcinfo
  _VERSION _G cjson cmsgpack bit struct string table math coroutine print]]):gmatch('%S+') do
  cases[#cases + 1] = { load('local x = ' .. name), model = true,
    fails = refused("user_function:2: Script attempted to access nonexistent global variable '"
      .. name .. "'") }
end
for _, code in ipairs({ 'x = 1', 'redis.x = 1' }) do
  cases[#cases + 1] = { load(code), model = true,
    fails = refused('user_function:2: Attempt to modify a readonly table') }
end
return cases
