-- SPDX-License-Identifier: Apache-2.0
-- What connections say in random sequences: K is a key, V a value, C a channel, P a pattern.
local digest = require('latchkey.digest')
local inline = require('latchkey.mock.inline')

local grammar = {}

local SCRIPT, WRITER = 'return KEYS', "return redis.call('SET', KEYS[1], ARGV[1])"
local LIBRARY = '#!lua name=lib\nredis.register_function("put", function(keys, args)\n'
  .. ' return redis.call("SET", keys[1], args[1] or "x") end)'
local LOOKS = '#!lua name=looks\nredis.register_function{function_name="look", '
  .. 'description="reads", flags={"no-writes"}, callback=function(keys)\n'
  .. ' return redis.call("INCR", keys[1]) end}'

local WORDS = {
  K = { 'a', 'b', 'c' },
  V = { '1', '2', 'x', '' },
  C = { 'one', 'two' },
  -- A channel matches one of them at most: in which order a server tells of several is its own.
  P = { 'on*', 't[a-z]?', '[^o]*e' },
  SHA = { digest.sha1(SCRIPT), digest.sha1(WRITER), ('0'):rep(40) },
  SOURCE = { SCRIPT, WRITER, 'return {1, false, "x"}', 'return redis.call("NOSUCH")', 'x y',
    'return redis.call("PUBLISH", "one", "by script")', 'return {err="CODE of mine"}',
    'return redis.call("HGETALL", "a")', 'return redis.pcall("INCR", "a")' },
  CODE = { LIBRARY, LOOKS, 'x', '#!lua name=lib\nreturn 1' },
  FUNCTION = { 'put', 'look', 'PUT', 'none' },
  LIBRARY = { 'lib', 'looks', 'none' },
}

local KINDS = {
  data = { 'SET K V', 'GET K', 'INCR K', 'DEL K', 'DEL K K', 'HSET K f V', 'HGETALL K',
    'LPUSH K V V', 'LPOP K', 'LPOP K 2', 'RPOP K 1', 'ZADD K 1.5 V 2 w', 'ZADD K INCR 1 V',
    'ZSCORE K V', 'ZMSCORE K V w', 'ZRANGE K 0 -1 WITHSCORES', 'ZRANGE K 0 -1', 'ZPOPMIN K',
    'ZPOPMAX K 2', 'ZINCRBY K 1.5 V', 'ZREVRANGEBYSCORE K 9 0 WITHSCORES', 'EXISTS K K', 'GET',
    'SET K', 'NOSUCH V', 'DBSIZE', 'FLUSHALL', 'PEXPIRE K 100000', 'PEXPIRE K -1', 'TYPE K',
    'SADD K 1 2', 'SADD K 2 3', 'SMEMBERS K', 'SUNION K K', 'SINTER K K', 'SDIFF K K', 'SPOP K 9',
    'SINTERCARD 2 K K', 'HRANDFIELD K 9 WITHVALUES' },
  channels = { 'SUBSCRIBE C', 'SUBSCRIBE C C', 'PSUBSCRIBE P', 'SSUBSCRIBE C', 'UNSUBSCRIBE C',
    'UNSUBSCRIBE C C', 'PUNSUBSCRIBE P', 'SUNSUBSCRIBE C', 'PUBLISH C V', 'PUBLISH C V',
    'PUBLISH C V', 'SPUBLISH C V', 'SPUBLISH C V', 'PUBSUB NUMSUB C C', 'PUBSUB SHARDNUMSUB C',
    'PUBSUB NUMPAT', 'PUBSUB CHANNELS C', 'PUBSUB SHARDCHANNELS C', 'PUBSUB CHANNELS C C',
    'PUBSUB NUMSUB', 'PUBSUB', 'SUBSCRIBE', 'PING', 'PING V', 'PING V V' },
  transactions = { 'MULTI', 'MULTI', 'EXEC', 'EXEC', 'DISCARD', 'WATCH K', 'WATCH K K', 'UNWATCH',
    'SET K V', 'INCR K', 'LPUSH K V', 'LPOP K 3', 'NOSUCH', 'GET', 'EVAL SOURCE 1 K V',
    'ZADD K 1 a', 'ZADD K XX 2 b', 'ZINCRBY K 0 a', 'ZPOPMIN K 0', 'GETEX K PERSIST',
    'SETBIT K 7 1', 'SADD K 1 2', 'SMEMBERS K', 'SPOP K 9' },
  session = { 'HELLO', 'HELLO 2', 'HELLO 3', 'HELLO 4', 'HELLO x', 'HELLO 3 SETNAME me',
    'HELLO 2 AUTH default V', 'HELLO 2 NOSUCH', 'HELLO 2 AUTH default', 'AUTH x', 'AUTH default V',
    'AUTH who V', 'AUTH a b c', 'RESET', 'QUIT', 'CLIENT SETNAME me', 'CLIENT SETNAME "a b"',
    'CLIENT SETNAME ""', 'CLIENT GETNAME', 'CLIENT NO-EVICT on', 'CLIENT NO-EVICT V',
    'CLIENT REPLY ON', 'CLIENT REPLY V', 'CLIENT', 'CLIENT NOSUCH',
    'CLIENT KILL ID 0', 'CLIENT KILL V', 'CLIENT KILL TYPE pubsub', 'CLIENT KILL TYPE V',
    'CLIENT KILL TYPE pubsub SKIPME no', 'CLIENT KILL ID 9 USER V', 'CLIENT UNBLOCK 99999',
    'CLIENT UNBLOCK x', 'CLIENT LIST TYPE V', 'CLIENT LIST ID 99999 x', 'SELECT 0', 'SELECT 1',
    'SELECT V', 'PING', 'ECHO V', 'ECHO' },
  server = { 'ROLE', 'WAIT 0 0', 'WAIT 0 10', 'WAIT V 0', 'WAIT 0 -1', 'CONFIG GET save',
    'CONFIG GET appendonly', 'CONFIG GET nosuch', 'CONFIG GET databases', 'CONFIG NOSUCH',
    'CONFIG RESETSTAT', 'CONFIG GET', 'COMMAND GETKEYS GET K', 'COMMAND GETKEYS EVAL SOURCE 1 K',
    'COMMAND GETKEYS SINTERCARD 2 K K LIMIT 1',
    'COMMAND GETKEYS NOSUCH a', 'COMMAND GETKEYS PING a', 'COMMAND GETKEYS PING',
    'COMMAND INFO nosuch', 'SCAN x', 'SCAN 0 MATCH K', 'SCAN 0 COUNT 0', 'SCAN 0 COUNT',
    'SCAN 0 NOSUCH V', 'KEYS K', 'HRANDFIELD K', 'HRANDFIELD K 2',
    'HRANDFIELD K -2', 'HRANDFIELD K V',
    'HRANDFIELD K 0' },
  scripts = { 'SCRIPT LOAD SOURCE', 'SCRIPT EXISTS SHA SHA', 'SCRIPT FLUSH', 'SCRIPT KILL',
    'SCRIPT', 'EVALSHA SHA 1 K V', 'EVALSHA SHA 0', 'EVALSHA_RO SHA 1 K V', 'EVAL SOURCE 1 K V',
    'EVAL SOURCE 2 K', 'EVAL SOURCE V K', 'EVAL_RO SOURCE 1 K V', 'FUNCTION LOAD CODE',
    'FUNCTION LOAD REPLACE CODE', 'FUNCTION LOAD V CODE', 'FUNCTION LIST LIBRARYNAME LIBRARY',
    'FUNCTION LIST LIBRARYNAME LIBRARY WITHCODE', 'FUNCTION LIST V', 'FUNCTION STATS',
    'FUNCTION DELETE LIBRARY', 'FUNCTION FLUSH', 'FUNCTION FLUSH V', 'FUNCTION KILL',
    'FCALL FUNCTION 1 K V', 'FCALL FUNCTION 0', 'FCALL FUNCTION V', 'FCALL_RO FUNCTION 1 K V' },
  bytes = { '*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n', '\r\n', 'PING\r\n', '*0\r\nPING\r\n',
    '*-1\r\nECHO a\r\n', '*x\r\n', '*1\r\n+PING\r\n', '*1\r\n$x\r\n', '*1\r\n$-1\r\n',
    '*9999999999\r\n', '*1\r\n$536870913\r\n', 'ECHO "a\\x41\\n b" \r\n', "ECHO 'it''s'\r\n",
    "ECHO 'it\\'s'\r\n", 'ECHO "open\r\n', '*2\r\n$4\r\nECHO\r\n$0\r\n\r\n',
    'SET a 1\r\nGET a\r\nNOSUCH\r\nGET a\r\n', '*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n',
    'MULTI\r\nGET a\r\nEXEC\r\n', 'QUIT\r\nPING\r\n', 'ECHO a"b"c\r\n', '*01\r\n$4\r\nPING\r\n',
    'HELLO 3\nHGETALL a\n' },
}

local NAMES = { 'data', 'channels', 'channels', 'transactions', 'session', 'server', 'scripts',
  'bytes' }

---The words as clients send them.
function grammar.encode(words)
  local parts = { ('*%d\r\n'):format(#words) }
  for i, word in ipairs(words) do
    parts[i + 1] = ('$%d\r\n%s\r\n'):format(#word, word)
  end
  return table.concat(parts)
end

---@param pick fun(list: table): any
---@param connections integer
---@return { place: integer, kind: string, bytes: string }
function grammar.step(pick, connections)
  local places = {}
  for i = 1, connections do
    places[i] = i
  end
  local kind, place = pick(NAMES), pick(places)
  local line = pick(KINDS[kind])
  if kind == 'bytes' then
    return { place = place, kind = kind, bytes = line }
  end
  local words = inline.split(line)
  for i, word in ipairs(words) do
    words[i] = WORDS[word] and pick(WORDS[word]) or word
  end
  return { place = place, kind = kind, bytes = grammar.encode(words) }
end

return grammar
