#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/write_release
version:  1.0.0
summary:  Give back one level of a writer; whoever reads at the end goes on, and all waiters wake.
keys:
  - rwlock   hash     rw  {name}                     mode; owner -> hold count; outlasts every hold
  - whole    any      r   prefix:latchkey_rw_whole   absent   never there: no call on half a slot
derived:
  - level    string   r   suffix:*:rwlock_timeout:*  a reader's lease; Redisson: one a level
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
cost:     9 + 2 per level, at most 2009
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
-- How long the lock is read, in ms; -2: not any more. Ours read as long as their level is there,
-- Redisson's for theirs_ms. Beyond 2000 fields the hash has to do. Fields of those who read no
-- more go, at most 1000 at a time; where nobody does, the caller removes all.
local function longest_read(rwlock, prefix, theirs_ms)
  if redis.call('HLEN', rwlock) > 2000 or theirs_ms == -1 then
    return redis.call('PTTL', rwlock)
  end
  local longest_ms, over = theirs_ms or -2, {}
  for _, owner in ipairs(redis.call('HKEYS', rwlock)) do
    local left_ms = theirs_ms
    if string.find(owner, '^lk%-') then
      left_ms = redis.call('PTTL', prefix .. owner .. ':rwlock_timeout:1')
      longest_ms = math.max(longest_ms, left_ms)
    end
    if left_ms == -2 and owner ~= 'mode' then
      over[#over + 1] = owner
    end
  end
  if longest_ms ~= -2 and #over > 0 then
    redis.call('HDEL', rwlock, unpack(over, 1, math.min(#over, 1000)))
  end
  return longest_ms
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
if #KEYS ~= 2 or #ARGV ~= 5 then
  return redis.error_reply('LKARG rw/write_release takes 2 keys and 5 arguments')
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
-- No reader of Redisson is there beside a writer of latchkey.
redis.call('HDEL', rwlock, owner)
local longest_ms = longest_read(rwlock, prefix_of(rwlock))
if longest_ms == -2 then
  redis.call('DEL', rwlock)
else
  redis.call('HSET', rwlock, 'mode', 'read')
end
-- A reader may have less than 1 ms left: a PEXPIRE of 0 would delete the lock.
if longest_ms >= 0 then
  redis.call('PEXPIRE', rwlock, string.format('%.0f', math.max(longest_ms, 1)))
end
tell(channel, publish, '1')
return {1, 0}
