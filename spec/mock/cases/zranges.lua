-- SPDX-License-Identifier: Apache-2.0
-- Sorted sets by range, as Redis 7.0.15 answers.
local WRONGTYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local NOT_INTEGER = 'ERR value is not an integer or out of range'
local NO_RANGE = 'ERR min or max is not a float'
local NO_LEX_RANGE = 'ERR min or max not valid string range item'
local SYNTAX = 'ERR syntax error'
local RANK_LIMIT = 'ERR syntax error, LIMIT is only supported in combination with either BYSCORE'
  .. ' or BYLEX'
local LEX_SCORES = 'ERR syntax error, WITHSCORES not supported in combination with BYLEX'

-- Cases on a set of these scores, and on one whose members all have the same.
local function scored(command, case)
  case[1], case.after = command, 'ZADD z -inf low 1 a 2 b 2 bb 3.5 c inf top'
  return case
end

local function lexical(command, case)
  case[1], case.after = command, 'ZADD z 0 a 0 ab 0 b 0 c'
  return case
end

return {
  scored('ZRANGE z 0 -1', { gives = { 'low', 'a', 'b', 'bb', 'c', 'top' } }),
  scored('ZRANGE z 1 2 WITHSCORES', { gives = { 'a', '1', 'b', '2' } }),
  scored('ZRANGE z 0 1 rev', { gives = { 'top', 'c' } }),
  scored('ZRANGE z -2 -1 REV withscores', { gives = { 'a', '1', 'low', '-inf' } }),
  scored('ZRANGE z 4 99', { gives = { 'c', 'top' } }),
  scored('ZRANGE z 6 9', { gives = {} }),
  scored('ZRANGE z 3 2', { gives = {} }),
  scored('ZRANGE z 0 0 WITHSCORES WITHSCORES', { gives = { 'low', '-inf' } }),
  scored('ZRANGE z 0 0 LIMIT 5 -1', { gives = { 'low' } }),
  scored('ZRANGE z 0 1 LIMIT 0 1', { fails = RANK_LIMIT }),
  scored('ZRANGE z 0 1 LIMIT 0', { fails = SYNTAX }),
  scored('ZRANGE z 0 1 LIMIT x 1', { fails = NOT_INTEGER }),
  scored('ZRANGE z 0 1 REV REV', { fails = SYNTAX }),
  scored('ZRANGE z 0 1 DESC', { fails = SYNTAX }),
  scored('ZRANGE z (0 1', { fails = NOT_INTEGER }),
  { 'ZRANGE z 0 -1', gives = {} },
  { 'ZRANGE k 0 x', after = 'SET k v', fails = NOT_INTEGER },
  { 'ZRANGE k 0 1', after = 'SET k v', fails = WRONGTYPE },
  { 'ZRANGE z 0', fails = "ERR wrong number of arguments for 'zrange' command" },
  scored('ZREVRANGE z 0 1', { gives = { 'top', 'c' } }),
  scored('ZREVRANGE z 4 5 WITHSCORES', { gives = { 'a', '1', 'low', '-inf' } }),
  scored('ZREVRANGE z 0 1 REV', { fails = SYNTAX }),
  scored('ZREVRANGE z 0 1 LIMIT 0 1', { fails = RANK_LIMIT }),

  scored('ZRANGE z 1 2 BYSCORE', { gives = { 'a', 'b', 'bb' } }),
  scored('ZRANGE z (1 (3.5 byscore WITHSCORES', { gives = { 'b', '2', 'bb', '2' } }),
  scored('ZRANGE z 3.5 1 BYSCORE REV LIMIT 1 2', { gives = { 'bb', 'b' } }),
  scored('ZRANGE z 1 3.5 BYSCORE REV', { gives = {} }),
  scored('ZRANGE z 1 2 BYSCORE BYLEX', { fails = SYNTAX }),
  scored('ZRANGEBYSCORE z -inf +inf', { gives = { 'low', 'a', 'b', 'bb', 'c', 'top' } }),
  scored('ZRANGEBYSCORE z (-inf (inf', { gives = { 'a', 'b', 'bb', 'c' } }),
  scored('ZRANGEBYSCORE z (1 2 WITHSCORES LIMIT 1 5', { gives = { 'bb', '2' } }),
  scored('ZRANGEBYSCORE z 1 2 LIMIT 1 -1', { gives = { 'b', 'bb' } }),
  scored('ZRANGEBYSCORE z 1 2 LIMIT -1 9', { gives = {} }),
  scored('ZRANGEBYSCORE z 1 2 LIMIT 9 9', { gives = {} }),
  scored('ZRANGEBYSCORE z 1 2 LIMIT 0 0', { gives = {} }),
  scored('ZRANGEBYSCORE z 1 2 limit 0 5 LIMIT 0 1', { gives = { 'a' } }),
  scored('ZRANGEBYSCORE z 1 2 LIMIT 0', { fails = SYNTAX }),
  scored('ZRANGEBYSCORE z 1 2 BYSCORE', { fails = SYNTAX }),
  scored('ZRANGEBYSCORE z 1 2 REV', { fails = SYNTAX }),
  scored('ZRANGEBYSCORE z 2 (2', { gives = {} }),
  scored('ZRANGEBYSCORE z 3 2', { gives = {} }),
  scored('ZREVRANGEBYSCORE z 2 1', { gives = { 'bb', 'b', 'a' } }),
  scored('ZREVRANGEBYSCORE z (3.5 -inf LIMIT 1 2', { gives = { 'b', 'a' } }),
  scored('ZREVRANGEBYSCORE z 1 2', { gives = {} }),
  { 'ZRANGEBYSCORE z x 2', fails = NO_RANGE },
  { 'ZRANGEBYSCORE z 1 nan', fails = NO_RANGE },
  { 'ZRANGEBYSCORE z ((1 2', fails = NO_RANGE },
  { 'ZREVRANGEBYSCORE k 1 x', after = 'SET k v', fails = NO_RANGE },
  { 'ZRANGEBYSCORE k 1 2', after = 'SET k v', fails = WRONGTYPE },
  { { 'ZRANGEBYSCORE', 'z', ' 1', '2 ' }, fails = NO_RANGE },
  { { 'ZRANGEBYSCORE', 'z', ' 1', '(' }, after = 'ZADD z 1 a', gives = {}, model = true },
  { { 'ZRANGEBYSCORE', 'z', '( 0', '1\0x' }, after = 'ZADD z 0 z 1 a', gives = { 'a' },
    model = true },
  { { 'ZRANGEBYSCORE', 'z', '', '1e400' }, after = 'ZADD z 0 a 1 b', gives = { 'a', 'b' } },
  scored('ZCOUNT z 1 (3.5', { gives = 3 }),
  scored('ZCOUNT z 9 1', { gives = 0 }),
  { 'ZCOUNT z 1 2', gives = 0 },
  { 'ZCOUNT k 1 x', after = 'SET k v', fails = NO_RANGE },
  { 'ZCOUNT k 1 2', after = 'SET k v', fails = WRONGTYPE },

  lexical('ZRANGEBYLEX z - +', { gives = { 'a', 'ab', 'b', 'c' } }),
  lexical('ZRANGEBYLEX z [ab (c', { gives = { 'ab', 'b' } }),
  lexical('ZRANGEBYLEX z (a [b LIMIT 1 5', { gives = { 'b' } }),
  lexical('ZRANGEBYLEX z + -', { gives = {} }),
  lexical('ZRANGEBYLEX z [ +', { gives = { 'a', 'ab', 'b', 'c' } }),
  lexical('ZRANGEBYLEX z - + WITHSCORES', { fails = LEX_SCORES }),
  lexical('ZRANGE z [ab + BYLEX', { gives = { 'ab', 'b', 'c' } }),
  lexical('ZRANGE z + (b bylex rev', { gives = { 'c' } }),
  lexical('ZRANGE z - + BYLEX WITHSCORES', { fails = LEX_SCORES }),
  lexical('ZREVRANGEBYLEX z (c -', { gives = { 'b', 'ab', 'a' } }),
  lexical('ZLEXCOUNT z (a +', { gives = 3 }),
  lexical('ZREMRANGEBYLEX z (a (c', { gives = 2 }),
  { 'EXISTS z', after = 'ZADD z 0 a 0 b; ZREMRANGEBYLEX z - +', gives = 0 },
  { 'ZRANGE z 0 -1', after = 'ZADD z 0 a 0 b 0 c; ZREMRANGEBYLEX z [b +', gives = { 'a' } },
  { { 'ZRANGEBYLEX', 'z', '-\0', '[b\0' }, after = 'ZADD z 0 a 0 b 0 c', gives = { 'a', 'b' } },
  { 'ZRANGEBYLEX z -x +', fails = NO_LEX_RANGE },
  { 'ZRANGEBYLEX z a +', fails = NO_LEX_RANGE },
  { 'ZLEXCOUNT k - 1', after = 'SET k v', fails = NO_LEX_RANGE },
  { 'ZLEXCOUNT k - +', after = 'SET k v', fails = WRONGTYPE },
  { 'ZREMRANGEBYLEX z - x', fails = NO_LEX_RANGE },

  scored('ZREMRANGEBYSCORE z (1 2', { gives = 2 }),
  scored('ZREMRANGEBYSCORE z 5 6', { gives = 0 }),
  { 'ZRANGE z 0 -1', after = 'ZADD z 1 a 2 b 3 c; ZREMRANGEBYSCORE z -inf (2',
    gives = { 'b', 'c' } },
  { 'EXISTS z', after = 'ZADD z 1 a; ZREMRANGEBYSCORE z -inf +inf', gives = 0 },
  { 'PTTL z', after = 'ZADD z 1 a 2 b; PEXPIRE z 50000; ZREMRANGEBYSCORE z 1 1', about = 50000 },
  { 'ZREMRANGEBYSCORE z 1 2', gives = 0 },
  { 'ZREMRANGEBYSCORE k 1 x', after = 'SET k v', fails = NO_RANGE },
  { 'ZREMRANGEBYSCORE k 1 2', after = 'SET k v', fails = WRONGTYPE },
  scored('ZREMRANGEBYRANK z 1 -2', { gives = 4 }),
  { 'ZRANGE z 0 -1', after = 'ZADD z 1 a 2 b 3 c; ZREMRANGEBYRANK z 0 1', gives = { 'c' } },
  { 'EXISTS z', after = 'ZADD z 1 a; ZREMRANGEBYRANK z 0 -1', gives = 0 },
  { 'ZREMRANGEBYRANK z 0 1', gives = 0 },
  { 'ZREMRANGEBYRANK k 0 x', after = 'SET k v', fails = NOT_INTEGER },
  { 'ZREMRANGEBYRANK k 0 1', after = 'SET k v', fails = WRONGTYPE },
}
