-- SPDX-License-Identifier: Apache-2.0
-- The commands a script may call: on which type of key, reading or writing, and where its keys are.
-- `keys` are as latchkey.redis.key_places has them.
-- What blocks, changes the server, or answers in no fixed order is missing on purpose.
local commands = {}

local function add(type_of_key, access, keys, list)
  for name in list:gmatch('%S+') do
    commands[name] = { type = type_of_key, access = access, keys = keys }
  end
end

add('string', 'r', 'first', 'GET GETRANGE STRLEN GETBIT BITCOUNT BITPOS')
add('string', 'r', 'all', 'MGET')
add('string', 'w', 'first', [[APPEND DECR DECRBY GETDEL GETEX GETSET INCR INCRBY PSETEX SET SETBIT
  SETEX SETNX SETRANGE]])
add('hash', 'r', 'first', 'HEXISTS HGET HGETALL HKEYS HLEN HMGET HSTRLEN HVALS')
add('hash', 'w', 'first', 'HDEL HINCRBY HMSET HSET HSETNX')
add('list', 'r', 'first', 'LINDEX LLEN LPOS LRANGE')
add('list', 'w', 'first', 'LINSERT LPOP LPUSH LPUSHX LREM LSET LTRIM RPOP RPUSH RPUSHX')
add('list', 'w', 'two', 'LMOVE RPOPLPUSH')
add('set', 'r', 'first', 'SCARD SISMEMBER SMEMBERS SMISMEMBER')
add('set', 'w', 'first', 'SADD SREM')
add('set', 'w', 'two', 'SMOVE')
add('zset', 'r', 'first', [[ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK
  ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE]])
add('zset', 'w', 'first', [[ZADD ZINCRBY ZPOPMAX ZPOPMIN ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK
  ZREMRANGEBYSCORE]])
add('stream', 'r', 'first', 'XLEN XRANGE XREVRANGE')
add('stream', 'w', 'first', 'XADD XDEL XTRIM')
add('any', 'r', 'first', 'DUMP EXPIRETIME PEXPIRETIME PTTL TTL TYPE')
add('any', 'r', 'all', 'EXISTS TOUCH')
add('any', 'w', 'first', 'EXPIRE EXPIREAT PERSIST PEXPIRE PEXPIREAT')
add('any', 'w', 'all', 'DEL UNLINK')
add('any', 'w', 'copied', 'COPY')
add('any', 'w', 'two', 'RENAME RENAMENX')
add(nil, 'r', 'none', 'TIME')
add(nil, 'publish', 'none', 'PUBLISH SPUBLISH')

return commands
