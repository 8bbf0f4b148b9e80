#!lua flags=allow-oom
--[[ latchkey-script
name:     fair/release
version:  1.0.0
summary:  Give back one level of a fair lock; the last one passes it to the first waiter.
keys:
  - lock       hash     rw  {name}                        owner -> hold count; its TTL is the lease
  - queue      list     rw  prefix:redisson_lock_queue    shared   waiters in order of arrival
  - timeouts   zset     rw  prefix:redisson_lock_timeout  shared   waiter -> when it may be dropped
  - fair       hash     rw  prefix:latchkey_fair          private  waiter -> deadline and terms
argv:
  - lease    ms       50..86400000                   kept at least this long when levels remain
  - owner    owner    1..256                         the name that acquired the lock
  - hold     count    0..1000000                     the owner's hold count after this call
  - channel  channel  prefix:redisson_lock__channel  the first waiter is told on <channel>:<name>
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1, hold}   given back; hold levels remain (0: the lock is free, or the first waiter's)
  - {-1}        the owner holds nothing: lost, or released by an earlier copy of this call
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  ticket
repeat:   hold
cost:     30 + 6 per waiter, at most 800
cluster:  one slot
uses:     integer, tell, first_waiter, grant
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

-->>> fragment first_waiter
-- The moment that a score names, in ms; 0, which is long past, if it is no plain number of at most
-- 15 digits.
local function moment_of(score)
  return score and #score <= 15 and tonumber(string.match(score, '^%d+$')) or 0
end

-- Drop those in front, at most 100, with no score, an overdue heartbeat or, if they send none, a
-- score that is past. The first of the others, its record, and how long it stays.
local function first_waiter(queue, timeouts, fair, now_ms)
  for gone = 0, 100 do
    local head = redis.call('LINDEX', queue, 0)
    local score = moment_of(head and redis.call('ZSCORE', timeouts, head))
    local record = head and redis.call('HGET', fair, head) or ''
    local deadline_ms = string.match(record, '^(%d+) %d+ %d+')
    local stays_ms = (score > 0 and tonumber(deadline_ms) or score) - now_ms
    if not head or stays_ms > 0 or gone == 100 then
      return head, record, stays_ms
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, head)
    redis.call('HDEL', fair, head)
  end
end
--<<< fragment first_waiter

-->>> fragment grant
-- Give a free lock to the first waiter: as a hold, if it has a record, that ends with its heartbeat
-- unless it renews, since it may be dead; its lease counts from then. A waiter of another client
-- takes the lock by its own call, and any does where this user may not run PEXPIRE: its hold would
-- never end. Answers who is to be told, and what; nil: nobody.
local function grant(lock, queue, timeouts, fair, head, record, stays_ms)
  local lease_ms, ticket, client = string.match(record, '^%d+ (%d+) %d+ (%d+) (.+)$')
  if not ticket then
    return head, '0'
  end
  if not redis.acl_check_cmd('PEXPIRE', lock, lease_ms) then
    return nil
  end
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  redis.call('HDEL', fair, head)
  redis.call('HSET', lock, head, '1')
  redis.call('PEXPIRE', lock, math.min(lease_ms, stays_ms))
  return client, ticket
end
--<<< fragment grant

-- bind
local lock = KEYS[1]
local queue = KEYS[2]
local timeouts = KEYS[3]
local fair = KEYS[4]
local lease = ARGV[1]
local owner = ARGV[2]
local hold = ARGV[3]
local channel = ARGV[4]
local publish = ARGV[5]

-- check
if #KEYS ~= 4 or #ARGV ~= 5 then
  return redis.error_reply('LKARG fair/release takes 4 keys and 5 arguments')
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
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

if not redis.call('HGET', lock, owner) then
  return {-1}
end

-- Levels remain: the count is set, not lowered by one, so that this call may run twice.
if hold ~= '0' then
  redis.call('HSET', lock, owner, hold)
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1, tonumber(hold)}
end

-- The last level. The queue is read before the lock goes: a key of another type fails in time.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local head, record, stays_ms = first_waiter(queue, timeouts, fair, now_ms)
redis.call('DEL', lock)
local listener, message
if stays_ms > 0 then
  listener, message = grant(lock, queue, timeouts, fair, head, record, stays_ms)
end
if message then
  tell(channel .. ':' .. listener, publish, message)
end
return {1, 0}
