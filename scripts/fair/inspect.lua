#!lua flags=no-writes
--[[ latchkey-script
name:     fair/inspect
version:  1.0.0
summary:  Who holds a fair lock, how often, for how long, and who waits for it.
keys:
  - lock      hash  r  {name}                        owner -> hold count; its TTL is the lease
  - queue     list  r  prefix:redisson_lock_queue    shared   waiters in order of arrival
  - timeouts  zset  r  prefix:redisson_lock_timeout  shared   waiter -> when it may be dropped
  - fair      hash  r  prefix:latchkey_fair          private  waiter -> deadline and terms
returns:
  - {0, waiting, waiter...}                  free; the first 100 waiters, and how long each stays
  - {1, lease_ms, fields, waiting, pair...}  held: fields and counts, 100 at most, then as above
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     6 + 2 per waiter, at most 206
cluster:  one slot
]]

-- bind
local lock = KEYS[1]
local queue = KEYS[2]
local timeouts = KEYS[3]
local fair = KEYS[4]

-- check
if #KEYS ~= 4 or #ARGV ~= 0 then
  return redis.error_reply('LKARG fair/inspect takes 4 keys and no arguments')
end

local reply = {0, redis.call('LLEN', queue)}
local fields = redis.call('HLEN', lock)
if fields > 0 then
  reply = {1, redis.call('PTTL', lock), fields, reply[2]}
end

-- A lock has one field. A hash with very many is something else; its contents stay where they are.
if fields <= 100 then
  for _, part in ipairs(redis.call('HGETALL', lock)) do
    reply[#reply + 1] = part
  end
end

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, 99)) do
  local score = tonumber(redis.call('ZSCORE', timeouts, waiter) or 0)
  local record = redis.call('HGET', fair, waiter) or ''
  local deadline_ms = tonumber(string.match(record, '^(%d+) %d+ %d+'))
  reply[#reply + 1] = waiter
  reply[#reply + 1] = math.max(0, (score > 0 and deadline_ms or score) - now_ms)
end
return reply
