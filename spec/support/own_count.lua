-- SPDX-License-Identifier: Apache-2.0
-- The text of a script of somebody's own, with a header: my/count.
return [=[
#!lua flags=no-writes
--[[ latchkey-script
name:     my/count
version:  1.0.0
summary:  How many fields a hash has.
keys:
  - counted  hash  r  {name}  what is counted
returns:
  - {1, fields}  so many
repeat:   pure
cost:     at most 1 command
cluster:  one slot
]]
return {1, redis.call('HLEN', KEYS[1])}
]=]
