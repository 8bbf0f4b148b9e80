#!lua
--[[ latchkey-script
name:     lock/acquire
version:  1.0.0
summary:  Take a re-entrant lock, or raise the hold count of the owner that has it.
keys:
  - lock   hash   rw  {name}          owner -> hold count; its TTL is the lease
argv:
  - lease  ms     50..86400000        how long the hold lives unless it is renewed
  - owner  owner  1..256              lk-<client uuid>:<serial>, new for every fresh hold
  - hold   count  1..1000000          the owner's hold count after this call; 1 takes a free lock
returns:
  - {1, hold}     the owner holds the lock with this count, for at least the lease
  - {0, wait_ms}  another owner holds it; its lease ends then, -1: it has none, look again later
  - {-1}          hold is above 1 but the owner holds nothing: its lock was lost; nothing was taken
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIRE; nothing was written
repeat:   hold
cost:     at most 4 commands
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
local hold = ARGV[3]

-- check
if #KEYS ~= 1 or #ARGV ~= 3 then
  return redis.error_reply('LKARG lock/acquire takes 1 key and 3 arguments')
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
-- Where the server refuses PEXPIRE, it keeps what HSET has written, for ever.
if not redis.acl_check_cmd('PEXPIRE', lock, lease) then
  return redis.error_reply('NOPERM the user may not run PEXPIRE on the lock')
end

-- Free: a fresh hold. A count above 1 says that the caller believes it holds the lock already;
-- it does not, and giving it a new lock here would hide that it lost the old one.
local wait_ms = redis.call('PTTL', lock)
if wait_ms == -2 then
  if hold ~= '1' then
    return {-1}
  end
  redis.call('HSET', lock, owner, hold)
  redis.call('PEXPIRE', lock, lease)
  return {1, 1}
end

-- Held by the caller: the count is set, not added to, so that this call may run twice. GT: a
-- re-entry with a shorter lease must not cut the lease that the outer hold counts on.
if redis.call('HGET', lock, owner) then
  redis.call('HSET', lock, owner, hold)
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1, tonumber(hold)}
end

-- Held by another.
if hold ~= '1' then
  return {-1}
end
return {0, wait_ms}
