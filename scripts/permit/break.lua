#!lua flags=allow-oom
--[[ latchkey-script
name:     permit/break
version:  1.0.0
summary:  Take permits away from whoever has them, as inspect showed them.
keys:
  - permits  string  rw  {name}          shared  how many are free
  - leases   zset    rw  suffix:timeout  shared  id -> end of its lease, server ms
argv:
  - channel  channel  prefix:redisson_sc  told how many are free
  - publish  verb     PUBLISH|SPUBLISH
  - ids*     id       16..16              1..100  the permits
returns:
  - {1, count}  so many are free again
  - {0}         nobody has any of them
errors:
  - LKARG   an argument is wrong, or the key holds no integer; nothing was written
  - NOPERM  the user may not run INCRBY; nothing was written
message:  value
repeat:   id
cost:     3 + 1 per id, at most 103
cluster:  one slot
uses:     count, ids, tell
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

-->>> fragment ids
-- Are the arguments from this place on ids of permits, 16 bytes each?
local function are_ids(arguments, first)
  for i = first, #arguments do
    if #arguments[i] ~= 16 then
      return false
    end
  end
  return true
end
--<<< fragment ids

-->>> fragment tell
-- Send `message` to everyone who listens on `channel`. Sharded and plain channels are two
-- different commands of the server, and a message sent with one never reaches the other.
local function tell(channel, publish, message)
  if publish == 'SPUBLISH' then
    redis.call('SPUBLISH', channel, message)
  else
    redis.call('PUBLISH', channel, message)
  end
end
--<<< fragment tell

-- bind
local permits = KEYS[1]
local leases = KEYS[2]
local channel = ARGV[1]
local publish = ARGV[2]
local ids = ARGV -- from the third

-- check
if #KEYS ~= 2 or #ARGV < 3 or #ARGV > 102 then
  return redis.error_reply('LKARG permit/break takes 2 keys and 3 to 102 arguments')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end
if not are_ids(ids, 3) then
  return redis.error_reply('LKARG ids must have 16 bytes each')
end
-- Where the server refuses INCRBY, permits that ZREM has taken from a holder are nobody's.
if not redis.acl_check_cmd('INCRBY', permits, 1) then
  return redis.error_reply('NOPERM the user may not run INCRBY on permits')
end

local there = redis.call('GET', permits)
local free = count_of(there)
if not free then
  return redis.error_reply('LKARG permits must hold an integer')
end

-- Only these: an id is never used again, so a late copy of this call breaks nobody else.
local broken = 0
for i = 3, #ids do
  broken = broken + redis.call('ZREM', leases, ids[i])
end
if broken == 0 then
  return {0}
end

if there then
  free = redis.call('INCRBY', permits, broken)
  if free > 0 then
    tell(channel, publish, string.format('%.0f', free))
  end
end
return {1, broken}
