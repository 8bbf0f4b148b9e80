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
  - {0, wait_ms, foreign, free}  queued; look then, -1: later; 1: <channel>:<owner> tells; 1: free
  - {-1}                   not queued: dropped, or gone by itself; acquire queues again
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
message:  ticket
repeat:   hold
cost:     30 + 6 per waiter, at most 800
cluster:  one slot
uses:     integer, tell, first_waiter, grant, own_score, holder
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

-->>> fragment own_score
-- The score of a waiter that sends heartbeats: Redisson drops it, once it is first, 30 s after its
-- heartbeat ends, since clocks differ. Each of its waiters before takes off a wait as it goes.
local function own_score(heartbeat_end_ms, wait, theirs_before)
  return heartbeat_end_ms + 30000 + wait * math.max(0, theirs_before)
end
--<<< fragment own_score

-->>> fragment holder
-- The owner that a lock has; no text where it is free, or something else than a lock.
local function holder_of(lock)
  return redis.call('HLEN', lock) == 1 and redis.call('HKEYS', lock)[1] or ''
end
--<<< fragment holder

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
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
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
local score = redis.call('ZSCORE', timeouts, owner)
local waiting = redis.call('LLEN', queue)
local place = redis.call('LPOS', queue, owner, 'MAXLEN', 1000)

-- Where a part of it was lost, the others go: Redisson's waiters never pass one without a score.
if not (terms and score and (place or waiting > 1000)) then
  redis.call('HDEL', fair, owner)
  redis.call('ZREM', timeouts, owner)
  redis.call('LREM', queue, 0, owner)
  return {-1}
end
local end_ms = now_ms + heartbeat
redis.call('HSET', fair, owner, string.format('%.0f', end_ms) .. terms)

-- Among the first thousand, also the score says again that it is there. A client of Redisson that
-- gives up may have brought it down. The record outlives both.
local wait = string.match(terms, '^ %d+ (%d+)') or 0
local theirs_before = 0
for _, waiter in ipairs(place and redis.call('LRANGE', queue, 0, place) or {}) do
  theirs_before = theirs_before + (string.find(waiter, '^lk%-') and 0 or 1)
end
score = own_score(end_ms, wait, theirs_before)
if place then
  redis.call('ZADD', timeouts, score, owner)
end
redis.call('PEXPIRE', fair, string.format('%.0f', score - now_ms + heartbeat), 'GT')

-- A lease that ended told nobody: whoever looks first passes the lock on.
local head, record, stays_ms = first_waiter(queue, timeouts, fair, now_ms)
local listener, message
if redis.call('EXISTS', lock) == 0 and stays_ms > 0 then
  listener, message = grant(lock, queue, timeouts, fair, head, record, stays_ms)
end
if message and head == owner then
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1}
end

-- Another client tells a waiter on the waiter's own channel, since it knows of no tickets.
local is_known = string.find(holder_of(lock), '^lk%-')
  and redis.call('LLEN', queue) == redis.call('HLEN', fair)
local left_ms = redis.call('PTTL', lock)
local wait_ms = left_ms == -2 and math.max(0, stays_ms) or left_ms
if message then
  tell(channel .. ':' .. listener, publish, message)
end
return {0, wait_ms, is_known and 0 or 1, left_ms == -2 and 1 or 0}
