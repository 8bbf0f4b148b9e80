#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/read_renew
version:  1.0.0
summary:  Extend the lease of a reader, on all its levels, if it still holds the lock.
keys:
  - rwlock  hash    rw  {name}                     mode; owner -> hold count; outlasts every hold
derived:
  - level   string  rw  suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
argv:
  - lease   ms      50..86400000  the hold ends no sooner than this from now
  - owner   reader  1..256        the name that acquired the lock
returns:
  - {1, foreign}   renewed; foreign 1: Redisson readers share it and may cut it to their watchdog
  - {-1, left_ms}  not held for reading; -2: by nobody, else what the lock has left (-1: endless)
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
repeat:   hold
cost:     5 + 1 per level, at most 1005
cluster:  one slot
uses:     integer, reader, prefix
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

-->>> fragment reader
-- Is `text` the name of a read hold? Fields of the hash are also `mode` and, by their end, writers.
local function is_reader(text, max)
  return #text >= 1 and #text <= max and text ~= 'mode' and not string.find(text, ':write$')
end
--<<< fragment reader

-->>> fragment prefix
-- What the names of a lock's level keys start with, as Redisson forms them: in the lock's slot.
local function prefix_of(lock)
  return (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}') .. ':'
end
--<<< fragment prefix

-- Do others than latchkey read, too? Above 100 fields they may.
local function is_shared(rwlock)
  if redis.call('HLEN', rwlock) > 100 then
    return 1
  end
  for _, field in ipairs(redis.call('HKEYS', rwlock)) do
    if field ~= 'mode' and not string.find(field, '^lk%-') then
      return 1
    end
  end
  return 0
end

-- bind
local rwlock = KEYS[1]
local lease = ARGV[1]
local owner = ARGV[2]

-- check
if #KEYS ~= 1 or #ARGV ~= 2 then
  return redis.error_reply('LKARG rw/read_renew takes 1 key and 2 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if not is_reader(owner, 256) then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and be no write hold, nor mode')
end

-- A hold is there as long as its first level is; its field alone may be left of one that is over.
local level = prefix_of(rwlock) .. owner .. ':rwlock_timeout:'
local count = redis.call('HGET', rwlock, owner)
if not count or redis.call('EXISTS', level .. '1') == 0 then
  return {-1, redis.call('PTTL', rwlock)}
end

-- The caller's levels alone: those of a reader that died must end. The hash comes last, so that it
-- ends no sooner than they do.
for n = 1, math.min(tonumber(count) or 1, 1000) do
  redis.call('PEXPIRE', level .. n, lease, 'GT')
end
redis.call('PEXPIRE', rwlock, lease, 'GT')
return {1, is_shared(rwlock)}
