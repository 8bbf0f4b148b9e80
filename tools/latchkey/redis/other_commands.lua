-- SPDX-License-Identifier: Apache-2.0
-- Commands that servers run for scripts, and that latchkey's own scripts do without: as those of
-- latchkey.redis.commands. Scripts with a contract are read with both. `access` is that of the key
-- that is written, where others are read.
local commands = {}

local function add(type_of_key, access, keys, list)
  for name in list:gmatch('%S+') do
    commands[name] = { type = type_of_key, access = access, keys = keys }
  end
end

add('string', 'r', 'first', 'BITFIELD_RO SUBSTR')
add('string', 'r', 'two', 'LCS')
add('string', 'r', 'all', 'PFCOUNT')
add('string', 'w', 'first', 'BITFIELD INCRBYFLOAT PFADD')
add('string', 'w', 'pairs', 'MSET MSETNX')
add('string', 'w', 'operated', 'BITOP')
add('string', 'w', 'stored', 'PFMERGE')
add('string', 'w', 'second', 'PFDEBUG')
add('hash', 'r', 'first', 'HRANDFIELD HSCAN')
add('hash', 'w', 'first', 'HINCRBYFLOAT')
add('list', 'w', 'counted', 'LMPOP')
add('list', 'w', 'counted2', 'BLMPOP')
add('set', 'r', 'first', 'SRANDMEMBER SSCAN')
add('set', 'r', 'all', 'SDIFF SINTER SUNION')
add('set', 'r', 'counted', 'SINTERCARD')
add('set', 'w', 'first', 'SPOP')
add('set', 'w', 'stored', 'SDIFFSTORE SINTERSTORE SUNIONSTORE')
add('zset', 'r', 'first', [[GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH
  ZRANDMEMBER ZSCAN]])
add('zset', 'w', 'first', 'GEOADD')
add('zset', 'w', 'ranged', 'GEOSEARCHSTORE ZRANGESTORE')
add('zset', 'w', 'counted', 'ZMPOP')
add('zset', 'w', 'counted2', 'BZMPOP')
add('zset', 'w', 'combined', 'ZDIFFSTORE ZINTERSTORE ZUNIONSTORE')
add('zset', 'w', 'sorted', 'GEORADIUS GEORADIUSBYMEMBER')
add('stream', 'r', 'streams', 'XREAD')
add('stream', 'r', 'first', 'XPENDING')
add('stream', 'r', 'second', 'XINFO')
add('stream', 'w', 'first', 'XACK XAUTOCLAIM XCLAIM XSETID')
add('stream', 'w', 'second', 'XGROUP')
add('stream', 'w', 'streams', 'XREADGROUP')
add('any', 'r', 'first', 'SORT_RO')
add('any', 'r', 'counted', 'ZDIFF ZINTER ZINTERCARD ZUNION') -- of sets as well
add('any', 'r', 'second', 'MEMORY OBJECT')
add('any', 'w', 'migrated', 'MIGRATE')
add('any', 'w', 'first', 'MOVE RESTORE RESTORE-ASKING')
add('any', 'w', 'sorted', 'SORT')

return commands
