#!lua flags=allow-oom
--[[ latchkey-script
name:     mutex/release
version:  1.0.0
summary:  Give back a string lock, if the caller still holds it, and wake a waiter.
keys:
  - lock     string   rw  {name}                 the owner; its TTL is the lease
argv:
  - owner    owner    1..256                     the name that acquired the lock
  - channel  channel  prefix:latchkey_mutex      told when the lock becomes free; latchkey's own
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1}   released; the lock is free now
  - {-1}  the owner holds nothing: lost, or released by an earlier copy of this call
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
  return redis.error_reply('LKARG mutex/release takes 1 key and 3 arguments')
end
if #owner < 1 or #owner > 256 then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

if redis.call('GET', lock) ~= owner then
  return {-1}
end

-- The message goes out after the delete: whoever it wakes finds the lock free.
redis.call('DEL', lock)
tell(channel, publish, '0')
return {1}
