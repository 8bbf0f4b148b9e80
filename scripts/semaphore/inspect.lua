#!lua flags=no-writes
--[[ latchkey-script
name:     semaphore/inspect
version:  1.0.0
summary:  How many permits of a semaphore are free.
keys:
  - permits  string  r  {name}  shared  how many are free
returns:
  - {0}                it is not set; none is free
  - {1, ttl_ms, free}  what is left of its life (-1: endless), and how many are free
  - {-1}               the key holds no integer: this is no semaphore
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     at most 2 commands
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

-- check
if #KEYS ~= 1 or #ARGV ~= 0 then
  return redis.error_reply('LKARG semaphore/inspect takes 1 key and no arguments')
end

local there = redis.call('GET', permits)
local free = count_of(there)
if not free then
  return {-1}
end
if not there then
  return {0}
end
return {1, redis.call('PTTL', permits), free}
