#!lua flags=allow-oom
--[[ latchkey-script
name:     lock/renew
version:  1.0.0
summary:  Extend the lease of a lock, if the caller still holds it.
keys:
  - lock   hash   rw  {name}          owner -> hold count; its TTL is the lease
argv:
  - lease  ms     50..86400000        the lease ends no sooner than this from now
  - owner  owner  1..256              the name that acquired the lock
returns:
  - {1}            renewed
  - {-1, left_ms}  not the caller's; -2: nobody's, else the rest of the other's lease (-1: endless)
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
repeat:   hold
cost:     at most 2 commands
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

-- bind
local lock = KEYS[1]
local lease = ARGV[1]
local owner = ARGV[2]

-- check
if #KEYS ~= 1 or #ARGV ~= 2 then
  return redis.error_reply('LKARG lock/renew takes 1 key and 2 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end

-- GT: a renewal may come late or carry a shorter lease than another one; it only ever extends.
if redis.call('HGET', lock, owner) then
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1}
end
return {-1, redis.call('PTTL', lock)}
