#!lua flags=no-writes
--[[ latchkey-script
name:     countdown/inspect
version:  1.0.0
summary:  How many are left to count on a latch.
keys:
  - latch  string  r  {name}  shared  what is left to count; no key at 0
returns:
  - {0}                it is open: counted down, removed, ended or never set
  - {1, ttl_ms, left}  it opens by itself then (-1: never), and what is left to count
  - {-1}               the key holds no integer: this is no latch
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
local latch = KEYS[1]

-- check
if #KEYS ~= 1 or #ARGV ~= 0 then
  return redis.error_reply('LKARG countdown/inspect takes 1 key and no arguments')
end

local left = count_of(redis.call('GET', latch))
if not left then
  return {-1}
end
if left <= 0 then
  return {0}
end
return {1, redis.call('PTTL', latch), left}
