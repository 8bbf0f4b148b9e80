#!lua flags=no-writes
--[[ latchkey-script
name:     lock/inspect
version:  1.0.0
summary:  Who holds a re-entrant lock, how often, and for how long.
keys:
  - lock   hash   r   {name}          owner -> hold count; its TTL is the lease
returns:
  - {0}                                    nobody holds it
  - {1, lease_ms, fields, owner, hold...}  the lease's rest (-1: endless); no pairs above 100 fields
errors:
  - LKARG   a key or argument is missing or unknown
repeat:   pure
cost:     at most 3 commands
cluster:  one slot
]]

-- bind
local lock = KEYS[1]

-- check
if #KEYS ~= 1 or #ARGV ~= 0 then
  return redis.error_reply('LKARG lock/inspect takes 1 key and no arguments')
end

local fields = redis.call('HLEN', lock)
if fields == 0 then
  return {0}
end

-- A lock has one field. A hash with very many is something else; its contents stay where they are.
local reply = {1, redis.call('PTTL', lock), fields}
if fields <= 100 then
  local pairs_found = redis.call('HGETALL', lock)
  for i = 1, #pairs_found do
    reply[3 + i] = pairs_found[i]
  end
end
return reply
