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
  - wait       ms       1..86400000          added to the scores of those behind; Redisson: 300000
  - heartbeat  ms       0..60000             a waiter without one for so long goes; 0: do not queue
  - client     text     1..256               a grant is told on <channel>:<client>
  - ticket     integer  1..9007199254740991  what is told there
returns:
  - {1, hold}              the owner holds the lock with this count, for at least the lease
  - {0, wait_ms, foreign}  queued if it has a heartbeat, else just busy; both as in fair/wait_renew
  - {-1}                   hold is above 1 but the owner holds nothing: its lock was lost
  - {-2}                   10000 wait already; not queued
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
repeat:   hold
cost:     30 + 6 per waiter, at most 800
cluster:  one slot
uses:     integer, first_waiter, bring_forward
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
local hold = ARGV[3]
local wait = ARGV[4]
local heartbeat = ARGV[5]
local client = ARGV[6]
local ticket = ARGV[7]

-- check
if #KEYS ~= 4 or #ARGV ~= 7 then
  return redis.error_reply('LKARG fair/acquire takes 4 keys and 7 arguments')
end
if not is_integer(lease, 50, 86400000) then
  return redis.error_reply('LKARG lease must be an integer from 50 to 86400000')
end
if #owner < 1 or #owner > 256 or #client < 1 or #client > 256 then
  return redis.error_reply('LKARG owner and client must have 1 to 256 bytes')
end
if not is_integer(hold, 1, 1000000) or not is_integer(ticket, 1, 9007199254740991) then
  return redis.error_reply('LKARG hold must be 1 to 1000000, ticket 1 to 9007199254740991')
end
if not is_integer(wait, 1, 86400000) or not is_integer(heartbeat, 0, 60000) then
  return redis.error_reply('LKARG wait must be 1 to 86400000, heartbeat 0 to 60000')
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
local head, _, stays_ms, saves_ms, shift_ms = first_waiter(queue, timeouts, fair, now_ms)
-- Free, and nobody comes before the caller.
if left_ms == -2 and (not head or head == owner) then
  if head then
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    redis.call('HDEL', fair, owner)
  end
  redis.call('HSET', lock, owner, '1')
  redis.call('PEXPIRE', lock, lease)
  bring_forward(queue, timeouts, 0, shift_ms + saves_ms)
  return {1, 1}
end
bring_forward(queue, timeouts, 0, shift_ms)

-- Another client tells a waiter on the waiter's own channel, since it knows of no tickets.
local holder = redis.call('HLEN', lock) == 1 and redis.call('HKEYS', lock)[1] or ''
local waiting, known = redis.call('LLEN', queue), redis.call('HLEN', fair)
local is_known = string.find(holder, '^lk%-') and waiting == known
local reply = {0, left_ms == -2 and math.max(0, stays_ms) or left_ms, is_known and 0 or 1}
if heartbeat == '0' then
  return reply
end

-- A new waiter's score is Redisson's: its wait after the last one's score, or after the lease.
local score = head and redis.call('ZSCORE', timeouts, owner)
if not score then
  if waiting >= 10000 then
    return {-2}
  end
  local last = redis.call('LINDEX', queue, -1)
  local before = last and last ~= owner and redis.call('ZSCORE', timeouts, last)
  score = now_ms + wait + math.max(0, before and before - now_ms or left_ms)
  redis.call('ZADD', timeouts, score, owner)
  redis.call('RPUSH', queue, owner)
end

-- The record outlives score and heartbeat: a waiter without one is told by its score alone.
local ttl_ms = math.max(0, score - now_ms) + heartbeat
local record = {string.format('%.0f', now_ms + heartbeat), lease, wait, ticket, client}
redis.call('HSET', fair, owner, table.concat(record, ' '))
redis.call('PEXPIRE', fair, ttl_ms, 'NX')
redis.call('PEXPIRE', fair, ttl_ms, 'GT')
return reply
