#!lua flags=allow-oom
--[[ latchkey-script
name:     lock/release_all
version:  1.0.0
summary:  Give back one level of several locks of one slot, and wake waiters of those that are free.
keys:
  - locks*     hash     rw  {name}  1..100              owner -> hold count; its TTL is the lease
argv:
  - lease      ms       50..86400000                    kept at least this long when levels remain
  - owner      owner    1..256                          the name that acquired the locks
  - hold       count    0..1000000                      the hold count of each after this call
  - publish    verb     PUBLISH|SPUBLISH
  - channels*  channel  prefix:redisson_lock__channel  1..100  of each lock, in the same order
returns:
  - {1, hold}    given back; hold levels of each remain (0: all are free now)
  - {-1, count}  only so many were the owner's; the others were lost, or released by an earlier copy
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  0
repeat:   hold
cost:     0 + 3 per lock, at most 300
cluster:  one slot
uses:     integer, tell
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
local publish = ARGV[4]
local channels = ARGV -- from the fifth

-- check
if #KEYS < 1 or #KEYS > 100 or #ARGV < 5 or #ARGV > 104 then
  return redis.error_reply('LKARG lock/release_all takes 1 to 100 keys and 5 to 104 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if not is_integer(hold, 0, 1000000) then
  return redis.error_reply('LKARG hold must be an integer from 0 to 1000000')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end
if #channels - 4 ~= #locks then
  return redis.error_reply('LKARG channels must be as many as locks')
end
for i = 5, #channels do
  if #channels[i] < 1 or #channels[i] > 1024 then
    return redis.error_reply('LKARG channels must have 1 to 1024 bytes each')
  end
end
if are_twice(locks) then
  return redis.error_reply('LKARG locks must be different ones')
end

-- What was lost keeps nothing else from being given back. All are looked at first: a key of another
-- type is an error, which must leave all as it was.
local held = {}
for place, lock in ipairs(locks) do
  if redis.call('HGET', lock, owner) then
    held[#held + 1] = place
  end
end

for _, place in ipairs(held) do
  if hold == '0' then
    redis.call('DEL', locks[place])
  else
    redis.call('HSET', locks[place], owner, hold)
    redis.call('PEXPIRE', locks[place], lease, 'GT')
  end
end

-- The messages go out after the last delete: whoever they wake may want all of the locks, too.
if hold == '0' then
  for _, place in ipairs(held) do
    tell(channels[place + 4], publish, '0')
  end
end

if #held < #locks then
  return {-1, #held}
end
return {1, tonumber(hold)}
