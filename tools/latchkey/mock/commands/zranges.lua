-- SPDX-License-Identifier: Apache-2.0
-- Sorted sets, by range: of ranks, of scores, or of members in byte order.
local arrays = require('latchkey.mock.arrays')
local integers = require('latchkey.mock.integers')
local scores = require('latchkey.mock.scores')
local zset = require('latchkey.mock.zset')

local ONE_KEY = { 1, 1, 1 }
local NO_LIMIT = -1
local RANK_LIMIT = 'ERR syntax error, LIMIT is only supported in combination with either BYSCORE'
  .. ' or BYLEX'
local LEX_SCORES = 'ERR syntax error, WITHSCORES not supported in combination with BYLEX'
local NO_LEX_RANGE = 'ERR min or max not valid string range item'
local MIXED = 'MOCK a range of members whose scores differ is not modelled'

local function keep(entries, wanted)
  local kept = {}
  for _, entry in ipairs(entries) do
    if wanted(entry) then
      kept[#kept + 1] = entry
    end
  end
  return kept
end

local function parse_lex_bound(text)
  local kind = text:sub(1, 1)
  if kind == '(' or kind == '[' then
    return { member = text:sub(2), open = kind == '(' }
  elseif text:find('^[+-]$') or text:find('^[+-]%z') then
    return { edge = kind }
  end
  return nil, NO_LEX_RANGE
end

local function parse_lex_range(min, max)
  local from, bad_min = parse_lex_bound(min)
  if bad_min then
    return nil, bad_min
  end
  local to, bad_max = parse_lex_bound(max)
  return to and { from, to }, bad_max
end

local function is_after(from, member)
  if from.edge then
    return from.edge == '-'
  end
  return from.member < member or (from.member == member and not from.open)
end

local function is_until(to, member)
  if to.edge then
    return to.edge == '+'
  end
  return member < to.member or (member == to.member and not to.open)
end

-- How each kind of range is read from two arguments, and what it takes of the entries.
local RANGES = {
  rank = {
    parse = arrays.read_range,
    take = function(range, entries)
      return arrays.copy(entries, arrays.places(range, #entries))
    end,
  },
  score = {
    parse = scores.parse_range,
    take = function(range, entries)
      return keep(entries, function(entry)
        return scores.within(range, entry[2])
      end)
    end,
  },
  lex = {
    parse = parse_lex_range,
    take = function(range, entries)
      if #entries > 0 and entries[1][2] ~= entries[#entries][2] then
        return nil, MIXED
      end
      return keep(entries, function(entry)
        return is_after(range[1], entry[1]) and is_until(range[2], entry[1])
      end)
    end,
  },
}

-- What the range takes, and all entries.
local function read_range(world, key, by, min, max, reverse)
  local range, bad = RANGES[by].parse(min, max)
  if bad then
    return nil, bad
  end
  local entries, wrong = zset.read(world, key)
  if wrong then
    return nil, wrong
  end
  local taken, refusal = RANGES[by].take(range, reverse and arrays.reverse(entries) or entries)
  return taken, refusal, entries
end

local BY = { BYSCORE = 'score', BYLEX = 'lex' }

-- The kind and the direction of the range are options only where the command leaves them open.
local function read_options(argv, by, reverse)
  local options = { by = by, reverse = reverse, offset = 0, count = NO_LIMIT }
  local i = 5
  while i <= #argv do
    local word = argv[i]:upper()
    if word == 'WITHSCORES' then
      options.with_scores = true
    elseif word == 'LIMIT' and argv[i + 2] then
      local bad_offset, bad_count
      options.offset, bad_offset = integers.parse(argv[i + 1])
      options.count, bad_count = integers.parse(argv[i + 2])
      if bad_offset or bad_count then
        return nil, bad_offset or bad_count
      end
      i = i + 2
    elseif word == 'REV' and options.reverse == nil then
      options.reverse = true
    elseif BY[word] and not options.by then
      options.by = BY[word]
    else
      return nil, arrays.SYNTAX
    end
    i = i + 1
  end
  options.by = options.by or 'rank'
  if options.by == 'rank' and options.count ~= NO_LIMIT then
    return nil, RANK_LIMIT
  elseif options.by == 'lex' and options.with_scores then
    return nil, LEX_SCORES
  end
  return options
end

-- A negative count is no limit, a negative offset is beyond every end.
local function limit(entries, offset, count)
  if offset < 0 then
    return {}
  end
  local last = count < 0 and #entries or math.min(offset + count, #entries)
  return arrays.copy(entries, offset + 1, last)
end

local function zrange(by, reverse)
  return function(world, argv)
    local options, bad = read_options(argv, by, reverse)
    if bad then
      return nil, bad
    end
    local min, max = argv[3], argv[4]
    if options.reverse and options.by ~= 'rank' then
      min, max = max, min
    end
    local taken, wrong = read_range(world, argv[2], options.by, min, max, options.reverse)
    if wrong then
      return nil, wrong
    end
    if options.by ~= 'rank' then
      taken = limit(taken, options.offset, options.count)
    end
    return zset.reply(taken, options.with_scores)
  end
end

local function count_of(by)
  return function(world, argv)
    local taken, wrong = read_range(world, argv[2], by, argv[3], argv[4])
    return taken and #taken, wrong
  end
end

local function remove(by)
  return function(world, argv)
    local taken, wrong, entries = read_range(world, argv[2], by, argv[3], argv[4])
    if wrong then
      return nil, wrong
    elseif #taken > 0 then
      local first = zset.place(entries, taken[1][1])
      zset.write(world, argv[2], arrays.without(entries, first, first + #taken - 1))
    end
    return #taken
  end
end

return {
  ZRANGE = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = zrange() },
  ZREVRANGE = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = zrange('rank', true) },
  ZRANGEBYSCORE = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = zrange('score', false) },
  ZREVRANGEBYSCORE = { arity = -4, flags = 'readonly', keys = ONE_KEY,
    run = zrange('score', true) },
  ZRANGEBYLEX = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = zrange('lex', false) },
  ZREVRANGEBYLEX = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = zrange('lex', true) },
  ZCOUNT = { arity = 4, flags = 'readonly', keys = ONE_KEY, run = count_of('score') },
  ZLEXCOUNT = { arity = 4, flags = 'readonly', keys = ONE_KEY, run = count_of('lex') },
  ZREMRANGEBYRANK = { arity = 4, flags = 'write', keys = ONE_KEY, run = remove('rank') },
  ZREMRANGEBYSCORE = { arity = 4, flags = 'write', keys = ONE_KEY, run = remove('score') },
  ZREMRANGEBYLEX = { arity = 4, flags = 'write', keys = ONE_KEY, run = remove('lex') },
}
