-- Drop the read holds that are over. The longest other goes on for so many ms; -2: there is none.
-- Of our levels the first lives longest, of Redisson's any. After 2000 looks the TTL has to do.
local function longest_read(rwlock, prefix)
  local longest_ms, looks = -2, redis.call('HLEN', rwlock)
  local fields = looks <= 2000 and redis.call('HGETALL', rwlock) or {}
  for i = 1, #fields, 2 do
    local key, left_ms = prefix .. fields[i] .. ':rwlock_timeout:', -2
    local count = tonumber(string.match(fields[i + 1], '^%d+$') or 0)
    local levels = string.find(fields[i], '^lk%-') and 1 or count
    looks = looks + levels
    for n = 1, looks <= 2000 and levels or 0 do
      left_ms = math.max(left_ms, redis.call('PTTL', key .. n))
    end
    longest_ms = math.max(longest_ms, left_ms)
    if levels > 0 and left_ms == -2 and looks <= 2000 then
      redis.call('HDEL', rwlock, fields[i])
    end
  end
  return looks <= 2000 and longest_ms or redis.call('PTTL', rwlock)
end
