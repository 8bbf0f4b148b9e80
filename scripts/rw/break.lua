#!lua flags=allow-oom
--[[ latchkey-script
name:     rw/break
version:  1.0.0
summary:  Take a lock away from the reader or writer that inspect showed, and wake waiters.
keys:
  - rwlock   hash     rw  {name}                     mode; owner -> hold count; outlasts every hold
  - theirs   string   rw  prefix:latchkey_rw_theirs  private  what Redisson has of the hash
  - whole    any      r   prefix:latchkey_rw_whole   absent   never there: no call on half a slot
derived:
  - level    string   rw  suffix:*:rwlock_timeout:*  a reader's lease; Redisson: one a level
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
cost:     17 + 2 per level, at most 3017
cluster:  one slot
uses:     tell, prefix, theirs, longest_read, end_in
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
local owner = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]

-- check
if #KEYS ~= 3 or #ARGV ~= 3 then
  return redis.error_reply('LKARG rw/break takes 3 keys and 3 arguments')
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
local theirs_ms = theirs_left(rwlock, theirs, prefix, 2000)
local longest_ms = longest_read(rwlock, prefix, theirs_ms)
if longest_ms == -2 then
  redis.call('DEL', rwlock, theirs)
else
  redis.call('HSET', rwlock, 'mode', 'read')
end
if longest_ms >= 0 then
  end_in(rwlock, theirs, longest_ms, theirs_ms)
end
if is_writer then
  tell(channel, publish, '1')
elseif longest_ms == -2 then
  tell(channel, publish, '0')
end
return {1}
