-- Who is gone keeps nobody waiting any more: the scores of the waiters from this place on come
-- nearer, as Redisson does it. At most 10000; a score that is too late hurts no live waiter.
local function bring_forward(queue, timeouts, place, shift_ms)
  if shift_ms > 0 then
    for _, waiter in ipairs(redis.call('LRANGE', queue, place, place + 9999)) do
      redis.call('ZADD', timeouts, 'XX', 'INCR', -shift_ms, waiter)
    end
  end
end
