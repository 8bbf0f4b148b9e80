#!lua
--[[ latchkey-script
name:     permit/acquire
version:  1.0.0
summary:  Take permits that have names and end with a lease, all or none.
keys:
  - permits  string  rw  {name}          shared  how many are free
  - leases   zset    rw  suffix:timeout  shared  id -> end of its lease, server ms
argv:
  - lease    ms       50..86400000        how long they live unless they are renewed
  - channel  channel  prefix:redisson_sc  told how many are free
  - publish  verb     PUBLISH|SPUBLISH
  - ids*     id       16..16              1..100  one for each permit: random, never used before
returns:
  - {1}           the caller has them all, for at least the lease
  - {0, wait_ms}  too few are free; the next lease ends then, 0: look again at once, -1: none ends
errors:
  - LKARG   an argument is wrong, or the key holds no integer; nothing was written
  - NOPERM  the user may not run all that it takes; nothing was written
message:  value
repeat:   id
cost:     10 + 2 per id, at most 210
cluster:  one slot
uses:     integer, count, ids, tell
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
local lease = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]
local ids = ARGV -- from the fourth

-- check
if #KEYS ~= 2 or #ARGV < 4 or #ARGV > 103 then
  return redis.error_reply('LKARG permit/acquire takes 2 keys and 4 to 103 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end
if not are_ids(ids, 4) then
  return redis.error_reply('LKARG ids must have 16 bytes each')
end
-- Where that is refused when ids are taken, permits are too many for good.
if not redis.acl_check_cmd('SET', permits, 0) then
  return redis.error_reply('NOPERM the user may not run SET on permits')
end

local there = redis.call('GET', permits)
local free = count_of(there)
if not free then
  return redis.error_reply('LKARG permits must hold an integer')
end
if not there then
  return {0, -1}
end

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local ended = math.min(redis.call('ZCOUNT', leases, '-inf', now_ms), 1000)

-- The leases end at the time of the number they are counted with: the next number must not be
-- counted with them. Redisson gives that one a TTL, and takes it away without theirs: permits whose
-- leases then ended would never be free again.
local over_ms = redis.call('PEXPIRETIME', permits)
local differs = redis.call('PEXPIRETIME', leases) ~= over_ms or ended > 0
if differs and not (redis.acl_check_cmd('PERSIST', leases)
  and redis.acl_check_cmd('PEXPIREAT', leases, 0)) then
  return redis.error_reply('NOPERM the user may not run PERSIST and PEXPIREAT on leases')
end
if ended > 0 and not (redis.acl_check_cmd('ZADD', leases, 0, ids[4])
  and redis.acl_check_cmd('ZSCORE', leases, ids[4])
  and redis.acl_check_cmd('ZRANGE', leases, 0, 0)) then
  return redis.error_reply('NOPERM the user may not run ZADD, ZSCORE and ZRANGE on leases')
end

-- A permit whose lease has ended is free again: at most 1000 in a call, so that none takes long.
if ended > 0 then
  redis.call('ZREMRANGEBYRANK', leases, 0, ended - 1)
  free = free + ended
end

-- What an earlier copy of this call took is there, and is not taken again.
local missing = 0
for i = 4, #ids do
  if not redis.call('ZSCORE', leases, ids[i]) then
    missing = missing + 1
  end
end

local reply
if missing <= math.max(free, 0) then
  local ends = now_ms + lease
  for i = 4, #ids do
    free = free - redis.call('ZADD', leases, 'GT', ends, ids[i])
  end
  reply = {1}
else
  -- Redisson writes 922337203685477 for a lease that never ends.
  local ends_at = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2] or '922337203685477'
  reply = {0, math.max(0, ends_at - now_ms)}
  if ends_at == '922337203685477' then
    reply = {0, -1}
  end
end

if differs and over_ms == -1 then
  redis.call('PERSIST', leases)
elseif differs then
  redis.call('PEXPIREAT', leases, string.format('%.0f', over_ms))
end
if reply[1] == 1 or ended > 0 then
  redis.call('SET', permits, string.format('%.0f', free), 'KEEPTTL')
end
if ended > 0 and free > 0 then
  tell(channel, publish, string.format('%.0f', free))
end
return reply
