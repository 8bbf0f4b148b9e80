-- SPDX-License-Identifier: Apache-2.0
-- Random command sequences, each from a number alone: a small grammar for each group of commands,
-- random Lua values that scripts return, and random calls of every shipped script. Keys, fields and
-- values are few, so that commands meet; a sequence fills the keys first, then probes them.
local catalog = require('latchkey.script.catalog')
local names = require('latchkey.script.names')

local grammar = {}

grammar.LENGTH = 200
local FILLED = 50

-- Deadlines are absolute and far, or past. "@+60000" stands for that distance from now, in ms.
local WORDS = {
  K = { 'a', 'b', 'c' },
  F = { 'f', 'g', '' },
  V = { '7', '-3', 'text', 'a\0\r\n' },
  N = { '1', '-2', '0', 'x', '1.5', '+1', '-0', '01', ' 1' },
  A = { '4102444800000', '4102444801500', '4102444900000', '1' },
  T = { '4102444800000', '4102444801500', '4102444900000', '1', '0', '-1', '1e9' },
  S = { '4102444800', '4102444801', '-1' },
  E = { 'G', 'G', '0', '-1', 'x', '1.5', '', '9223372036854775807' },
  X = { 'NX', 'XX', 'GT', 'LT', 'gt', 'OR' },
  I = { '0', '1', '2', '-1', '-2', '9', '-9', 'x' },
  P = { 'RANK', 'COUNT', 'MAXLEN', 'rank', 'OR' },
  W = { 'BEFORE', 'AFTER', 'after', 'OR' },
  D = { 'LEFT', 'RIGHT', 'right', 'UP' },
  Z = { '0', '1', '-1', '2.5', '0.1', '-0', '1e3', 'inf', '-inf', '+5', '9007199254740993', '1e400',
    '1767225600123', 'x', 'nan', '' },
  O = { 'NX', 'XX', 'GT', 'LT', 'CH', 'INCR', 'gt', 'OR' },
  R = { '-inf', '+inf', '0', '(1', '(0', '1', '2', '2.5', '0.1', '(inf', '', 'x' },
  Q = { 'WITHSCORES', 'REV', 'rev', 'BYSCORE', 'LIMIT' },
  M = { 'a', 'ab', 'b', '', 'a\0' },
  H = { '1-1', '1', '2-0', '2', '5-3', '7', '7-*', '0-0', '1-', 'x', '9007199254740991-1' },
  J = { '-', '+', '1', '(1', '2-0', '(5-3', '7', '(+', 'x' },
  L = { '0', '1', '2', '-1', 'x' },
  U = { '0', '1', '3', '7', '8', '20', '-1', 'x' },
  Y = { '0', '1', '2', '-1', '-2', '9', '-9' },
  C = { '*', '?', 'a*', '[f-g]', '' },
  B = { '-', '+', '[a', '(a', '(ab', '[b', '[', '(', 'a' },
}

local KEYS = {
  'DEL K', 'UNLINK K K', 'EXISTS K K', 'TYPE K', 'TOUCH K K', 'PERSIST K', 'EXPIRE K E',
  'PEXPIRE K E', 'PEXPIRE K E X', 'PEXPIREAT K T', 'PEXPIREAT K T X', 'PEXPIREAT K T X X',
  'EXPIREAT K S X', 'PEXPIRETIME K', 'EXPIRETIME K', 'TTL K', 'PTTL K',
  'PUBLISH K V', 'SPUBLISH K V', 'ECHO V', 'PING', 'PING V',
  'SCRIPT V', 'SCRIPT EXISTS V V', 'NOSUCH V K', 'EVALSHA V 0', 'EVAL V 0', 'EVAL V N K',
  'RENAME K K', 'RENAMENX K K', 'COPY K K', 'COPY K K REPLACE', 'COPY K K X',
}

-- Group -> what fills and what probes. Every group has keys of other types as well, and commands
-- on keys of any.
local GROUPS = {
  strings = {
    fill = { 'SET K V', 'SET K N', 'SETNX K V', 'APPEND K V', 'INCRBY K N', 'PSETEX K E V' },
    probe = {
      'GET K', 'SET K V', 'SET K V X', 'SET K V X GET', 'SET K V PXAT T', 'SET K V X EXAT S',
      'SET K V KEEPTTL', 'SET K V PX E', 'SET K V EX E X', 'SETNX K V', 'SETEX K E V',
      'PSETEX K E V', 'GETSET K V', 'GETDEL K', 'GETEX K', 'GETEX K PXAT A', 'GETEX K PX G',
      'GETEX K PERSIST', 'MGET K K', 'MSET K V K V', 'MSETNX K V K V', 'APPEND K V', 'STRLEN K',
      'INCR K', 'DECR K', 'INCRBY K N', 'DECRBY K N', 'GETRANGE K I I', 'SETRANGE K U V',
      'GETBIT K U', 'SETBIT K U L', 'BITCOUNT K', 'BITCOUNT K Y Y', 'BITCOUNT K Y Y BIT',
    },
  },
  sets = {
    fill = { 'SADD K N', 'SADD K M', 'SADD K N M N', 'SADD K N N' },
    probe = {
      'SADD K N', 'SADD K M N', 'SREM K N', 'SREM K M N', 'SCARD K', 'SISMEMBER K M',
      'SMISMEMBER K M N', 'SMEMBERS K', 'SMOVE K K N', 'SMOVE K K M', 'SUNION K K', 'SINTER K K',
      'SDIFF K K', 'SDIFF K K K', 'SUNIONSTORE K K K', 'SINTERSTORE K K K', 'SDIFFSTORE K K K',
      'SINTERCARD L K', 'SINTERCARD 2 K K LIMIT L', 'SSCAN K 0 COUNT 99',
      'SSCAN K 0 COUNT 99 MATCH C',
      'SRANDMEMBER K 0', 'SRANDMEMBER K 99', 'SPOP K 99', 'SPOP K x',
    },
  },
  streams = {
    fill = { 'XADD K H F V', 'XADD K H F V F V', 'XADD K 1-* F V', 'XADD K 5-* F V' },
    probe = {
      'XADD K H F V', 'XADD K MAXLEN L H F V', 'XADD K MAXLEN = L H F V', 'XADD K MINID H H F V',
      'XADD K NOMKSTREAM H F V', 'XADD K MAXLEN ~ L LIMIT L H F V', 'XADD K H F', 'XLEN K',
      'XRANGE K J J', 'XRANGE K - +', 'XRANGE K J J COUNT L', 'XREVRANGE K J J',
      'XREVRANGE K + - COUNT L', 'XDEL K H', 'XDEL K H H', 'XTRIM K MAXLEN L', 'XTRIM K MINID H',
      'XTRIM K MAXLEN = L', 'XADD K MAXLEN L MINID H H F V',
    },
  },
  hashes = {
    fill = { 'HSET K F V', 'HSET K F V F N', 'HMSET K F V', 'HINCRBY K F N' },
    probe = {
      'HSET K F V', 'HSET K F V F V', 'HMSET K F V', 'HSETNX K F V', 'HGET K F', 'HMGET K F F',
      'HGETALL K', 'HKEYS K', 'HVALS K', 'HEXISTS K F', 'HLEN K', 'HSTRLEN K F', 'HDEL K F',
      'HDEL K F F', 'HINCRBY K F N', 'HSCAN K 0',
      'HSCAN K 0 MATCH C COUNT N', 'HSCAN K x',
    },
  },
  lists = {
    fill = { 'LPUSH K V', 'RPUSH K V V', 'RPUSH K V', 'LPUSH K N' },
    probe = {
      'LPUSH K V', 'LPUSH K V V', 'RPUSH K V', 'RPUSH K V V', 'LPUSHX K V', 'RPUSHX K V', 'LPOP K',
      'LPOP K I', 'RPOP K', 'RPOP K I', 'LLEN K', 'LINDEX K I', 'LRANGE K I I', 'LREM K I V',
      'LSET K I V', 'LTRIM K I I', 'LPOS K V', 'LPOS K V P I', 'LPOS K V P I P I',
      'LINSERT K W V V', 'LMOVE K K D D', 'RPOPLPUSH K K',
    },
  },
  zsets = {
    fill = { 'ZADD K Z F', 'ZADD K Z F Z M', 'ZINCRBY K Z F' },
    probe = {
      'ZADD K Z F', 'ZADD K Z F Z F', 'ZADD K O Z F', 'ZADD K O O Z F', 'ZADD K O CH Z F Z F',
      'ZINCRBY K Z F', 'ZREM K F', 'ZREM K F F', 'ZSCORE K F', 'ZMSCORE K F F', 'ZCARD K',
      'ZRANK K F', 'ZREVRANK K F', 'ZSCAN K 0', 'ZSCAN K 0 MATCH C', 'ZPOPMIN K',
      'ZPOPMAX K', 'ZPOPMIN K I', 'ZPOPMAX K I',
    },
  },
  zranges = {
    fill = { 'ZADD K Z F', 'ZADD K Z M Z F', 'ZADD lex 0 M', 'ZADD lex 0 F' },
    probe = {
      'ZRANGE K I I', 'ZRANGE K I I Q', 'ZRANGE K I I BYLEX', 'ZRANGE K R R BYSCORE',
      'ZRANGE K R R BYSCORE Q', 'ZRANGE K R R BYSCORE Q LIMIT I I', 'ZRANGE K R R Q Q',
      'ZRANGE K R R LIMIT I I',
      'ZREVRANGE K I I', 'ZREVRANGE K I I Q', 'ZRANGEBYSCORE K R R', 'ZRANGEBYSCORE K R R Q',
      'ZRANGEBYSCORE K R R LIMIT I I', 'ZREVRANGEBYSCORE K R R',
      'ZREVRANGEBYSCORE K R R LIMIT I I', 'ZCOUNT K R R', 'ZREMRANGEBYSCORE K R R',
      'ZREMRANGEBYRANK K I I', 'ZADD K Z F',
      'ZADD lex -0 M', 'ZREM lex M', 'ZRANGEBYLEX lex B B', 'ZRANGEBYLEX lex B B LIMIT I I',
      'ZRANGEBYLEX lex B B Q', 'ZREVRANGEBYLEX lex B B', 'ZRANGE lex B B BYLEX Q',
      'ZLEXCOUNT lex B B', 'ZREMRANGEBYLEX lex B B',
    },
  },
}

local OTHERS = { 'SET K V', 'HSET K F V', 'RPUSH K V', 'ZADD K Z F', 'SADD K N', 'XADD K H F V' }

-- How a command is sent: by itself or by a script, in each of which its reply takes another way.
local WAYS = {
  false, 'return redis.call(unpack(ARGV))', 'return redis.pcall(unpack(ARGV))',
  'local r = redis.pcall(unpack(ARGV)) return { type(r), r }',
}

---The same choices under every Lua: the minimal standard generator of Park and Miller.
---@param seed integer
---@return fun(list: table): any
function grammar.generator(seed)
  local state = seed * 7919 % 2147483647 + 1
  local function pick(list)
    state = state * 16807 % 2147483647
    return list[state % #list + 1]
  end
  pick(WAYS)
  return pick
end

local ONE_IN_FOUR, ONE_IN_EIGHT = { true, false, false, false },
  { 'less', 'more', false, false, false, false, false, false, false, false, false, false, false,
    false, false, false }

-- A duration that no other command of the sequence has, "G" in the grammar: the server's clock goes
-- on between two commands and the mock's stands still, so deadlines of one duration would compare
-- otherwise.
grammar.APART_MS = 200

local function duration_ms(i)
  return ('%d'):format(18000 + grammar.APART_MS * (i * 67 % 211))
end

-- Without their count these choose a member at random, which the mock does not.
local CHOOSES = { SRANDMEMBER = true, SPOP = true }

local function random_command(pick, lines, i)
  local argv = {}
  for word in pick(lines):gmatch('%S+') do
    word = WORDS[word] and pick(WORDS[word]) or word
    argv[#argv + 1] = word == 'G' and duration_ms(i) or word
  end
  local mistake = pick(ONE_IN_EIGHT)
  if mistake == 'less' and #argv > 1 and not CHOOSES[argv[1]] then
    table.remove(argv)
  elseif mistake == 'more' then
    argv[#argv + 1] = pick(WORDS.V)
  end
  local way = pick(WAYS)
  return way and { 'EVAL', way, '0', unpack(argv) } or argv
end

local function of_group(group)
  return function(pick, i)
    local lines = i <= FILLED and group.fill or group.probe
    if pick(ONE_IN_FOUR) then
      lines = i <= FILLED and OTHERS or KEYS
    end
    return random_command(pick, lines, i)
  end
end

-- What scripts return and join together, in which K is a key and L a nested one of these.
local EXPRESSIONS = {
  '1', '-1.9', '1.9', '0', '2^53', '-2^63', '2^63', '1e15', '0/0', 'true', 'false', 'nil', "''",
  "'a\\0b'", "'a\\r\\nb'", '{}', '{L, L}', '{L, nil, L}', '{nil, 1}', '{L, L, L}', "{ok = 'fine'}",
  "{err = 'CODE text'}", "{err = 'word'}", '{ok = 1, L}', '{err = 1, L}', '{[2] = 1}',
  "redis.status_reply('x y')", "redis.error_reply('word')", "redis.error_reply('-CODE text')",
  "redis.error_reply('CODE te\\nxt')", "redis.pcall('GET', 'K')", "redis.call('GET', 'K')",
  "redis.pcall('INCR', 'K')", "redis.call('TYPE', 'K')", "redis.call('TYPE', 'K').ok",
  "redis.call('EXISTS', 'K')", "redis.call('HGETALL', 'K')", "redis.call('SET', 'K', 9)",
  "redis.call('SET', 'K', 1e15)", "redis.call('SET', 'K', 2^52)", "redis.call('SET', 'K', -1.5)",
  "redis.call('SET', 'K', '5', 'PX', 60000)", "redis.call('PEXPIRE', 'K', 1e5)",
  "redis.call('HMGET', 'K', 'f', 'g')", "redis.call('LRANGE', 'K', 0, -1)",
  "redis.call('ZRANGE', 'K', 0, -1, 'WITHSCORES')", "redis.call('ZSCORE', 'K', 'f')",
  "redis.call('NOSUCH', 'K')", "redis.call('GET')", "redis.call('MULTI')", 'redis.call()',
  "redis.call('SET', 'K', true)", "redis.call('SET', 'K', {})", "redis.sha1hex('x')",
  '#KEYS', 'KEYS[1]', 'ARGV[1]', 'ARGV[9]', 'tonumber(ARGV[1])', 'type(L)', 'not L', 'undefined',
  "cjson.encode({1, 'x', true})", "cjson.decode('[1, null, \"x\"]')", "cjson.decode('{')",
  "error('boom')", "error({err = 'CODE thrown'})", "pcall(redis.call, 'NOSUCH')",
  "select(2, pcall(error, 'inner'))", "select(2, pcall(redis.call, 'INCR', 'K')).err",
  "tostring(12)", "('%d'):format(7)", "#'abc'", "string.rep('x', 3)", "table.concat({1, 2}, ',')",
  'unpack({L, L})', "tonumber('0x10')", "tonumber('x')", "math.floor(-1.5)", "bit.band(7, 3)",
}

local function expression(pick, depth)
  return (pick(EXPRESSIONS):gsub('%f[%w]L%f[%W]', function()
    return depth < 3 and expression(pick, depth + 1) or '3'
  end):gsub("'K'", function()
    return "'" .. pick(WORDS.K) .. "'"
  end))
end

local STATEMENTS = {
  'return E', 'return (E)', 'return {E, E}', 'local a, b = E, E return {type(a), b}',
  "redis.call('SET', 'a', '1') return (E)", 'return {pcall(function() return E end)}',
  'x = E', 'if E then return 1 else return 2 end', '#!lua\nreturn (E)',
  "#!lua flags=no-writes\nreturn (E)",
}

local function random_script(pick, i)
  if i <= FILLED or pick(ONE_IN_FOUR) then
    return random_command(pick, OTHERS, i)
  end
  local source = pick(STATEMENTS):gsub('%f[%w]E%f[%W]', function()
    return expression(pick, 1)
  end)
  return { pick({ 'EVAL', 'EVAL', 'EVAL', 'EVAL_RO' }), source, '1', pick(WORDS.K), pick(WORDS.N) }
end

-- The shipped scripts, on three names with three owners.
local NAMES, OWNERS = { 'a', 'b', 'c' }, { 'lk-x:1', 'lk-y:1', 'z' }
local SMALL = { '0', '1', '2', '3' }

local GOOD = {
  integer = function(pick, argument, _, i)
    if argument.type == 'ms' then
      return argument.min == 0 and pick(ONE_IN_FOUR) and '0' or duration_ms(i)
    elseif argument.type == 'seq' then
      return ('%d'):format(pick({ i, i, i, math.max(i - 1, 1), math.max(i - 40, 1) }))
    end
    local number = math.min(math.max(tonumber(pick(SMALL)), argument.min), argument.max)
    return pick({ ('%.0f'):format(number), ('%.0f'):format(number), ('%.0f'):format(argument.max) })
  end,
  choice = function(pick, argument)
    return pick(argument.values)
  end,
  command = function(pick, _, h)
    return pick(h.dynamic)
  end,
  channel = function(pick)
    return pick(NAMES)
  end,
  writer = function(pick)
    return pick(OWNERS) .. ':write'
  end,
  text = function(pick, argument)
    local text = pick(OWNERS)
    return argument.min > #text and pick(NAMES):rep(argument.min) or text:sub(1, argument.max)
  end,
}
GOOD.reader = GOOD.text

local BAD = { '', 'x', '-1', '1.5', '99999999999999999999', 'mode', (' '):rep(2000) }

local function arguments(pick, h, i)
  local args, by_name = {}, {}
  for _, argument in ipairs(h.argv) do
    for _ = 1, argument.many and tonumber(pick({ '1', '2', '3' })) or 1 do
      args[#args + 1] = GOOD[argument.kind](pick, argument, h, i)
    end
    by_name[argument.name] = args[#args]
  end
  local mistake = #args > 0 and pick(ONE_IN_EIGHT)
  if mistake == 'less' then
    table.remove(args)
  elseif mistake == 'more' then
    args[pick({ 1, #args })] = pick(BAD)
  end
  return args, by_name
end

local function keys_of(pick, h, by_name)
  local name, keys = pick(NAMES), {}
  for i, key in ipairs(h.keys) do
    keys[i] = key.form.kind == 'slot' and ('{%s}:any'):format(name)
      or names.form(key.form, name, by_name)
  end
  for _ = 1, #h.keys > 0 and pick(ONE_IN_EIGHT) == 'less' and 1 or 0 do
    table.remove(keys)
  end
  return keys
end

-- What stands in a script's keys before it, right or wrong: as the type in its header says.
local CONTENT = {
  string = { 'SET k o', 'SET k n', 'SET k n PX d', 'SET k o PX d', 'SET k -1' },
  hash = { 'HSET k o n', 'HSET k o n o n', 'HSET k mode write w n', 'HSET k mode read o n o n',
    'HSET k mode other', 'PEXPIRE k d' },
  list = { 'RPUSH k o', 'RPUSH k o o', 'LPUSH k o' },
  zset = { 'ZADD k t o', 'ZADD k t o n o', 'ZADD k n o', 'ZADD k p o' },
  stream = { 'SET k n' },
  set = { 'SET k n' },
}
CONTENT.any = CONTENT.string

local LETTERS = {
  o = OWNERS, n = { '1', '2', '3', '0', 'x' }, w = { 'lk-x:1:write', 'z:write' },
}

-- "t" is a time ahead, "p" one that is past.
local function random_content(pick, key, name, i)
  local span_ms = duration_ms(i)
  local fixed = { k = name, d = span_ms, t = '@+' .. span_ms, p = '@-' .. span_ms }
  local argv = {}
  for word in pick(pick(ONE_IN_EIGHT) and CONTENT[pick({ 'hash', 'zset', 'list' })]
    or CONTENT[key.type]):gmatch('%S+') do
    argv[#argv + 1] = fixed[word] or LETTERS[word] and pick(LETTERS[word]) or word
  end
  return argv
end

local scripts

local function shipped()
  scripts = scripts or assert(catalog.read('scripts'))
  return scripts
end

local function random_call(pick, from, i)
  local script = pick(from)
  local args, by_name = arguments(pick, script.header, i)
  local keys = keys_of(pick, script.header, by_name)
  if #keys > 0 and pick(ONE_IN_FOUR) then
    local place = pick({ 1, #keys })
    return random_content(pick, script.header.keys[place], keys[place], i)
  elseif pick(ONE_IN_EIGHT) then
    return { 'DEL', pick(NAMES) }
  end
  local argv = { 'EVALSHA', script.sha1, tostring(#keys) }
  for _, list in ipairs({ keys, args }) do
    for _, value in ipairs(list) do
      argv[#argv + 1] = value
    end
  end
  return argv
end

local function any_script()
  return function(pick, i)
    return random_call(pick, shipped(), i)
  end
end

-- A family's scripts on the same names: what one leaves, another finds.
local function one_family(pick)
  local family, members = pick(shipped()).name:match('^[^/]+'), {}
  for _, script in ipairs(shipped()) do
    if script.name:match('^[^/]+') == family then
      members[#members + 1] = script
    end
  end
  return function(_, i)
    return random_call(pick, members, i)
  end
end

local function always(make)
  return function()
    return make
  end
end

-- Half of the seeds are for commands and values, half for scripts.
local KINDS = {
  { 'strings', always(of_group(GROUPS.strings)) }, { 'any script', any_script },
  { 'hashes', always(of_group(GROUPS.hashes)) }, { 'one family', one_family },
  { 'lists', always(of_group(GROUPS.lists)) }, { 'any script', any_script },
  { 'zsets', always(of_group(GROUPS.zsets)) }, { 'one family', one_family },
  { 'zranges', always(of_group(GROUPS.zranges)) }, { 'one family', one_family },
  { 'values', always(random_script) }, { 'one family', one_family },
  { 'sets', always(of_group(GROUPS.sets)) }, { 'any script', any_script },
  { 'streams', always(of_group(GROUPS.streams)) }, { 'any script', any_script },
}

---@param seed integer
---@return string[][] commands
---@return string kind
function grammar.sequence(seed)
  local pick, commands = grammar.generator(seed), {}
  local kind, maker = unpack(KINDS[seed % #KINDS + 1])
  local make = maker(pick)
  for i = 1, grammar.LENGTH do
    commands[i] = make(pick, i)
  end
  return commands, kind
end

---The sources that EVALSHA finds.
---@return string[]
function grammar.sources()
  local sources = {}
  for i, script in ipairs(shipped()) do
    sources[i] = script.source
  end
  return sources
end

return grammar
