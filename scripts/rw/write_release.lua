#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/write_release
version:  1.0.0
summary:  Give back one level of a writer; whoever reads at the end goes on, and all waiters wake.
keys:
  - rwlock   hash     rw  {name}                     mode; owner -> hold count; outlasts every hold
derived:
  - level    string   r   suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
argv:
  - lease    ms       50..86400000             kept at least this long when levels remain
  - owner    writer   7..256                   the name that acquired the lock
  - hold     count    0..1000000               the owner's hold count after this call
  - channel  channel  prefix:redisson_rwlock   told when the lock becomes free, or free to read
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1, hold}   given back; hold levels remain (0: the owner writes no more)
  - {-1}        the owner holds nothing: lost, or released by an earlier copy of this call
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  1
repeat:   hold
cost:     8 + 2 per level, at most 2008
cluster:  one slot
uses:     integer, writer, tell, prefix, longest_read
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
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local channel = ARGV[4]
local publish = ARGV[5]

-- check
if #KEYS ~= 1 or #ARGV ~= 5 then
  return redis.error_reply('LKARG rw/write_release takes 1 key and 5 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if not is_writer(owner, 256) then
  return redis.error_reply('LKARG owner must have 7 to 256 bytes and end in :write')
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

local found = redis.call('HMGET', rwlock, 'mode', owner)
if found[1] ~= 'write' or not found[2] then
  return {-1}
end

-- Levels remain: the count is set, not lowered by one, so that this call may run twice.
if hold ~= '0' then
  redis.call('HSET', rwlock, owner, hold)
  redis.call('PEXPIRE', rwlock, lease, 'GT')
  return {1, tonumber(hold)}
end

-- The last level. If its caller reads, too, that goes on among other readers, who have to be told.
redis.call('HDEL', rwlock, owner)
local longest_ms = longest_read(rwlock, prefix_of(rwlock))
if longest_ms == -2 then
  redis.call('DEL', rwlock)
else
  redis.call('HSET', rwlock, 'mode', 'read')
end
-- A reader may have less than 1 ms left: a PEXPIRE of 0 would delete the lock.
if longest_ms >= 0 then
  redis.call('PEXPIRE', rwlock, math.max(longest_ms, 1))
end
tell(channel, publish, '1')
return {1, 0}
