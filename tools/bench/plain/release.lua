-- SPDX-License-Identifier: Apache-2.0
-- The commands of Redisson's unlock, in its order.
-- ARGV: message, lease, owner, PUBLISH, the latch's life
local call = redis.call
local latch = call('GET', KEYS[3])
if latch then
  return tonumber(latch)
end
if call('HEXISTS', KEYS[1], ARGV[3]) == 0 then
  return nil
end
if call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
  call('PEXPIRE', KEYS[1], ARGV[2])
  call('SET', KEYS[3], 0, 'PX', ARGV[5])
  return 0
end
call('DEL', KEYS[1])
call(ARGV[4], KEYS[2], ARGV[1])
call('SET', KEYS[3], 1, 'PX', ARGV[5])
return 1
