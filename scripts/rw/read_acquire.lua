#!lua
--[[ latchkey-script
name:     rw/read_acquire
version:  1.0.0
summary:  Take a lock for reading, or raise the hold count of the reader that has it.
keys:
  - rwlock   hash  rw  {name}                   mode; owner -> hold count; outlasts every hold
  - waiters  zset  r   prefix:latchkey_rw_wait  private  writer -> end of its heartbeat
derived:
  - level    string  rw  suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
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
repeat:   hold
cost:     8 + 2 per level, at most 2008
cluster:  one slot
uses:     integer, reader, writer, prefix
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

-- Do others than latchkey read, too? Above 100 fields they may.
local function is_shared(rwlock)
  if redis.call('HLEN', rwlock) > 100 then
    return 1
  end
  for _, field in ipairs(redis.call('HKEYS', rwlock)) do
    if field ~= 'mode' and not string.find(field, '^lk%-') then
      return 1
    end
  end
  return 0
end

-- bind
local rwlock = KEYS[1]
local waiters = KEYS[2]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local writer = ARGV[4]

-- check
if #KEYS ~= 2 or #ARGV ~= 4 then
  return redis.error_reply('LKARG rw/read_acquire takes 2 keys and 4 arguments')
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

-- A hold is there as long as its first level is. The field of one that is over may still be there;
-- its count must not go on.
local level = prefix_of(rwlock) .. owner .. ':rwlock_timeout:'
local left_ms = redis.call('PTTL', rwlock)
local found = redis.call('HMGET', rwlock, 'mode', owner, writer)
local mode = found[1]
local held = found[2] and redis.call('EXISTS', level .. '1') == 1 and tonumber(found[2]) or 0
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

-- The count never sinks here: a late copy of an older call must not hide a level taken since.
local count = math.min(math.max(held, tonumber(hold)), 1000)
redis.call('HSET', rwlock, 'mode', mode or 'read', owner, count)
for n = 1, count do
  redis.call('SET', level .. n, 1, 'PX', lease, 'NX')
  redis.call('PEXPIRE', level .. n, lease, 'GT')
end

-- Last, so that it ends no sooner than any level.
if left_ms == -2 then
  redis.call('PEXPIRE', rwlock, lease)
else
  redis.call('PEXPIRE', rwlock, lease, 'GT')
end
return {1, count, is_shared(rwlock)}
