-- Waiting writers are there as long as their key is: until the last heartbeat of all ends. Scores
-- that are no moment, beyond 14 digits or with fractions, are of nobody who waits.
local function outlast(waiters)
  redis.call('ZREMRANGEBYSCORE', waiters, '99999999999999', '+inf')
  local last = redis.call('ZRANGE', waiters, 0, 0, 'REV', 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', waiters, string.format('%.0f', math.max(0, math.floor(last[2]))))
  end
end
