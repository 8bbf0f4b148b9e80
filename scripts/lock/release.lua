#!lua flags=allow-oom
--[[ latchkey-script
name:     lock/release
version:  1.0.0
summary:  Give back one level of a re-entrant lock; wake a waiter when the lock becomes free.
keys:
  - lock     hash     rw  {name}                     owner -> hold count; its TTL is the lease
argv:
  - lease    ms       50..86400000                   kept at least this long when levels remain
  - owner    owner    1..256                         the name that acquired the lock
  - hold     count    0..1000000                     the owner's hold count after this call
  - channel  channel  prefix:redisson_lock__channel  told when the lock becomes free
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1, hold}   given back; hold levels remain (0: the lock is free now)
  - {-1}        the owner holds nothing: lost, or released by an earlier copy of this call
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  0
repeat:   hold
cost:     at most 3 commands
cluster:  one slot
uses:     integer, tell
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

-->>> fragment tell
-- Send `message` to everyone who listens on `channel`. Sharded and plain channels are two
-- different commands of the server, and a message sent with one never reaches the other.
local function tell(channel, publish, message)
  if publish == 'SPUBLISH' then
    redis.call('SPUBLISH', channel, message)
  else
    redis.call('PUBLISH', channel, message)
  end
end
--<<< fragment tell

-- bind
local lock = KEYS[1]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local channel = ARGV[4]
local publish = ARGV[5]

-- check
if #KEYS ~= 1 or #ARGV ~= 5 then
  return redis.error_reply('LKARG lock/release takes 1 key and 5 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if not is_integer(hold, 0, 1000000) then
  return redis.error_reply('LKARG hold must be an integer from 0 to 1000000')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

if not redis.call('HGET', lock, owner) then
  return {-1}
end

-- Levels remain: the count is set, not lowered by one, so that this call may run twice.
if hold ~= '0' then
  redis.call('HSET', lock, owner, hold)
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1, tonumber(hold)}
end

-- The last level. The message goes out after the delete: whoever it wakes finds the lock free.
redis.call('DEL', lock)
tell(channel, publish, '0')
return {1, 0}
