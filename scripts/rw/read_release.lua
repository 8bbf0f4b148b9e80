#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/read_release
version:  1.0.0
summary:  Give back levels of a reader; wake writers when nobody reads any more.
keys:
  - rwlock   hash     rw  {name}                     mode; reader -> 1; outlasts every hold
  - theirs   string   rw  prefix:latchkey_rw_theirs  private  what Redisson has of the hash
  - whole    any      r   prefix:latchkey_rw_whole   absent   never there: no call on half a slot
derived:
  - level    string   rw  suffix:*:rwlock_timeout:*  a reader's hold count, and its lease
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
cost:     17 + 2 per level, at most 2017
cluster:  one slot
uses:     integer, reader, tell, prefix, theirs, longest_read, end_in
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

-->>> fragment theirs
-- How long levels of Redisson's readers last, in ms; -2: none is left, nil: only latchkey reads.
-- Beyond so many levels, or 2000 fields and levels: as long as the hash.
local function their_levels_left(rwlock, prefix, most)
  most = math.min(most, 2000 - redis.call('HLEN', rwlock))
  local fields, longest_ms, looks = most >= 0 and redis.call('HGETALL', rwlock) or {}, nil, 0
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' and not string.find(fields[i], '^lk%-') then
      local count = math.max(tonumber(fields[i + 1]) or 0, 0)
      longest_ms, looks = longest_ms or -2, looks + count
      for n = 1, looks <= most and count or 0 do
        local level = prefix .. fields[i] .. ':rwlock_timeout:' .. n
        longest_ms = math.max(longest_ms, redis.call('PTTL', level))
      end
    end
  end
  if looks <= most then
    return longest_ms
  end
  return redis.call('PTTL', rwlock)
end

-- How long Redisson's readers have the lock, likewise; -1: for ever. That is as long as its hash
-- lives, as its writers believe; where latchkey has set its end since, as long as it did before.
local function theirs_left(rwlock, theirs, prefix, most)
  local levels_ms = their_levels_left(rwlock, prefix, most)
  if not levels_ms then
    return nil
  end
  local left_ms, ends = redis.call('PTTL', rwlock), redis.call('PEXPIRETIME', rwlock)
  local our_end, their_end = string.match(redis.call('GET', theirs) or '', '^(%d+) (%d+)$')
  if tonumber(our_end) == ends then
    local rest_ms = their_end - (ends - left_ms)
    left_ms = rest_ms >= 0 and rest_ms or -2
  end
  return math.max(levels_ms, left_ms)
end
--<<< fragment theirs

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

-->>> fragment end_in
-- Let the hash end then. What Redisson's readers have of it is kept beside it, so that one that
-- died is not there for as long as ours come and go. Until that is over, no renewal of theirs, by
-- 30 s at most, sets the end that is set here: another end says that they were there. PEXPIRE of
-- 0, for a reader of ours with less than 1 ms, would delete the lock.
local function end_in(rwlock, theirs, left_ms, theirs_ms)
  local is_longer = theirs_ms and left_ms > theirs_ms
  left_ms = is_longer and math.max(left_ms, theirs_ms + 30001) or left_ms
  redis.call('PEXPIRE', rwlock, string.format('%.0f', math.max(left_ms, 1)))
  if is_longer then
    local ends = redis.call('PEXPIRETIME', rwlock)
    local their_end = ends - redis.call('PTTL', rwlock) + theirs_ms
    local text = string.format('%.0f', ends)
    redis.call('SET', theirs, text .. string.format(' %.0f', their_end), 'PXAT', text)
  end
end
--<<< fragment end_in

-- bind
local rwlock = KEYS[1]
local theirs = KEYS[2]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local channel = ARGV[4]
local publish = ARGV[5]

-- check
if #KEYS ~= 3 or #ARGV ~= 5 then
  return redis.error_reply('LKARG rw/read_release takes 3 keys and 5 arguments')
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
local level = prefix .. owner .. ':rwlock_timeout:1'
local found = redis.call('HMGET', rwlock, 'mode', owner)
if not found[1] or not found[2] then
  return {-1}
end

-- A hold without its level is over: what is left of it goes, and the caller learns of it.
local count = redis.call('GET', level)
local kept = count and math.min(tonumber(count) or 1, tonumber(hold)) or 0
local theirs_ms = theirs_left(rwlock, theirs, prefix, 2000)
if kept > 0 then
  redis.call('SET', level, kept, 'PX', math.max(lease, redis.call('PTTL', level)))
  local left_ms = redis.call('PTTL', rwlock)
  if left_ms ~= -1 and left_ms < tonumber(lease) then
    end_in(rwlock, theirs, tonumber(lease), theirs_ms)
  end
  return {1, kept}
end
redis.call('DEL', level)
redis.call('HDEL', rwlock, owner)

-- Beside a writer, the TTL stays: it is the writer's lease, or a longer one of this hold. Among
-- readers it ends with the last of them, whom Redisson's writers know by that alone.
if found[1] == 'read' then
  local longest_ms = longest_read(rwlock, prefix, theirs_ms)
  if longest_ms >= 0 then
    end_in(rwlock, theirs, longest_ms, theirs_ms)
  elseif longest_ms == -2 then
    redis.call('DEL', rwlock, theirs)
    tell(channel, publish, '0')
  end
end
if count then
  return {1, 0}
end
return {-1}
