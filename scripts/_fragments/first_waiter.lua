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
