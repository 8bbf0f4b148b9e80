#!lua flags=allow-oom
--[[ latchkey-script
name:     fair/wait_renew
version:  1.0.0
summary:  The heartbeat of a waiter in the queue; it has the lock if that is free and it is first.
keys:
  - lock       hash     rw  {name}                        owner -> hold count; its TTL is the lease
  - queue      list     rw  prefix:redisson_lock_queue    shared   waiters in order of arrival
  - timeouts   zset     rw  prefix:redisson_lock_timeout  shared   waiter -> when it may be dropped
  - fair       hash     rw  prefix:latchkey_fair          private  waiter -> deadline and terms
argv:
  - lease      ms       50..86400000                   of a hold that was granted by now
  - owner      owner    1..256                         the name that acquire queued
  - heartbeat  ms       1..60000                       dropped when the next one is not here by then
  - channel    channel  prefix:redisson_lock__channel  the first waiter is told on <channel>:<name>
  - publish    verb     PUBLISH|SPUBLISH
returns:
  - {1}                    the owner holds the lock, for at least the lease
  - {0, wait_ms, foreign}  queued; look again then, -1: later; 1: listen on <channel>:<owner>, too
  - {-1}                   not queued: dropped, or gone by itself; acquire queues again
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  ticket
repeat:   hold
cost:     30 + 6 per waiter, at most 800
cluster:  one slot
uses:     integer, tell, first_waiter, grant, bring_forward
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
-- Drop those in front, at most 100, with no score, an overdue heartbeat or, if they send none, a
-- score that is past. saves_ms, shift_ms: how long the first, and they, made the others wait.
local function first_waiter(queue, timeouts, fair, now_ms)
  local shift_ms = 0
  for gone = 0, 100 do
    local head = redis.call('LINDEX', queue, 0)
    local score = tonumber(head and redis.call('ZSCORE', timeouts, head) or 0) - shift_ms
    local record = head and redis.call('HGET', fair, head) or ''
    local deadline_ms, wait_ms = string.match(record, '^(%d+) %d+ (%d+)')
    local stays_ms = (score > 0 and tonumber(deadline_ms) or score) - now_ms
    local saves_ms = math.max(0, math.min(tonumber(wait_ms) or 0, score - now_ms))
    if not head or stays_ms > 0 or gone == 100 then
      return head, record, stays_ms, saves_ms, shift_ms
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, head)
    redis.call('HDEL', fair, head)
    shift_ms = shift_ms + saves_ms
  end
end
--<<< fragment first_waiter

-->>> fragment grant
-- Give a free lock to the first waiter: as a hold, with the lease it asked for, if it has a record;
-- a waiter of another client takes it by its own call. Answers who is to be told, and what.
local function grant(lock, queue, timeouts, fair, head, record)
  local lease_ms, ticket, client = string.match(record, '^%d+ (%d+) %d+ (%d+) (.+)$')
  if not ticket then
    return head, '0'
  end
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  redis.call('HDEL', fair, head)
  redis.call('HSET', lock, head, '1')
  redis.call('PEXPIRE', lock, lease_ms)
  return client, ticket
end
--<<< fragment grant

-->>> fragment bring_forward
-- Who is gone keeps nobody waiting any more: the scores of the waiters from this place on come
-- nearer, as Redisson does it. At most 10000; a score that is too late hurts no live waiter.
local function bring_forward(queue, timeouts, place, shift_ms)
  if shift_ms > 0 then
    for at = place, place + 9500, 500 do
      local waiters = redis.call('LRANGE', queue, at, at + 499)
      if #waiters == 0 then
        return
      end
      local scores = redis.call('ZMSCORE', timeouts, unpack(waiters, 1, math.min(500, #waiters)))
      local nearer = {}
      for i, waiter in ipairs(waiters) do
        nearer[2 * i - 1], nearer[2 * i] = (scores[i] or 0) - shift_ms, waiter
      end
      redis.call('ZADD', timeouts, 'XX', unpack(nearer, 1, math.min(1000, #nearer)))
    end
  end
end
--<<< fragment bring_forward

-- bind
local lock = KEYS[1]
local queue = KEYS[2]
local timeouts = KEYS[3]
local fair = KEYS[4]
local lease = ARGV[1]
local owner = ARGV[2]
local heartbeat = ARGV[3]
local channel = ARGV[4]
local publish = ARGV[5]

-- check
if #KEYS ~= 4 or #ARGV ~= 5 then
  return redis.error_reply('LKARG fair/wait_renew takes 4 keys and 5 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes')
end
if not is_integer(heartbeat, 1, 60000) then
  return redis.error_reply('LKARG heartbeat must be an integer from 1 to 60000')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

-- Granted since the last look; the lease counts anew, since the caller counts from this call.
if redis.call('HGET', lock, owner) then
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1}
end

-- Before anybody is dropped: a heartbeat that is late counts as long as nobody has noticed.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local terms = string.match(redis.call('HGET', fair, owner) or '', '^%d+( .+)$')
if not (terms and redis.call('ZSCORE', timeouts, owner)) or redis.call('LLEN', queue) == 0 then
  return {-1}
end
redis.call('HSET', fair, owner, string.format('%.0f', now_ms + heartbeat) .. terms)
redis.call('PEXPIRE', fair, heartbeat, 'GT')

-- A lease that ended told nobody: whoever looks first passes the lock on.
local head, record, stays_ms, saves_ms, shift_ms = first_waiter(queue, timeouts, fair, now_ms)
local listener, message
if redis.call('EXISTS', lock) == 0 and stays_ms > 0 then
  listener, message = grant(lock, queue, timeouts, fair, head, record)
  shift_ms = shift_ms + saves_ms
end
bring_forward(queue, timeouts, 0, shift_ms)
if message and head == owner then
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1}
end

-- Another client tells a waiter on the waiter's own channel, since it knows of no tickets.
local holder = redis.call('HLEN', lock) == 1 and redis.call('HKEYS', lock)[1] or ''
local is_known = string.find(holder, '^lk%-')
  and redis.call('LLEN', queue) == redis.call('HLEN', fair)
local left_ms = redis.call('PTTL', lock)
local wait_ms = left_ms == -2 and math.max(0, stays_ms) or left_ms
if message then
  tell(channel .. ':' .. listener, publish, message)
end
return {0, wait_ms, is_known and 0 or 1}
