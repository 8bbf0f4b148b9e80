#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/read_release
version:  1.0.0
summary:  Give back levels of a reader; wake writers when nobody reads any more.
keys:
  - rwlock   hash     rw  {name}                     mode; owner -> hold count; outlasts every hold
derived:
  - level    string   rw  suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
argv:
  - lease    ms       50..86400000             kept at least this long when levels remain
  - owner    reader   1..256                   the name that acquired the lock
  - hold     count    0..1000                  the owner's hold count after this call
  - channel  channel  prefix:redisson_rwlock   told when the lock becomes free
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1, hold}   given back; hold levels remain (0: the owner reads no more)
  - {-1}        the owner holds nothing: lost, or released by an earlier copy of this call
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  0
repeat:   hold
cost:     9 + 2 per level, at most 3009
cluster:  one slot
uses:     integer, reader, tell, prefix, longest_read
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
  return redis.error_reply('LKARG rw/read_release takes 1 key and 5 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if not is_reader(owner, 256) then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and be no write hold, nor mode')
end
if not is_integer(hold, 0, 1000) then
  return redis.error_reply('LKARG hold must be an integer from 0 to 1000')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

local prefix = prefix_of(rwlock)
local level = prefix .. owner .. ':rwlock_timeout:'
local found = redis.call('HMGET', rwlock, 'mode', owner)
if not found[1] or not found[2] then
  return {-1}
end

-- A hold without its first level is over: what is left of it goes, and the caller learns of it.
local count = math.min(tonumber(found[2]) or 1, 1000)
local is_live = redis.call('EXISTS', level .. '1') == 1
local kept = is_live and math.min(count, tonumber(hold)) or 0
for n = 1, kept do
  redis.call('PEXPIRE', level .. n, lease, 'GT')
end
for n = kept + 1, count do
  redis.call('DEL', level .. n)
end
if kept > 0 then
  redis.call('HSET', rwlock, owner, kept)
  redis.call('PEXPIRE', rwlock, lease, 'GT')
  return {1, kept}
end
redis.call('HDEL', rwlock, owner)

-- Beside a writer, the TTL is the writer's lease and stays. Among readers it ends with the last of
-- them, whom Redisson's writers know by that alone. PEXPIRE of 0, for one who has less than 1 ms
-- left, would delete the lock.
if found[1] == 'read' then
  local longest_ms = longest_read(rwlock, prefix)
  if longest_ms >= 0 then
    redis.call('PEXPIRE', rwlock, math.max(longest_ms, 1))
  elseif longest_ms == -2 then
    redis.call('DEL', rwlock)
    tell(channel, publish, '0')
  end
end
if is_live then
  return {1, 0}
end
return {-1}
