-- Give a free lock to the first waiter: as a hold, with the lease it asked for, if it has a record;
-- a waiter of another client takes it by its own call. Answers who is to be told, and what.
local function grant(lock, queue, timeouts, fair, head, record)
  local lease_ms, ticket, client = string.match(record, '^%d+ (%d+) %d+ (%d+) (.+)$')
  if not ticket then
    return head, '0'
  end
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  redis.call('HDEL', fair, head)
  redis.call('HSET', lock, head, '1')
  redis.call('PEXPIRE', lock, lease_ms)
  return client, ticket
end
