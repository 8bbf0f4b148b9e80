#!lua
--[[ latchkey-script
name:     rw/read_acquire
version:  1.0.0
summary:  Take a lock for reading, or raise the hold count of the reader that has it.
keys:
  - rwlock   hash    rw  {name}                     mode; reader -> 1; outlasts every hold
  - waiters  zset    r   prefix:latchkey_rw_wait    private  writer -> end of its heartbeat
  - theirs   string  rw  prefix:latchkey_rw_theirs  private  what Redisson has of the hash
  - whole    any     r   prefix:latchkey_rw_whole   absent   never there: no call on half a slot
derived:
  - level    string  rw  suffix:*:rwlock_timeout:*  a reader's hold count, and its lease
argv:
  - lease    ms      50..86400000  how long the hold lives unless it is renewed
  - owner    reader  1..256        lk-<client uuid>:<serial>, new for every fresh hold
  - hold     count   1..1000       the owner's hold count after this call; 1 takes a lock
  - writer   writer  0..256        the caller's own write hold, beside which it may read, or empty
returns:
  - {1, hold, foreign}  held for at least the lease; foreign 1: Redisson may cut it to its watchdog
  - {0, wait_ms}        a writer has it or waits for it; look again then, -1: later
  - {-1}                hold is above 1 but the owner holds nothing: it was lost; nothing was taken
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIRE; nothing was written
repeat:   hold
cost:     18 + 1 per level, at most 118
cluster:  one slot
uses:     integer, reader, writer, prefix, theirs, end_in
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
local waiters = KEYS[2]
local theirs = KEYS[3]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local writer = ARGV[4]

-- check
if #KEYS ~= 4 or #ARGV ~= 4 then
  return redis.error_reply('LKARG rw/read_acquire takes 4 keys and 4 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if not is_reader(owner, 256) then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and be no write hold, nor mode')
end
if not is_integer(hold, 1, 1000) then
  return redis.error_reply('LKARG hold must be an integer from 1 to 1000')
end
if writer ~= '' and not is_writer(writer, 256) then
  return redis.error_reply('LKARG writer must have 7 to 256 bytes and end in :write, or be empty')
end
-- Where the server refuses PEXPIRE, it keeps what HSET has written, for ever.
if not redis.acl_check_cmd('PEXPIRE', rwlock, lease) then
  return redis.error_reply('NOPERM the user may not run PEXPIRE on the lock')
end

-- A hold is there as long as its level is, which has its count: in the hash that is always 1, since
-- one reader with more keeps Redisson 3.44 to 3.52 from renewing all readers.
local prefix = prefix_of(rwlock)
local level = prefix .. owner .. ':rwlock_timeout:1'
local left_ms = redis.call('PTTL', rwlock)
local found = redis.call('HMGET', rwlock, 'mode', owner, writer)
local mode = found[1]
local held = tonumber(found[2] and redis.call('GET', level) or 0) or 1
if held == 0 and hold ~= '1' then
  return {-1}
end

-- Who holds nothing waits for writers, also for those that wait themselves: readers that overlap
-- would keep them out for ever. A hash without a mode is another kind of lock: it is held.
local is_own = mode == 'write' and found[3]
if held == 0 and not is_own then
  if mode ~= 'read' and left_ms ~= -2 then
    return {0, left_ms}
  end
  local waiting_ms = redis.call('PTTL', waiters)
  if waiting_ms ~= -2 then
    return {0, waiting_ms}
  end
end

-- The count never sinks here: a late copy of an older call must not hide a level taken since. The
-- level comes first, which ends by itself: where the server refuses it, since no key names it or a
-- user may not write it, there is no hash that nothing ends.
local count = math.min(math.max(held, tonumber(hold)), 1000)
local theirs_ms = theirs_left(rwlock, theirs, prefix, 100)
redis.call('SET', level, count, 'PX', math.max(lease, redis.call('PTTL', level)))
redis.call('HSET', rwlock, 'mode', mode or 'read', owner, 1)

-- Last, so that it ends no sooner than the level.
if left_ms ~= -1 and left_ms < tonumber(lease) then
  end_in(rwlock, theirs, tonumber(lease), theirs_ms)
end
return {1, count, theirs_ms and 1 or 0}
