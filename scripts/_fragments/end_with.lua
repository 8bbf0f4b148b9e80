-- The leases end at the time of the number they are counted with: the next number must not be
-- counted with them. Redisson gives that one a TTL, and takes it away without theirs: permits whose
-- leases then ended would never be free again.
local function end_with(leases, permits)
  local over_ms = redis.call('PEXPIRETIME', permits)
  if over_ms == -1 then
    redis.call('PERSIST', leases)
  elseif redis.call('PEXPIRETIME', leases) ~= over_ms then
    redis.call('PEXPIREAT', leases, string.format('%.0f', over_ms))
  end
end

-- May this user do that? It is asked before there is anything to end.
local function may_end_with(leases, permits)
  return redis.acl_check_cmd('PEXPIRETIME', permits) and redis.acl_check_cmd('PEXPIRETIME', leases)
    and redis.acl_check_cmd('PERSIST', leases) and redis.acl_check_cmd('PEXPIREAT', leases, 0)
end
