for _, tag in ipairs(ARGV) do
  redis.call('SADD', KEYS[1], tag)
end
local members = redis.call('SMEMBERS', KEYS[1])
return { #members, members, struct.pack('>I2', #members), cmsgpack.pack(ARGV) }
