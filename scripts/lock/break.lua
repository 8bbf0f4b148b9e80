#!lua flags=allow-oom
--[[ latchkey-script
name:     lock/break
version:  1.0.0
summary:  Take a lock away from the owner that inspect showed, and wake a waiter.
keys:
  - lock     hash     rw  {name}                     owner -> hold count; its TTL is the lease
argv:
  - owner    owner    1..256                         the holder to break, as inspect names it
  - channel  channel  prefix:redisson_lock__channel  told when the lock becomes free
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1}   broken, whatever its hold count was
  - {0}   nobody holds the lock
  - {-1}  another owner holds it by now; nothing was done
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  0
repeat:   hold
cost:     at most 3 commands
cluster:  one slot
uses:     tell
]]

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
local owner = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]

-- check
if #KEYS ~= 1 or #ARGV ~= 3 then
  return redis.error_reply('LKARG lock/break takes 1 key and 3 arguments')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

-- Only the named owner: its name is never used again, so a late copy of this call breaks nobody.
if redis.call('HEXISTS', lock, owner) == 0 then
  if redis.call('EXISTS', lock) == 0 then
    return {0}
  end
  return {-1}
end

redis.call('DEL', lock)
tell(channel, publish, '0')
return {1}
