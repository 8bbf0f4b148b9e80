#!lua
--[[ latchkey-script
name:     fair/acquire
version:  1.0.0
summary:  Take a lock that is granted in order of arrival, or queue for it; raise its hold count.
keys:
  - lock       hash     rw  {name}                        owner -> hold count; its TTL is the lease
  - queue      list     rw  prefix:redisson_lock_queue    shared   waiters in order of arrival
  - timeouts   zset     rw  prefix:redisson_lock_timeout  shared   waiter -> when it may be dropped
  - fair       hash     rw  prefix:latchkey_fair          private  waiter -> deadline and terms
argv:
  - lease      ms       50..86400000         how long the hold lives unless it is renewed
  - owner      owner    1..256               lk-<client uuid>:<serial>, new for every fresh hold
  - hold       count    1..1000000           the owner's hold count after this call; 1 may queue
  - wait       ms       1..86400000          Redisson's fairLockWaitTimeout, which is 300000
  - heartbeat  ms       0..60000             a waiter without one for so long goes; 0: do not queue
  - client     text     1..256               a grant is told on <channel>:<client>
  - ticket     integer  1..9007199254740991  what is told there
  - channel    channel  prefix:redisson_lock__channel  a waiter of another client is told there
  - publish    verb     PUBLISH|SPUBLISH
returns:
  - {1, hold}   the owner holds the lock with this count, for at least the lease
  - {0, wait_ms, foreign, free}  queued if it has a heartbeat; free 1: others are first
  - {-1}        hold is above 1 but the owner holds nothing: its lock was lost
  - {-2}        10000 wait already; not queued
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIRE, without which holds never end; nothing was written
message:  0
repeat:   hold
cost:     30 + 6 per waiter, at most 800
cluster:  one slot
uses:     integer, tell, first_waiter, own_score, holder
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
local hold = ARGV[3]
local wait = ARGV[4]
local heartbeat = ARGV[5]
local client = ARGV[6]
local ticket = ARGV[7]
local channel = ARGV[8]
local publish = ARGV[9]

-- check
if #KEYS ~= 4 or #ARGV ~= 9 then
  return redis.error_reply('LKARG fair/acquire takes 4 keys and 9 arguments')
end
if #owner < 1 or #owner > 256 or owner == 'mode' or #client < 1 or #client > 256 then
  return redis.error_reply('LKARG owner and client must have 1 to 256 bytes; mode is no owner')
end
if not is_integer(hold, 1, 1000000) or not is_integer(ticket, 1, 9007199254740991) then
  return redis.error_reply('LKARG hold must be 1 to 1000000, ticket 1 to 9007199254740991')
end
if not is_integer(lease, 50, 86400000) or not is_integer(wait, 1, 86400000)
  or not is_integer(heartbeat, 0, 60000) then
  return redis.error_reply('LKARG lease 50 to 86400000, wait 1 to 86400000, heartbeat 0 to 60000')
end
if #channel < 1 or #channel > 1024 or publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes; publish [S]PUBLISH')
end
if not (redis.acl_check_cmd('PEXPIRE', lock, 1) and redis.acl_check_cmd('PEXPIRE', fair, 1)) then
  return redis.error_reply('NOPERM the user may not run PEXPIRE on lock and fair')
end

-- Held by the caller, perhaps granted while this call was under way. The count is set, not raised.
local left_ms = redis.call('PTTL', lock)
if redis.call('HGET', lock, owner) then
  redis.call('HSET', lock, owner, hold)
  redis.call('PEXPIRE', lock, lease, 'GT')
  return {1, tonumber(hold)}
end
if hold ~= '1' then
  return {-1}
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local head, record, stays_ms = first_waiter(queue, timeouts, fair, now_ms)
if left_ms == -2 and (not head or head == owner) then
  if head then
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    redis.call('HDEL', fair, owner)
  end
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  return {1, 1}
end

-- Another client tells a waiter on the waiter's own channel, since it knows of no tickets.
local waiting, known = redis.call('LLEN', queue), redis.call('HLEN', fair)
if waiting == 0 then
  redis.call('DEL', fair) -- Redisson drops waiters without their records
end
local is_known = string.find(holder_of(lock), '^lk%-') and waiting == known
local wait_ms = left_ms == -2 and math.max(0, stays_ms) or left_ms

-- A new waiter is last. Its record outlives its score: without one, a waiter is told by that alone.
local score = redis.call('ZSCORE', timeouts, owner)
local is_queued = score and redis.call('LPOS', queue, owner)
if heartbeat ~= '0' then
  if not is_queued and waiting >= 10000 then
    return {-2}
  end
  local end_ms = string.format('%.0f', now_ms + heartbeat)
  if not is_queued then
    score = string.format('%.0f', own_score(end_ms, wait, waiting - known))
    redis.call('ZADD', timeouts, score, owner)
    redis.call('RPUSH', queue, owner)
  end
  local ttl_ms = string.format('%.0f', math.max(0, moment_of(score) - now_ms) + heartbeat)
  redis.call('HSET', fair, owner, table.concat({end_ms, lease, wait, ticket, client}, ' '))
  redis.call('PEXPIRE', fair, ttl_ms, 'NX')
  redis.call('PEXPIRE', fair, ttl_ms, 'GT')
end
if left_ms == -2 and record == '' then
  tell(channel .. ':' .. head, publish, '0')
end
return {0, wait_ms, is_known and 0 or 1, left_ms == -2 and 1 or 0}
