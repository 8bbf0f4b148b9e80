-- How long the lock is read, in ms; -2: not any more. Ours read as long as their level is there,
-- Redisson's for theirs_ms. Beyond 2000 fields the hash has to do. Fields of those who read no
-- more go, at most 1000 at a time; where nobody does, the caller removes all.
local function longest_read(rwlock, prefix, theirs_ms)
  if redis.call('HLEN', rwlock) > 2000 or theirs_ms == -1 then
    return redis.call('PTTL', rwlock)
  end
  local longest_ms, over = theirs_ms or -2, {}
  for _, owner in ipairs(redis.call('HKEYS', rwlock)) do
    local left_ms = theirs_ms
    if string.find(owner, '^lk%-') then
      left_ms = redis.call('PTTL', prefix .. owner .. ':rwlock_timeout:1')
      longest_ms = math.max(longest_ms, left_ms)
    end
    if left_ms == -2 and owner ~= 'mode' then
      over[#over + 1] = owner
    end
  end
  if longest_ms ~= -2 and #over > 0 then
    redis.call('HDEL', rwlock, unpack(over, 1, math.min(#over, 1000)))
  end
  return longest_ms
end
