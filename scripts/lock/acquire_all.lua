#!lua
--[[ latchkey-script
name:     lock/acquire_all
version:  1.0.0
summary:  Take several re-entrant locks of one slot as one hold, all or none.
keys:
  - locks*  hash   rw  {name}  1..100  owner -> hold count; its TTL is the lease
argv:
  - lease   ms     50..86400000        how long the holds live unless they are renewed
  - owner   owner  1..256              lk-<client uuid>:<serial>, one for all, new for a fresh hold
  - hold    count  1..1000000          the hold count of each after this call; 1 takes free locks
returns:
  - {1, hold}            the owner holds all of them with this count, for at least the lease
  - {0, wait_ms, place}  others hold the lock at this place the longest: as in lock/acquire
  - {-1, place}          hold is above 1 but the one at this place was lost; nothing was taken
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIRE on them all; nothing was written
repeat:   hold
cost:     0 + 4 per lock, at most 400
cluster:  one slot
uses:     integer
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

-- Is one of the names there twice?
local function are_twice(names)
  local seen = {}
  for _, name in ipairs(names) do
    if seen[name] then
      return true
    end
    seen[name] = true
  end
  return false
end

-- bind
local locks = KEYS
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]

-- check
if #KEYS < 1 or #KEYS > 100 or #ARGV ~= 3 then
  return redis.error_reply('LKARG lock/acquire_all takes 1 to 100 keys and 3 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if not is_integer(hold, 1, 1000000) then
  return redis.error_reply('LKARG hold must be an integer from 1 to 1000000')
end
if are_twice(locks) then
  return redis.error_reply('LKARG locks must be different ones')
end
-- Where the server refuses PEXPIRE, it keeps what HSET has written, for ever.
for _, lock in ipairs(locks) do
  if not redis.acl_check_cmd('PEXPIRE', lock, lease) then
    return redis.error_reply('NOPERM the user may not run PEXPIRE on all locks')
  end
end

-- All are looked at before any is taken. Of several that others hold, the one to wait for is the
-- one that is held longest: before that, the call would be answered no again.
local is_free, longest_ms, wait_ms, busy = {}, -1, -1, nil
for place, lock in ipairs(locks) do
  local left_ms = redis.call('PTTL', lock)
  is_free[place] = left_ms == -2
  local is_held = not is_free[place] and redis.call('HGET', lock, owner)
  if not is_held and hold ~= '1' then
    return {-1, place}
  end
  local goes_on_ms = left_ms == -1 and math.huge or left_ms
  if not is_held and goes_on_ms > longest_ms then
    longest_ms, wait_ms, busy = goes_on_ms, left_ms, place
  end
end
if busy then
  return {0, wait_ms, busy}
end

-- As lock/acquire: the count is set, so that this call may run twice, and no lease is cut short.
for place, lock in ipairs(locks) do
  redis.call('HSET', lock, owner, hold)
  if is_free[place] then
    redis.call('PEXPIRE', lock, lease)
  else
    redis.call('PEXPIRE', lock, lease, 'GT')
  end
end
return {1, tonumber(hold)}
