#!lua flags=allow-oom
--[[ latchkey-script
name:     permit/renew
version:  1.0.0
summary:  Extend the leases of permits, as far as the caller still has them.
keys:
  - leases  zset  rw  suffix:timeout  shared  id -> end of its lease, server ms
argv:
  - lease  ms  50..86400000  the leases end no sooner than this from now
  - ids*   id  16..16        1..100  the permits
returns:
  - {1}             all are renewed
  - {-1, place...}  the permits at these places (1: the first) are lost; the others are renewed
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
repeat:   id
cost:     1 + 2 per id, at most 201
cluster:  one slot
uses:     integer, ids
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

-- bind
local leases = KEYS[1]
local lease = ARGV[1]
local ids = ARGV -- from the second

-- check
if #KEYS ~= 1 or #ARGV < 2 or #ARGV > 101 then
  return redis.error_reply('LKARG permit/renew takes 1 key and 2 to 101 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if not are_ids(ids, 2) then
  return redis.error_reply('LKARG ids must have 16 bytes each')
end

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = now_ms + lease

local lost = {-1}
for i = 2, #ids do
  local ends_at = redis.call('ZSCORE', leases, ids[i])
  if ends_at and tonumber(ends_at) > now_ms then
    redis.call('ZADD', leases, 'GT', ends, ids[i])
  else
    lost[#lost + 1] = i - 1
  end
end
if #lost > 1 then
  return lost
end
return {1}
