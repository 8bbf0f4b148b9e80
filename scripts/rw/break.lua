#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/break
version:  1.0.0
summary:  Take a lock away from the reader or writer that inspect showed, and wake waiters.
keys:
  - rwlock   hash     rw  {name}                     mode; owner -> hold count; outlasts every hold
derived:
  - level    string   rw  suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
argv:
  - owner    owner    1..256                   the holder to break, as inspect names it
  - channel  channel  prefix:redisson_rwlock   told when the lock becomes free, or free to read
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1}   broken, whatever its hold count was; other holds go on
  - {0}   nobody holds the lock
  - {-1}  others hold it by now; nothing was done
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  0 or 1
repeat:   hold
cost:     8 + 2 per level, at most 3008
cluster:  one slot
uses:     tell, prefix, longest_read
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

-->>> fragment prefix
-- What the names of a lock's level keys start with, as Redisson forms them: in the lock's slot.
local function prefix_of(lock)
  return (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}') .. ':'
end
--<<< fragment prefix

-->>> fragment longest_read
-- Drop the read holds that are over. The longest other goes on for so many ms; -2: there is none.
-- Of our levels the first lives longest, of Redisson's any. After 2000 looks the TTL has to do.
local function longest_read(rwlock, prefix)
  local longest_ms, looks = -2, redis.call('HLEN', rwlock)
  local fields = looks <= 2000 and redis.call('HGETALL', rwlock) or {}
  for i = 1, #fields, 2 do
    local key, left_ms = prefix .. fields[i] .. ':rwlock_timeout:', -2
    local count = tonumber(string.match(fields[i + 1], '^%d+$') or 0)
    local levels = string.find(fields[i], '^lk%-') and 1 or count
    looks = looks + levels
    for n = 1, looks <= 2000 and levels or 0 do
      left_ms = math.max(left_ms, redis.call('PTTL', key .. n))
    end
    longest_ms = math.max(longest_ms, left_ms)
    if levels > 0 and left_ms == -2 and looks <= 2000 then
      redis.call('HDEL', rwlock, fields[i])
    end
  end
  return looks <= 2000 and longest_ms or redis.call('PTTL', rwlock)
end
--<<< fragment longest_read

-- bind
local rwlock = KEYS[1]
local owner = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]

-- check
if #KEYS ~= 1 or #ARGV ~= 3 then
  return redis.error_reply('LKARG rw/break takes 1 key and 3 arguments')
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
local found = redis.call('HMGET', rwlock, 'mode', owner)
if not found[1] or not found[2] then
  if redis.call('EXISTS', rwlock) == 0 then
    return {0}
  end
  return {-1}
end

local prefix = prefix_of(rwlock)
local is_writer = string.find(owner, ':write$')
local levels = is_writer and 0 or math.min(tonumber(found[2]) or 1, 1000)
for n = 1, levels do
  redis.call('DEL', prefix .. owner .. ':rwlock_timeout:' .. n)
end
redis.call('HDEL', rwlock, owner)
if found[1] == 'write' and not is_writer then
  return {1}
end

-- Whoever reads goes on, also the caller whose write hold is broken here.
local longest_ms = longest_read(rwlock, prefix)
if longest_ms == -2 then
  redis.call('DEL', rwlock)
else
  redis.call('HSET', rwlock, 'mode', 'read')
end
-- A reader may have less than 1 ms left: a PEXPIRE of 0 would delete the lock.
if longest_ms >= 0 then
  redis.call('PEXPIRE', rwlock, math.max(longest_ms, 1))
end
if is_writer then
  tell(channel, publish, '1')
elseif longest_ms == -2 then
  tell(channel, publish, '0')
end
return {1}
