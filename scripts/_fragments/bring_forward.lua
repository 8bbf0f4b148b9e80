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
