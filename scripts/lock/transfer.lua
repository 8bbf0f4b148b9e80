#!lua flags=allow-oom
--[[ latchkey-script
name:     lock/transfer
version:  1.0.0
summary:  Hand a held lock to another owner in one step, so that it is never free in between.
keys:
  - lock       hash   rw  {name}     owner -> hold count; its TTL is the lease
argv:
  - lease      ms     50..86400000   how long the new owner's hold lives unless it is renewed
  - owner      owner  1..256         the holder that gives the lock away, with all its levels
  - new_owner  owner  1..256         lk-<client uuid>:<serial>, new for this hold
returns:
  - {1}   the new owner holds the lock once, for at least the lease
  - {-1}  neither of them holds it: it was lost before; nothing was done
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
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
local new_owner = ARGV[3]

-- check
if #KEYS ~= 1 or #ARGV ~= 3 then
  return redis.error_reply('LKARG lock/transfer takes 1 key and 3 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if #new_owner < 1 or #new_owner > 256 or new_owner == 'mode' then
  return redis.error_reply('LKARG new_owner must have 1 to 256 bytes and not be mode')
end
if owner == new_owner then
  return redis.error_reply('LKARG new_owner must be another name than owner')
end

-- Nobody is told: the lock does not become free. The new field comes before the old one goes, since
-- a hash without fields is deleted.
if redis.call('HEXISTS', lock, owner) == 1 then
  redis.call('HSET', lock, new_owner, 1)
  redis.call('HDEL', lock, owner)
  redis.call('PEXPIRE', lock, lease)
  return {1}
end

-- Handed over by an earlier copy of this call. The new owner may have taken further levels and a
-- longer lease by now: both stay.
if redis.call('HEXISTS', lock, new_owner) == 1 then
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1}
end
return {-1}
