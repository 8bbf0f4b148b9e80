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
