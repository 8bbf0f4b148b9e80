#!lua
--[[ latchkey-script
name:     rw/write_wait
version:  1.0.0
summary:  The heartbeat of a waiting writer: until it ends, nobody starts to read.
keys:
  - rwlock     hash    r   {name}                   mode; owner -> hold count
  - waiters    zset    rw  prefix:latchkey_rw_wait  private  writer -> end of its heartbeat
argv:
  - heartbeat  ms      1..60000                     it waits no more if the next is not here by then
  - owner      writer  7..256                       the name that acquire is called with
returns:
  - {1}   readers wait for the owner
  - {-1}  the owner has the lock by now; nothing was written
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIREAT; nothing was written
repeat:   hold
cost:     at most 9 commands
cluster:  one slot
uses:     integer, writer, outlast
]]

-->>> fragment integer
-- Is `text` a plain decimal integer from min to max? No sign, no leading zero, no exponent: the
-- text itself is handed on to Redis, which accepts nothing else. The sum makes a number of it.
local function is_integer(text, min, max)
  if text ~= '0' and not string.find(text or '', '^[1-9]%d*$') then
    return false
  end
  local number = text + 0
  return number >= min and number <= max
end
--<<< fragment integer

-->>> fragment writer
-- Is `text` the name of a write hold, at most max bytes long?
local function is_writer(text, max)
  return #text <= max and string.find(text, '.:write$')
end
--<<< fragment writer

-->>> fragment outlast
-- Waiting writers are there as long as their key is: until the last heartbeat of all ends. Scores
-- that are no moment, beyond 14 digits or with fractions, are of nobody who waits.
local function outlast(waiters)
  redis.call('ZREMRANGEBYSCORE', waiters, '99999999999999', '+inf')
  local last = redis.call('ZRANGE', waiters, 0, 0, 'REV', 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', waiters, string.format('%.0f', math.max(0, math.floor(last[2]))))
  end
end
--<<< fragment outlast

-- bind
local rwlock = KEYS[1]
local waiters = KEYS[2]
local heartbeat = ARGV[1]
local owner = ARGV[2]

-- check
if #KEYS ~= 2 or #ARGV ~= 2 then
  return redis.error_reply('LKARG rw/write_wait takes 2 keys and 2 arguments')
end
if not is_integer(heartbeat, 1, 60000) then
  return redis.error_reply('LKARG heartbeat must be an integer from 1 to 60000')
end
if not is_writer(owner, 256) then
  return redis.error_reply('LKARG owner must have 7 to 256 bytes and end in :write')
end
-- Where the server refuses PEXPIREAT, it keeps what ZADD has written: nobody would read any more.
if not redis.acl_check_cmd('PEXPIREAT', waiters, heartbeat) then
  return redis.error_reply('NOPERM the user may not run PEXPIREAT on waiters')
end

-- A late copy of this call must not make readers wait for one who has the lock.
if redis.call('HEXISTS', rwlock, owner) == 1 then
  return {-1}
end

-- Writers that died go, ten for one that comes: the set cannot grow by them.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local dead = redis.call('ZRANGE', waiters, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, 10)
if #dead > 0 then
  redis.call('ZREM', waiters, unpack(dead, 1, math.min(10, #dead)))
end
redis.call('ZREMRANGEBYSCORE', waiters, '99999999999999', '+inf')
redis.call('ZADD', waiters, 'GT', now_ms + heartbeat, owner)
outlast(waiters)
return {1}
