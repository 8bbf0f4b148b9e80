#!lua flags=no-writes
--[[ latchkey-script
name:     rw/inspect
version:  1.0.0
summary:  Who reads or writes, how often, and for how long; how many writers wait.
keys:
  - rwlock   hash    r  {name}                     mode; owner -> hold count; outlasts every hold
  - waiters  zset    r  prefix:latchkey_rw_wait    private  writer -> end of its heartbeat
  - theirs   string  r  prefix:latchkey_rw_theirs  private  what Redisson has of the hash
  - whole    any     r  prefix:latchkey_rw_whole   absent   never there: no call on half a slot
derived:
  - level    string  r  suffix:*:rwlock_timeout:*  a reader's lease; Redisson: one a level
returns:
  - {0, waiting}                                      nobody holds it; so many writers wait for it
  - {1, lease_ms, fields, waiting, mode, holders...}  owner, count, left_ms of up to 100 fields
  - {-1}                                              another kind of lock: a hash without a mode
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     12 + 2 per level, at most 1212
cluster:  one slot
uses:     prefix, theirs
]]

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

-- bind
local rwlock = KEYS[1]
local waiters = KEYS[2]
local theirs = KEYS[3]

-- check
if #KEYS ~= 4 or #ARGV ~= 0 then
  return redis.error_reply('LKARG rw/inspect takes 4 keys and no arguments')
end

local fields = redis.call('HLEN', rwlock)
local mode = redis.call('HGET', rwlock, 'mode')
if fields > 0 and not mode then
  return {-1}
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local waiting = redis.call('ZCOUNT', waiters, now_ms, '+inf')
if fields == 0 then
  return {0, waiting}
end

-- A writer's lease is the lock's. A reader of ours has one level: its count, and its lease, -2 if
-- the hold is over and only the field is left. Those of Redisson have the lock together.
local lease_ms = redis.call('PTTL', rwlock)
local reply = {1, lease_ms, fields, waiting, mode}
local holds = fields <= 100 and redis.call('HGETALL', rwlock) or {}
local prefix = prefix_of(rwlock)
local theirs_ms = theirs_left(rwlock, theirs, prefix, 1000)
for i = 1, #holds, 2 do
  local owner, count = holds[i], holds[i + 1]
  local level = prefix .. owner .. ':rwlock_timeout:1'
  local left_ms = theirs_ms
  if string.find(owner, ':write$') then
    left_ms = lease_ms
  elseif string.find(owner, '^lk%-') then
    count, left_ms = redis.call('GET', level) or count, redis.call('PTTL', level)
  end
  if owner ~= 'mode' then
    reply[#reply + 1] = owner
    reply[#reply + 1] = count
    reply[#reply + 1] = left_ms
  end
end
return reply
