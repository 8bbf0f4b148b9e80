#!lua flags=allow-oom
--[[ latchkey-script
name:     fenced/transfer
version:  1.0.0
summary:  Hand a fenced lock to another owner in one step, with a higher token.
keys:
  - lock        hash    rw  {name}                      owner -> hold count; its TTL is the lease
  - counter     string  rw  prefix:redisson_lock_token  shared  the token drawn last
argv:
  - lease       ms      50..86400000       how long the new owner's hold lives unless it is renewed
  - owner       owner   1..256             the holder that gives the lock away, with all its levels
  - new_owner   owner   1..256             lk-<client uuid>:<serial>, new for this hold
  - token_ttl?  ms      1000..31536000000  the counter lives so long; without it, for ever
returns:
  - {1, token}  the new owner holds the lock once, for at least the lease
  - {-1}        neither of them holds it: it was lost before; nothing was done
errors:
  - LKARG   an argument is wrong, or the counter is no token; nothing was written
repeat:   hold
cost:     at most 7 commands
cluster:  one slot
uses:     integer, draw
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

-->>> fragment draw
-- The fencing token after `last`, and the last one after itself. The server's clock in microseconds
-- is its floor, so that tokens go on rising when the counter was lost with the data of a server. A
-- clock past the year 2255 is wrong, and counts as that: above it is room for later tokens.
local function draw(last)
  local time = redis.call('TIME')
  local floor = math.min(time[1] * 1000000 + time[2], 9000000000000000)
  return math.min(math.max(last + 1, floor), 9007199254740991)
end
--<<< fragment draw

-- bind
local lock = KEYS[1]
local counter = KEYS[2]
local lease = ARGV[1]
local owner = ARGV[2]
local new_owner = ARGV[3]
local token_ttl = ARGV[4]

-- check
if #KEYS ~= 2 or #ARGV < 3 or #ARGV > 4 then
  return redis.error_reply('LKARG fenced/transfer takes 2 keys and 3 or 4 arguments')
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
if token_ttl and not is_integer(token_ttl, 1000, 31536000000) then
  return redis.error_reply('LKARG token_ttl must be an integer from 1000 to 31536000000')
end

local is_holder = redis.call('HEXISTS', lock, owner) == 1
if not is_holder and redis.call('HEXISTS', lock, new_owner) == 0 then
  return {-1}
end

local last = redis.call('GET', counter) or '0'
if not is_integer(last, 0, 9007199254740991) then
  return redis.error_reply('LKARG counter must hold an integer from 0 to 9007199254740991')
end

-- A plain integer: Redisson's INCR goes on from it. It is written before the lock: where the server
-- refuses the counter, nobody holds with the token of the one before.
local token = tonumber(last)
if is_holder or token == 0 then
  token = draw(token)
  local text = string.format('%.0f', token)
  if token_ttl then
    redis.call('SET', counter, text, 'PX', token_ttl)
  else
    redis.call('SET', counter, text)
  end
end

-- The new field comes before the old one goes, since a hash without fields is deleted. Where an
-- earlier copy of this call did it, the new owner may have taken further levels and a longer lease
-- by now: both stay, and so does its token, unless the counter is gone.
if is_holder then
  redis.call('HSET', lock, new_owner, 1)
  redis.call('HDEL', lock, owner)
  redis.call('PEXPIRE', lock, lease)
else
  redis.call('PEXPIRE', lock, lease, 'GT')
end
return {1, token}
