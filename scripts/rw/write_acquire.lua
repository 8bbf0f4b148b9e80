#!lua
--[[ latchkey-script
name:     rw/write_acquire
version:  1.0.0
summary:  Take a lock for writing, or raise the hold count of the writer that has it.
keys:
  - rwlock   hash    rw  {name}                     mode; owner -> hold count; outlasts every hold
  - waiters  zset    rw  prefix:latchkey_rw_wait    private  writer -> end of its heartbeat
  - theirs   string  rw  prefix:latchkey_rw_theirs  private  what Redisson has of the hash
  - whole    any     r   prefix:latchkey_rw_whole   absent   never there: no call on half a slot
derived:
  - level    string  r   suffix:*:rwlock_timeout:*  a reader's lease; Redisson: one a level
argv:
  - lease    ms      50..86400000  how long the hold lives unless it is renewed
  - owner    writer  7..256        lk-<client uuid>:<serial>:write, new for every fresh hold
  - hold     count   1..1000000    the owner's hold count after this call; 1 takes a free lock
  - reader   reader  0..256        the read hold of the same caller, or empty
returns:
  - {1, hold}     the owner holds the lock with this count, for at least the lease
  - {0, wait_ms}  others hold it; the last lease ends then, -1: there is none, look again later
  - {-1}          hold is above 1 but the owner holds nothing: it was lost; nothing was taken
  - {-2}          the caller reads: it would wait for itself for ever; release the read hold first
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIRE; nothing was written
repeat:   hold
cost:     20 + 2 per level, at most 2020
cluster:  one slot
uses:     integer, reader, writer, prefix, theirs, longest_read, outlast
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

-->>> fragment writer
-- Is `text` the name of a write hold, at most max bytes long?
local function is_writer(text, max)
  return #text <= max and string.find(text, '.:write$')
end
--<<< fragment writer

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
local rwlock = KEYS[1]
local waiters = KEYS[2]
local theirs = KEYS[3]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local reader = ARGV[4]

-- check
if #KEYS ~= 4 or #ARGV ~= 4 then
  return redis.error_reply('LKARG rw/write_acquire takes 4 keys and 4 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if not is_writer(owner, 256) then
  return redis.error_reply('LKARG owner must have 7 to 256 bytes and end in :write')
end
if not is_integer(hold, 1, 1000000) then
  return redis.error_reply('LKARG hold must be an integer from 1 to 1000000')
end
if reader ~= '' and not is_reader(reader, 256) then
  return redis.error_reply('LKARG reader must be no write hold nor mode, and have 0 to 256 bytes')
end
-- Where the server refuses PEXPIRE, it keeps what HSET has written, for ever.
if not redis.acl_check_cmd('PEXPIRE', rwlock, lease) then
  return redis.error_reply('NOPERM the user may not run PEXPIRE on the lock')
end

-- Held by the caller: the count is set, not added to, so that this call may run twice. GT: a
-- re-entry neither cuts the lease that the outer hold counts on nor adds to it.
local found = redis.call('HMGET', rwlock, 'mode', owner, reader)
local is_waiting = redis.call('ZSCORE', waiters, owner)
if found[1] == 'write' and found[2] then
  redis.call('HSET', rwlock, owner, hold)
  redis.call('PEXPIRE', rwlock, lease, 'GT')
  return {1, tonumber(hold)}
end
if hold ~= '1' then
  return {-1}
end

-- Held by readers: ours as long as their levels are there, Redisson's as long as they have the
-- hash. It may outlast both; what is left of it then goes.
local prefix = prefix_of(rwlock)
local left_ms = redis.call('PTTL', rwlock)
if found[1] == 'read' then
  local level = prefix .. reader .. ':rwlock_timeout:1'
  if found[3] and redis.call('EXISTS', level) == 1 then
    return {-2}
  end
  left_ms = longest_read(rwlock, prefix, theirs_left(rwlock, theirs, prefix, 2000))
end
if left_ms ~= -2 then
  return {0, left_ms}
end

redis.call('DEL', rwlock, theirs)
redis.call('HSET', rwlock, 'mode', 'write', owner, 1)
redis.call('PEXPIRE', rwlock, lease)
if is_waiting then
  redis.call('ZREM', waiters, owner)
  outlast(waiters)
end
return {1, 1}
