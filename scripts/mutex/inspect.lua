#!lua flags=no-writes
--[[ latchkey-script
name:     mutex/inspect
version:  1.0.0
summary:  Who holds a string lock, and for how long.
keys:
  - lock   string  r   {name}         the owner; its TTL is the lease
returns:
  - {0}                   nobody holds it
  - {1, lease_ms, owner}  what is left of the lease (-1: endless), and whose it is
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     at most 2 commands
cluster:  one slot
]]

-- bind
local lock = KEYS[1]

-- check
if #KEYS ~= 1 or #ARGV ~= 0 then
  return redis.error_reply('LKARG mutex/inspect takes 1 key and no arguments')
end

local holder = redis.call('GET', lock)
if not holder then
  return {0}
end
return {1, redis.call('PTTL', lock), holder}
