-- SPDX-License-Identifier: Apache-2.0
-- Sorted sets member by member, as Redis 7.0.15 answers.
local null = require('latchkey.mock.convert').null

local WRONGTYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local NOT_A_FLOAT = 'ERR value is not a valid float'
local NOT_A_NUMBER = 'ERR resulting score is not a number (NaN)'
local NOT_POSITIVE = 'ERR value is out of range, must be positive'
local NX_AND_XX = 'ERR XX and NX options at the same time are not compatible'
local GT_AND_LT = 'ERR GT, LT, and/or NX options at the same time are not compatible'
local SYNTAX = 'ERR syntax error'

local function arity(command)
  return ("ERR wrong number of arguments for '%s' command"):format(command)
end

-- How a score is printed.
local function prints(score, text)
  return { 'ZSCORE z a', after = ('ZADD z %s a'):format(score), gives = text }
end

local function refuses(score)
  return { { 'ZADD', 'z', score, 'a' }, fails = NOT_A_FLOAT }
end

return {
  { 'ZADD z 1 a', gives = 1 },
  { 'ZADD z 1 a 2 b 3 a', gives = 2 },
  { 'ZADD z 2 a 3 b', after = 'ZADD z 1 a', gives = 1 },
  { 'ZRANGE z 0 -1 WITHSCORES', after = 'ZADD z 3 a 2 b 2 ab 2 B',
    gives = { 'B', '2', 'ab', '2', 'b', '2', 'a', '3' } },
  { 'ZRANGE z 0 -1',
    after = { { 'ZADD', 'z', '0', '', '0', '\0', '0', 'a\0', '0', 'a', '0', '\255' } },
    gives = { '', '\0', 'a', 'a\0', '\255' } },
  { 'ZRANGE z 0 -1', after = 'ZADD z 1 a 2 b; ZADD z 3 a', gives = { 'b', 'a' } },
  { 'PTTL z', after = 'ZADD z 1 a; PEXPIRE z 50000; ZADD z 2 b', about = 50000 },
  { 'TYPE z', after = 'ZADD z 1 a', gives = { ok = 'zset' } },
  { 'GET z', after = 'ZADD z 1 a', fails = WRONGTYPE },
  { 'LLEN z', after = 'ZADD z 1 a', fails = WRONGTYPE },
  { 'ZADD k 1 a', after = 'SET k v', fails = WRONGTYPE },
  { 'ZADD k x a', after = 'SET k v', fails = NOT_A_FLOAT },
  { 'ZADD z 1 a x b', fails = NOT_A_FLOAT },
  { script = "redis.pcall('ZADD', 'z', '1', 'a', 'x', 'b') return redis.call('EXISTS', 'z')",
    gives = 0 },
  { 'ZADD z 1', fails = arity('zadd') },
  { 'ZADD z 1 a 2', fails = SYNTAX },
  { 'ZADD z CH NX', fails = SYNTAX },
  { 'ZADD z FOO 1 a', fails = SYNTAX },
  { 'ZADD z FOO a', fails = NOT_A_FLOAT },
  { 'ZADD z 1 a', full = true, fails = "OOM command not allowed when used memory > 'maxmemory'." },
  { 'ZREM z a', full = true, gives = 0 },
  { 'ZADD z 1 a', replica = true, fails = "READONLY You can't write against a read only replica." },

  { 'ZADD z nx 5 a 6 b', after = 'ZADD z 1 a', gives = 1 },
  { 'ZSCORE z a', after = 'ZADD z 1 a; ZADD z NX 5 a', gives = '1' },
  { 'ZADD z XX 5 a 6 b', after = 'ZADD z 1 a', gives = 0 },
  { 'ZADD z XX CH 5 a 6 b', after = 'ZADD z 1 a', gives = 1 },
  { 'ZADD z XX 5 a', gives = 0 },
  { 'ZADD z CH 2 a 3 b 1 c', after = 'ZADD z 1 a 1 c', gives = 2 },
  { 'ZADD z GT CH 2 a 0 b 9 c', after = 'ZADD z 1 a 1 b', gives = 2 },
  { 'ZADD z GT CH 1 a', after = 'ZADD z 1 a', gives = 0 },
  { 'ZADD z LT CH 2 a 0 b', after = 'ZADD z 1 a 1 b', gives = 1 },
  { 'ZADD z XX GT CH 9 c', after = 'ZADD z 1 a', gives = 0 },
  { 'ZADD z NX XX 1 a', fails = NX_AND_XX },
  { 'ZADD z NX GT 1 a', fails = GT_AND_LT },
  { 'ZADD z LT NX 1 a', fails = GT_AND_LT },
  { 'ZADD z GT LT 1 a', fails = GT_AND_LT },
  { 'ZADD z NX XX GT x a', fails = NX_AND_XX },
  { 'ZADD z INCR 2 a', gives = '2' },
  { 'ZADD z INCR 2 a', after = 'ZADD z 1 a', gives = '3' },
  { 'ZADD z INCR CH 2 a', after = 'ZADD z 1 a', gives = '3' },
  { 'ZADD z INCR -0 a', gives = '-0' },
  { 'ZADD z NX INCR 2 a', after = 'ZADD z 1 a' },
  { 'ZADD z XX INCR 2 a' },
  { 'ZADD z GT INCR -2 a', after = 'ZADD z 1 a' },
  { 'ZADD z GT INCR 0 a', after = 'ZADD z 1 a' },
  { 'ZADD z LT INCR -2 a', after = 'ZADD z 1 a', gives = '-1' },
  { 'ZADD z INCR 1 a 2 b', fails = 'ERR INCR option supports a single increment-element pair' },
  { 'ZADD z INCR -inf a', after = 'ZADD z inf a', fails = NOT_A_NUMBER },

  prints('0', '0'), prints('-0', '0'), prints('1.0', '1'), prints('+1', '1'), prints('.5', '0.5'),
  prints('5.', '5'), prints('0.1', '0.10000000000000001'), prints('-2.25', '-2.25'),
  prints('1e3', '1000'), prints('1E-5', '1.0000000000000001e-05'),
  prints('1767225600000', '1767225600000'), prints('9007199254740993', '9007199254740992'),
  prints('9223372036854775807', '9.2233720368547758e+18'),
  prints('10000000000000000', '10000000000000000'), prints('1e17', '1e+17'),
  prints('5e-324', '4.9406564584124654e-324'), prints('inf', 'inf'), prints('+Inf', 'inf'),
  prints('-infinity', '-inf'),
  refuses(''), refuses('x'), refuses('nan'), refuses('1x'), refuses('1e'), refuses('1e+'),
  refuses('.'), refuses('--1'), refuses(' 1'), refuses('1 '), refuses('1\0'), refuses('1e400'),
  refuses('-1e400'), refuses('1e-400'), refuses('0b1'), refuses('1_000'), refuses('0x'),

  { 'ZINCRBY z 2.5 a', gives = '2.5' },
  { 'ZINCRBY z -1 a', after = 'ZADD z 3 a 2 b', gives = '2' },
  { 'ZRANGE z 0 -1', after = 'ZADD z 1 a 2 b; ZINCRBY z 5 a', gives = { 'b', 'a' } },
  { 'ZINCRBY z inf a', after = 'ZADD z -inf a', fails = NOT_A_NUMBER },
  { 'ZINCRBY z x a', fails = NOT_A_FLOAT },
  { 'ZINCRBY z NX a', fails = SYNTAX },
  { 'ZINCRBY k 1 a', after = 'SET k v', fails = WRONGTYPE },
  { 'ZREM z a b', gives = 0 },
  { 'ZREM z a a c', after = 'ZADD z 1 a 2 b', gives = 1 },
  { 'EXISTS z', after = 'ZADD z 1 a 2 b; ZREM z a b', gives = 0 },
  { 'ZREM k a', after = 'SET k v', fails = WRONGTYPE },
  { 'ZREM z', fails = arity('zrem') },
  { 'ZSCORE z a' },
  { 'ZSCORE z b', after = 'ZADD z 1 a' },
  { 'ZSCORE k a', after = 'SET k v', fails = WRONGTYPE },
  { 'ZMSCORE z a b', after = 'ZADD z 1 a', gives = { '1', null } },
  { 'ZMSCORE z a', gives = { null } },
  { 'ZMSCORE k a', after = 'SET k v', fails = WRONGTYPE },
  { 'ZCARD z', gives = 0 },
  { 'ZCARD z', after = 'ZADD z 1 a 2 b', gives = 2 },
  { 'ZCARD k', after = 'SET k v', fails = WRONGTYPE },
  { 'ZRANK z a' },
  { 'ZRANK z b', after = 'ZADD z 1 a 2 b 3 c', gives = 1 },
  { 'ZRANK z x', after = 'ZADD z 1 a' },
  { 'ZRANK k a', after = 'SET k v', fails = WRONGTYPE },
  { 'ZREVRANK z a', after = 'ZADD z 1 a 2 b 3 c', gives = 2 },
  { 'ZREVRANK k a', after = 'SET k v', fails = WRONGTYPE },

  { 'ZPOPMIN z', gives = {} },
  { 'ZPOPMIN z', after = 'ZADD z 2 b 1 a', gives = { 'a', '1' } },
  { 'ZPOPMAX z', after = 'ZADD z 2 b 1 a', gives = { 'b', '2' } },
  { 'ZPOPMIN z 2', after = 'ZADD z 2 b 1 a 3 c', gives = { 'a', '1', 'b', '2' } },
  { 'ZPOPMAX z 9', after = 'ZADD z 2 b 1.5 a 2 c', gives = { 'c', '2', 'b', '2', 'a', '1.5' } },
  { 'EXISTS z', after = 'ZADD z 2 b; ZPOPMIN z', gives = 0 },
  { 'PTTL z', after = 'ZADD z 2 b 1 a; PEXPIRE z 50000; ZPOPMIN z', about = 50000 },
  { 'ZPOPMIN z 0', after = 'ZADD z 1 a', gives = {} },
  { 'ZPOPMIN z -1', fails = NOT_POSITIVE },
  { 'ZPOPMIN k x', after = 'SET k v', fails = NOT_POSITIVE },
  { 'ZPOPMIN k 0', after = 'SET k v', fails = WRONGTYPE },
  { 'ZPOPMAX k', after = 'SET k v', fails = WRONGTYPE },
  { 'ZPOPMAX z 1 2', fails = SYNTAX },
}
