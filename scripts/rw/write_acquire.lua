#!lua
--[[ latchkey-script
name:     rw/write_acquire
version:  1.0.0
summary:  Take a lock for writing, or raise the hold count of the writer that has it.
keys:
  - rwlock   hash    rw  {name}                   mode; owner -> hold count; outlasts every hold
  - waiters  zset    rw  prefix:latchkey_rw_wait  private  writer -> end of its heartbeat
derived:
  - level    string  r   suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
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
repeat:   hold
cost:     12 + 2 per level, at most 2012
cluster:  one slot
uses:     integer, reader, writer, prefix, longest_read, outlast
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

-->>> fragment outlast
-- Waiting writers are there as long as their key is: until the last heartbeat of all ends.
local function outlast(waiters)
  local last = redis.call('ZRANGE', waiters, 0, 0, 'REV', 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', waiters, last[2])
  end
end
--<<< fragment outlast

-- bind
local rwlock = KEYS[1]
local waiters = KEYS[2]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local reader = ARGV[4]

-- check
if #KEYS ~= 2 or #ARGV ~= 4 then
  return redis.error_reply('LKARG rw/write_acquire takes 2 keys and 4 arguments')
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

-- Held by readers: as long as one of them is there. The hash may outlast them.
local prefix = prefix_of(rwlock)
local left_ms = redis.call('PTTL', rwlock)
if found[1] == 'read' then
  local level = prefix .. reader .. ':rwlock_timeout:1'
  if found[3] and redis.call('EXISTS', level) == 1 then
    return {-2}
  end
  left_ms = longest_read(rwlock, prefix)
end
if left_ms ~= -2 then
  return {0, left_ms}
end

redis.call('HSET', rwlock, 'mode', 'write', owner, 1)
redis.call('PEXPIRE', rwlock, lease)
if is_waiting then
  redis.call('ZREM', waiters, owner)
  outlast(waiters)
end
return {1, 1}
