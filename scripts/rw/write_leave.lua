#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/write_leave
version:  1.0.0
summary:  A writer waits no more; wake readers when no other does.
keys:
  - waiters  zset     rw  prefix:latchkey_rw_wait  private  writer -> end of its heartbeat
argv:
  - owner    writer   7..256                       the name that waited
  - channel  channel  prefix:redisson_rwlock       told when no writer waits any more
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1}   readers wait for it no more
  - {0}   they did not: it has the lock, left before, or its heartbeat is over
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  1
repeat:   hold
cost:     at most 6 commands
cluster:  one slot
uses:     writer, tell, outlast
]]

-->>> fragment writer
-- Is `text` the name of a write hold, at most max bytes long?
local function is_writer(text, max)
  return #text <= max and string.find(text, '.:write$')
end
--<<< fragment writer

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
local waiters = KEYS[1]
local owner = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]

-- check
if #KEYS ~= 1 or #ARGV ~= 3 then
  return redis.error_reply('LKARG rw/write_leave takes 1 key and 3 arguments')
end
if not is_writer(owner, 256) then
  return redis.error_reply('LKARG owner must have 7 to 256 bytes and end in :write')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

if redis.call('ZREM', waiters, owner) == 0 then
  return {0}
end
outlast(waiters)
if redis.call('EXISTS', waiters) == 0 then
  tell(channel, publish, '1')
end
return {1}
