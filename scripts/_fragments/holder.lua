-- The owner that a lock has; no text where it is free, or something else than a lock.
local function holder_of(lock)
  return redis.call('HLEN', lock) == 1 and redis.call('HKEYS', lock)[1] or ''
end
