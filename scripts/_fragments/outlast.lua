-- Waiting writers are there as long as their key is: until the last heartbeat of all ends.
local function outlast(waiters)
  local last = redis.call('ZRANGE', waiters, 0, 0, 'REV', 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', waiters, last[2])
  end
end
