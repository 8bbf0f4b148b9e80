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
