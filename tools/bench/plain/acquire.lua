-- SPDX-License-Identifier: Apache-2.0
-- The commands of Redisson's acquire, in its order, without what latchkey's does better.
local call = redis.call
if call('EXISTS', KEYS[1]) == 0 or call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  call('HINCRBY', KEYS[1], ARGV[2], 1)
  call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
return call('PTTL', KEYS[1])
