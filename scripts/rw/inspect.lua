#!lua flags=no-writes
--[[ latchkey-script
name:     rw/inspect
version:  1.0.0
summary:  Who reads or writes, how often, and for how long; how many writers wait.
keys:
  - rwlock   hash    r  {name}                   mode; owner -> hold count; outlasts every hold
  - waiters  zset    r  prefix:latchkey_rw_wait  private  writer -> end of its heartbeat
derived:
  - level    string  r  suffix:*:rwlock_timeout:*  one for each level of each reader; its lease
returns:
  - {0, waiting}                                      nobody holds it; so many writers wait for it
  - {1, lease_ms, fields, waiting, mode, holders...}  owner, count, left_ms of up to 100 fields
  - {-1}                                              another kind of lock: a hash without a mode
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     6 + 10 per field, at most 996
cluster:  one slot
uses:     prefix
]]

-->>> fragment prefix
-- What the names of a lock's level keys start with, as Redisson forms them: in the lock's slot.
local function prefix_of(lock)
  return (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}') .. ':'
end
--<<< fragment prefix

-- bind
local rwlock = KEYS[1]
local waiters = KEYS[2]

-- check
if #KEYS ~= 2 or #ARGV ~= 0 then
  return redis.error_reply('LKARG rw/inspect takes 2 keys and no arguments')
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

-- A writer's lease is the lock's; a reader's that of the longest of its first ten levels, -2 if the
-- hold is over and only its field is left.
local lease_ms = redis.call('PTTL', rwlock)
local reply = {1, lease_ms, fields, waiting, mode}
local holds = fields <= 100 and redis.call('HGETALL', rwlock) or {}
for i = 1, #holds, 2 do
  local owner, count = holds[i], holds[i + 1]
  local is_writer = string.find(owner, ':write$')
  local level = prefix_of(rwlock) .. owner .. ':rwlock_timeout:'
  local levels = is_writer and 0 or math.min(tonumber(count) or 0, 10)
  local left_ms = is_writer and lease_ms or -2
  for n = 1, levels do
    left_ms = math.max(left_ms, redis.call('PTTL', level .. n))
  end
  if owner ~= 'mode' then
    reply[#reply + 1] = owner
    reply[#reply + 1] = count
    reply[#reply + 1] = left_ms
  end
end
return reply
