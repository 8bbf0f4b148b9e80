#!lua flags=allow-oom
--[[ latchkey-script
name:     fair/wait_renew_all
version:  1.0.0
summary:  The heartbeats of up to 100 waiters of a fair lock at once; pass on a free lock.
keys:
  - lock       hash     rw  {name}                        owner -> hold count; its TTL is the lease
  - queue      list     rw  prefix:redisson_lock_queue    shared   waiters in order of arrival
  - timeouts   zset     rw  prefix:redisson_lock_timeout  shared   waiter -> when it may be dropped
  - fair       hash     rw  prefix:latchkey_fair          private  waiter -> deadline and terms
argv:
  - heartbeat  ms       1..60000                       dropped when the next one is not here by then
  - channel    channel  prefix:redisson_lock__channel  the first waiter is told on <channel>:<name>
  - publish    verb     PUBLISH|SPUBLISH
  - owners*    owner    1..256  1..100                 the names that acquire queued
returns:
  - {0, wait_ms, foreign, free, place...}  as wait_renew; a place (1: the first) has to call it
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
local heartbeat = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]
local owners = ARGV -- from the fourth

-- check
if #KEYS ~= 4 or #ARGV < 4 or #ARGV > 103 then
  return redis.error_reply('LKARG fair/wait_renew_all takes 4 keys and 4 to 103 arguments')
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
for i = 4, #owners do
  if #owners[i] < 1 or #owners[i] > 256 or owners[i] == 'mode' then
    return redis.error_reply('LKARG owners must have 1 to 256 bytes each and not be mode')
  end
end

-- All is read before anything is written: a key of another type fails in time.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local is_free = redis.call('HLEN', lock) == 0
local waiting = redis.call('LLEN', queue)
local records = redis.call('HMGET', fair, unpack(owners, 4, math.min(#owners, 103)))
local scores = redis.call('ZMSCORE', timeouts, unpack(owners, 4, math.min(#owners, 103)))
local theirs_before, theirs = {}, 0 -- how many of Redisson's are before a waiter
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, 999)) do
  theirs_before[waiter] = theirs
  if not string.find(waiter, '^lk%-') then
    theirs = theirs + 1
  end
end

-- As in wait_renew, before anybody is dropped. Among the first thousand, also the scores say again
-- that they are there. The records outlive both.
local end_ms = now_ms + heartbeat
local stays, fields, entries, last_ms = {}, {}, {}, end_ms
for i = 4, #owners do
  local owner, before = owners[i], theirs_before[owners[i]]
  local terms = string.match(records[i - 3] or '', '^%d+( .+)$')
  if terms and scores[i - 3] and (before or waiting > 1000) then
    stays[owner] = true
    fields[#fields + 1] = owner
    fields[#fields + 1] = string.format('%.0f', end_ms) .. terms
    if before then
      local wait = string.match(terms, '^ %d+ (%d+)') or 0
      local score = own_score(end_ms, wait, before)
      entries[#entries + 1] = score
      entries[#entries + 1] = owner
      last_ms = math.max(last_ms, score)
    end
  end
end
if #fields ~= 0 then
  redis.call('HSET', fair, unpack(fields, 1, math.min(#fields, 200)))
  redis.call('PEXPIRE', fair, string.format('%.0f', last_ms - now_ms + heartbeat), 'GT')
end
if #entries ~= 0 then
  redis.call('ZADD', timeouts, unpack(entries, 1, math.min(#entries, 200)))
end

-- A lease that ended told nobody: whoever looks first passes the lock on. One of these is not told.
local head, record, stays_ms = first_waiter(queue, timeouts, fair, now_ms)
local listener, message
if is_free and stays_ms > 0 then
  listener, message = grant(lock, queue, timeouts, fair, head, record, stays_ms)
end
if message and stays[head] then
  stays[head], message = nil, nil
end

-- Another client tells a waiter on the waiter's own channel, since it knows of no tickets.
local is_known = string.find(holder_of(lock), '^lk%-')
  and redis.call('LLEN', queue) == redis.call('HLEN', fair)
local left_ms = redis.call('PTTL', lock)
local wait_ms = left_ms == -2 and math.max(0, stays_ms) or left_ms
local reply = {0, wait_ms, is_known and 0 or 1, left_ms == -2 and 1 or 0}
for i = 4, #owners do
  if not stays[owners[i]] then
    reply[#reply + 1] = i - 3
  end
end
if message then
  tell(channel .. ':' .. listener, publish, message)
end
return reply
