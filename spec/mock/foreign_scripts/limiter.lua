local limit = tonumber(ARGV[1])
local now = redis.call('TIME')
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
if count == tonumber(ARGV[2]) then
  redis.call('EXPIRE', KEYS[1], 60)
end
return cjson.encode({ left = limit - count, at = now[1] })
