#!lua
--[[ latchkey-script
name:     fenced/acquire
version:  1.0.0
summary:  Take a re-entrant lock, and with a fresh hold draw a fencing token above all before.
keys:
  - lock        hash    rw  {name}                      owner -> hold count; its TTL is the lease
  - counter     string  rw  prefix:redisson_lock_token  shared  the token drawn last
argv:
  - lease       ms      50..86400000       how long the hold lives unless it is renewed
  - owner       owner   1..256             lk-<client uuid>:<serial>, new for every fresh hold
  - hold        count   1..1000000         the owner's hold count afterwards; 1 takes a free lock
  - token_ttl?  ms      1000..31536000000  the counter lives so long; without it, for ever
returns:
  - {1, hold, token}  the owner holds the lock with this count, for at least the lease
  - {0, wait_ms}      another owner holds it; its lease ends then, -1: it has none, look again later
  - {-1}              hold is above 1 but the owner holds nothing: it was lost; nothing was taken
errors:
  - LKARG   an argument is wrong, or the counter is no token; nothing was written
  - NOPERM  the user may not run PEXPIRE; nothing was written
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
local hold = ARGV[3]
local token_ttl = ARGV[4]

-- check
if #KEYS ~= 2 or #ARGV < 3 or #ARGV > 4 then
  return redis.error_reply('LKARG fenced/acquire takes 2 keys and 3 or 4 arguments')
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
if token_ttl and not is_integer(token_ttl, 1000, 31536000000) then
  return redis.error_reply('LKARG token_ttl must be an integer from 1000 to 31536000000')
end
-- Where the server refuses PEXPIRE, it keeps what HSET has written, for ever.
if not redis.acl_check_cmd('PEXPIRE', lock, lease) then
  return redis.error_reply('NOPERM the user may not run PEXPIRE on the lock')
end

-- A count above 1 says that the caller believes it holds the lock already: if it does not, a new
-- hold here would hide that it lost the old one.
local is_holder = redis.call('HEXISTS', lock, owner) == 1
local wait_ms = redis.call('PTTL', lock)
if not is_holder and hold ~= '1' then
  return {-1}
end
if not is_holder and wait_ms ~= -2 then
  return {0, wait_ms}
end

local last = redis.call('GET', counter) or '0'
if not is_integer(last, 0, is_holder and 9007199254740991 or 9007199254740990) then
  return redis.error_reply('LKARG counter must hold an integer from 0 to 9007199254740990')
end

-- The holder's own token is the one drawn last, since only who takes the lock draws. So a re-entry,
-- and an acquire that runs twice, keep it: another is drawn only where the counter is gone. It is
-- written before the lock: where the server refuses the counter, nobody holds without a token.
-- A plain integer: Redisson's INCR goes on from it. It counts on a key that never expires, so a
-- token_ttl is for names that no Redisson client uses.
local token = tonumber(last)
if not is_holder or token == 0 then
  token = draw(token)
  local text = string.format('%.0f', token)
  if token_ttl then
    redis.call('SET', counter, text, 'PX', token_ttl)
  else
    redis.call('SET', counter, text)
  end
end

redis.call('HSET', lock, owner, hold)
if is_holder then
  redis.call('PEXPIRE', lock, lease, 'GT')
else
  redis.call('PEXPIRE', lock, lease)
end
return {1, tonumber(hold), token}
