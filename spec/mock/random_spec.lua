-- SPDX-License-Identifier: Apache-2.0
-- Random commands and random calls of every script, on the mock and on a Redis 7.0 server. A
-- difference is shrunk to the commands that it takes. LATCHKEY_SPEC_SEED starts elsewhere.
local Oracle = require('mock.oracle')
local catalog = require('lib.catalog')
local compare = require('mock.compare')
local names = require('lib.names')

local FIRST_SEED = tonumber(os.getenv('LATCHKEY_SPEC_SEED')) or 1
local RUNS, LENGTH = 20, 200

-- Few keys, fields and values, so that commands meet; deadlines are absolute and far, or past.
local WORDS = {
  K = { 'a', 'b', 'c' },
  F = { 'f', 'g', '' },
  V = { '7', '-3', 'text', 'a\0\r\n' },
  N = { '1', '-2', '0', 'x', '1.5' },
  T = { '4102444800000', '4102444801500', '4102444900000', '1' },
  S = { '4102444800', '4102444801', '-1' },
  X = { 'NX', 'XX', 'GT', 'LT', 'gt', 'OR' },
  I = { '0', '1', '2', '-1', '-2', '9', 'x' },
  P = { 'RANK', 'COUNT', 'MAXLEN', 'rank', 'OR' },
  W = { 'BEFORE', 'AFTER', 'after', 'OR' },
  D = { 'LEFT', 'RIGHT', 'right', 'UP' },
  Z = { '0', '1', '-1', '2.5', '0.1', '-0', '1e3', 'inf', '-inf', '9007199254740993', '1e400',
    'x' },
  O = { 'NX', 'XX', 'GT', 'LT', 'CH', 'INCR', 'gt', 'OR' },
  R = { '-inf', '+inf', '0', '(1', '(0', '1', '2', '2.5', '0.1', '(inf', '', 'x' },
  Q = { 'WITHSCORES', 'REV', 'rev', 'BYSCORE', 'BYLEX', 'LIMIT' },
  M = { 'a', 'ab', 'b', '', 'a\0' },
  B = { '-', '+', '[a', '(a', '(ab', '[b', '[', '(', 'a' },
}

local GRAMMAR = {
  'DEL K', 'UNLINK K K', 'EXISTS K K', 'TYPE K', 'TOUCH K', 'PERSIST K',
  'PEXPIREAT K T', 'PEXPIREAT K T X', 'PEXPIREAT K T X X', 'EXPIREAT K S X', 'PEXPIRETIME K',
  'EXPIRETIME K',
  'GET K', 'SET K V', 'SET K V X', 'SET K V X GET', 'SET K V PXAT T', 'SET K V X EXAT S',
  'SET K V KEEPTTL', 'SETNX K V', 'GETSET K V', 'GETDEL K', 'GETEX K PXAT T', 'GETEX K PERSIST',
  'MGET K K', 'MSET K V K V', 'MSETNX K V K V', 'APPEND K V', 'STRLEN K', 'INCR K', 'DECR K',
  'INCRBY K N', 'DECRBY K N',
  'HSET K F V', 'HSET K F V F V', 'HMSET K F V', 'HSETNX K F V', 'HGET K F', 'HMGET K F F',
  'HGETALL K', 'HKEYS K', 'HVALS K', 'HEXISTS K F', 'HLEN K', 'HSTRLEN K F', 'HDEL K F',
  'HDEL K F F', 'HINCRBY K F N',
  'LPUSH K V', 'LPUSH K V V', 'RPUSH K V', 'RPUSH K V V', 'LPUSHX K V', 'RPUSHX K V', 'LPOP K',
  'LPOP K I', 'RPOP K', 'RPOP K I', 'LLEN K', 'LINDEX K I', 'LRANGE K I I', 'LREM K I V',
  'LSET K I V', 'LTRIM K I I', 'LPOS K V', 'LPOS K V P I', 'LPOS K V P I P I', 'LINSERT K W V V',
  'LMOVE K K D D', 'RPOPLPUSH K K',
  'ZADD K Z F', 'ZADD K Z F Z F', 'ZADD K O Z F', 'ZADD K O O Z F', 'ZADD K O CH Z F Z F',
  'ZINCRBY K Z F', 'ZREM K F', 'ZREM K F F', 'ZSCORE K F', 'ZMSCORE K F F', 'ZCARD K', 'ZRANK K F',
  'ZREVRANK K F', 'ZPOPMIN K', 'ZPOPMAX K', 'ZPOPMIN K I', 'ZPOPMAX K I',
  'ZRANGE K I I', 'ZRANGE K I I Q', 'ZRANGE K R R BYSCORE', 'ZRANGE K R R BYSCORE Q',
  'ZRANGE K R R BYSCORE Q LIMIT I I', 'ZRANGE K R R Q Q', 'ZRANGE K R R LIMIT I I',
  'ZREVRANGE K I I', 'ZREVRANGE K I I Q', 'ZRANGEBYSCORE K R R', 'ZRANGEBYSCORE K R R Q',
  'ZRANGEBYSCORE K R R LIMIT I I', 'ZREVRANGEBYSCORE K R R', 'ZREVRANGEBYSCORE K R R LIMIT I I',
  'ZCOUNT K R R', 'ZREMRANGEBYSCORE K R R', 'ZREMRANGEBYRANK K I I',
  'ZADD lex 0 F', 'ZADD lex -0 M', 'ZADD lex 0 M', 'ZREM lex M', 'ZRANGEBYLEX lex B B',
  'ZRANGEBYLEX lex B B LIMIT I I', 'ZRANGEBYLEX lex B B Q', 'ZREVRANGEBYLEX lex B B',
  'ZRANGE lex B B BYLEX Q', 'ZLEXCOUNT lex B B', 'ZREMRANGEBYLEX lex B B',
  'PUBLISH K V', 'SPUBLISH K V', 'ECHO V', 'SCRIPT V', 'NOSUCH V K',
}

-- How a command is sent: by itself or by a script, in each of which its reply takes another way.
local WAYS = {
  false, 'return redis.call(unpack(ARGV))', 'return redis.pcall(unpack(ARGV))',
  'local r = redis.pcall(unpack(ARGV)) return { type(r), r }',
}

-- The same numbers under every Lua: the minimal standard generator of Park and Miller.
local function generator(seed)
  local state = seed * 7919 % 2147483647 + 1
  return function(list)
    state = state * 16807 % 2147483647
    return list[state % #list + 1]
  end
end

local function random_command(pick)
  local argv = {}
  for word in pick(GRAMMAR):gmatch('%S+') do
    argv[#argv + 1] = WORDS[word] and pick(WORDS[word]) or word
  end
  local mistake = pick({ 'none', 'none', 'none', 'none', 'none', 'none', 'none', 'less', 'more' })
  if mistake == 'less' then
    table.remove(argv)
  elseif mistake == 'more' then
    argv[#argv + 1] = pick(WORDS.V)
  end
  local way = argv[1] and pick(WAYS)
  if not way then
    return argv[1] and argv or { 'PING' }
  end
  return { 'EVAL', way, '0', unpack(argv) }
end

local function argument(pick, spec, h)
  if spec.kind == 'integer' then
    local usual = spec.type == 'ms' and { '60000', '90000', tostring(spec.max) }
      or { tostring(spec.min), tostring(spec.min + 1), '2' }
    return pick({ pick(usual), pick(usual), pick(usual), pick({ '', 'x', '0', '-1', '1.5',
      ('%.0f'):format(spec.max + 1), ('%.0f'):format(spec.min - 1) }) })
  elseif spec.kind == 'choice' then
    return pick({ pick(spec.values), pick(spec.values), pick(spec.values), 'neither' })
  elseif spec.kind == 'command' then
    return pick({ pick(h.dynamic), pick(h.dynamic), pick(h.dynamic), 'ECHO' })
  end
  return pick({ 'x', 'y', 'x', 'y', 'x', 'y', '', ('z'):rep((spec.max or 1024) + 1) })
end

local function random_call(pick, script)
  local name, h = pick({ 'a', 'b' }), script.header
  local args, by_name = {}, {}
  for i, spec in ipairs(h.argv) do
    args[i] = argument(pick, spec, h)
    by_name[spec.name] = args[i]
  end
  local argv = { 'EVAL', script.source, tostring(#h.keys) }
  for _, key in ipairs(h.keys) do
    argv[#argv + 1] = key.form.kind == 'slot' and ('{%s}:any'):format(name)
      or names.form(key.form, name, by_name)
  end
  for _, arg in ipairs(args) do
    argv[#argv + 1] = arg
  end
  if #args > 0 and pick({ false, false, false, false, false, true }) then
    table.remove(argv)
  end
  return argv
end

-- Runs the same on both sides; nil or what differs.
local function difference(oracle, commands, strict)
  oracle:reset()
  local mock = compare.mock_beside(oracle, strict)
  for i, argv in ipairs(commands) do
    local expected, actual = {}, {}
    expected.reply, expected.err = oracle:command(unpack(argv))
    actual.reply, actual.err = mock:command(unpack(argv))
    local found = compare.outcomes(expected, actual)
    if found then
      return ('command %d: %s'):format(i, found)
    end
  end
  local found = compare.keys(oracle:dump(), mock:dump())
  return found and 'keys: ' .. found
end

local function shrink(oracle, commands, strict)
  for i = #commands, 1, -1 do
    local command = table.remove(commands, i)
    if not difference(oracle, commands, strict) then
      table.insert(commands, i, command)
    end
  end
  return commands
end

local function report(oracle, seed, commands, strict)
  local lines = { ('seed %d'):format(seed) }
  for _, argv in ipairs(shrink(oracle, commands, strict)) do
    local quoted = {}
    for i, text in ipairs(argv) do
      quoted[i] = ('%q'):format(#text > 200 and text:match('name: *(%S+)') or text)
    end
    lines[#lines + 1] = table.concat(quoted, ' ')
  end
  lines[#lines + 1] = difference(oracle, commands, strict)
  return table.concat(lines, '\n')
end

describe('the mock and a Redis 7.0 server agree', function()
  local oracle, missing

  setup(function()
    oracle, missing = Oracle.start()
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  local function try(make, strict)
    for seed = FIRST_SEED, FIRST_SEED + RUNS - 1 do
      local pick = generator(seed)
      local commands = {}
      for i = 1, LENGTH do
        commands[i] = make(pick)
      end
      if difference(oracle, commands, strict) then
        error(report(oracle, seed, commands, strict), 0)
      end
    end
  end

  it('on random commands, sent by clients and by scripts', function()
    if not oracle then
      return pending(missing)
    end
    try(random_command, false)
  end)

  it('on random calls of every script, with keys of any type before them', function()
    if not oracle then
      return pending(missing)
    end
    local scripts = assert(catalog.read('scripts'))
    local fills = { { 'DEL', 'a' }, { 'DEL', 'b' }, { 'SET', 'a', 'x' }, { 'HSET', 'b', 'x', '1' },
      { 'SCRIPT', 'FLUSH' } }
    try(function(pick)
      if pick({ true, false, false, false }) then
        return pick(fills)
      end
      return random_call(pick, pick(scripts))
    end, false)
  end)
end)
