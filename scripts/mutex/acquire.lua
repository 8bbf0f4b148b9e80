#!lua
--[[ latchkey-script
name:     mutex/acquire
version:  1.0.0
summary:  Take a lock that is one string: the SET NX PX lock of redis-py, redsync and Redlock.
keys:
  - lock   string  rw  {name}         the owner; its TTL is the lease
argv:
  - lease  ms     50..86400000        how long the hold lives unless it is renewed
  - owner  owner  1..256              lk-<client uuid>:<serial>, new for every hold
returns:
  - {1}           the owner holds the lock, for at least the lease
  - {0, wait_ms}  another owner holds it; its lease ends then, -1: it has none, look again later
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
  return redis.error_reply('LKARG mutex/acquire takes 1 key and 2 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes')
end

-- Read first: a key of another type must fail before anything is written.
local holder = redis.call('GET', lock)
if not holder then
  redis.call('SET', lock, owner, 'PX', lease)
  return {1}
end

-- An earlier copy of this very call: the name is new for every hold, so this is no second taker.
if holder == owner then
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1}
end
return {0, redis.call('PTTL', lock)}
