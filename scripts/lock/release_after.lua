#!lua flags=allow-oom
--[[ latchkey-script
name:     lock/release_after
version:  1.0.0
summary:  Give back a re-entrant lock that stays taken for a while, and tell waiters for how long.
keys:
  - lock       hash     rw  {name}                     owner -> hold count; its TTL is the lease
argv:
  - rest       ms       50..86400000                   the lock is free after this, and not before
  - owner      owner    1..256                         the name that acquired it, with all levels
  - new_owner  owner    1..256                         has it until then; nobody renews or releases
  - channel    channel  prefix:redisson_lock__channel  told that the lease that is left has changed
  - publish    verb     PUBLISH|SPUBLISH
returns:
  - {1}   given back, by this call or an earlier copy of it; the lock is free when the rest is over
  - {-1}  neither of them holds it: it was lost, or the rest is over; nothing was done
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  0
repeat:   hold
cost:     at most 5 commands
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
local rest = ARGV[1]
local owner = ARGV[2]
local new_owner = ARGV[3]
local channel = ARGV[4]
local publish = ARGV[5]

-- check
if #KEYS ~= 1 or #ARGV ~= 5 then
  return redis.error_reply('LKARG lock/release_after takes 1 key and 5 arguments')
end
if not is_integer(rest, 50, 86400000) then
  return redis.error_reply('LKARG rest must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if #new_owner < 1 or #new_owner > 256 or new_owner == 'mode' then
  return redis.error_reply('LKARG new_owner must have 1 to 256 bytes and not be mode')
end
if owner == new_owner then
  return redis.error_reply('LKARG new_owner must be another name than owner')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

-- Under another name a renewal that is still on its way cannot make the rest longer. A lock that
-- ends with its lease tells nobody: whoever waits looks now, and again when the rest is over.
if redis.call('HEXISTS', lock, owner) == 1 then
  redis.call('HSET', lock, new_owner, 1)
  redis.call('HDEL', lock, owner)
  redis.call('PEXPIRE', lock, rest)
  tell(channel, publish, '0')
  return {1}
end
if redis.call('HEXISTS', lock, new_owner) == 1 then
  return {1}
end
return {-1}
