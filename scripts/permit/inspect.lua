#!lua flags=no-writes
--[[ latchkey-script
name:     permit/inspect
version:  1.0.0
summary:  How many permits are free, who has the others, and for how long.
keys:
  - permits  string  r  {name}          shared  how many are free
  - leases   zset    r  suffix:timeout  shared  id -> end of its lease, server ms
returns:
  - {0}                                      no total is set
  - {1, ttl_ms, free, held, id, left_ms...}  the 100 that end first; -1: never, 0: ended just now
  - {-1}                                     the key holds no integer: this is no semaphore
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     at most 5 commands
cluster:  one slot
uses:     count
]]

-->>> fragment count
-- The number that a counter's text says: 0 if there is no text, nil if it is no plain integer of
-- at most 15 digits.
local function count_of(text)
  if not text then
    return 0
  end
  local digits = string.match(text, '^%-?([1-9]%d*)$') or string.match(text, '^0$')
  return digits and #digits <= 15 and tonumber(text) or nil
end
--<<< fragment count

-- bind
local permits = KEYS[1]
local leases = KEYS[2]

-- check
if #KEYS ~= 2 or #ARGV ~= 0 then
  return redis.error_reply('LKARG permit/inspect takes 2 keys and no arguments')
end

local there = redis.call('GET', permits)
local free = count_of(there)
if not free then
  return {-1}
end
local held = redis.call('ZCARD', leases)
if not there then
  return {0}
end

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local reply = {1, redis.call('PTTL', permits), free, held}
local found = redis.call('ZRANGE', leases, 0, 99, 'WITHSCORES')
for i = 1, #found, 2 do
  -- Redisson writes 922337203685477 for a lease that never ends.
  local left_ms = -1
  if found[i + 1] ~= '922337203685477' then
    left_ms = math.max(0, found[i + 1] - now_ms)
  end
  reply[#reply + 1] = found[i]
  reply[#reply + 1] = left_ms
end
return reply
