-- SPDX-License-Identifier: Apache-2.0
-- Sorted sets, member by member.
local arrays = require('latchkey.mock.arrays')
local scores = require('latchkey.mock.scores')
local zset = require('latchkey.mock.zset')

local ONE_KEY = { 1, 1, 1 }
local NOT_A_NUMBER = 'ERR resulting score is not a number (NaN)'

local ZADD_OPTIONS = { NX = true, XX = true, GT = true, LT = true, CH = true, INCR = true }

-- Options stand before the first score.
local function read_options(argv)
  local options, i = {}, 3
  while argv[i] and ZADD_OPTIONS[argv[i]:upper()] do
    options[argv[i]:upper()] = true
    i = i + 1
  end
  return options, i
end

local function options_refuse(options, count)
  if count == 0 or count % 2 == 1 then
    return arrays.SYNTAX
  elseif options.NX and options.XX then
    return 'ERR XX and NX options at the same time are not compatible'
  elseif (options.NX and (options.GT or options.LT)) or (options.GT and options.LT) then
    return 'ERR GT, LT, and/or NX options at the same time are not compatible'
  elseif options.INCR and count > 2 then
    return 'ERR INCR option supports a single increment-element pair'
  end
end

local function read_entries(argv, first)
  local entries = {}
  for i = first, #argv, 2 do
    local score, bad = scores.parse(argv[i])
    if bad then
      return nil, bad
    end
    entries[#entries + 1] = { argv[i + 1], score }
  end
  return entries
end

-- What the score becomes; nil: nothing happens.
local function new_score(options, old, score)
  if not old then
    return not options.XX and score or nil
  elseif options.NX then
    return nil
  end
  if options.INCR then
    score = old + score
    if score ~= score then
      return nil, NOT_A_NUMBER
    end
  end
  if (options.GT and score <= old) or (options.LT and score >= old) then
    return nil
  end
  return score
end

-- How many entries were added, how many were changed, and the last score that was set.
local function add_entries(new, options, entries)
  local added, changed, last = 0, 0, nil
  local known = zset.scores(new)
  for _, entry in ipairs(entries) do
    local member, old = entry[1], known[entry[1]]
    local score, bad = new_score(options, old, entry[2])
    if bad then
      return nil, bad
    end
    if score and score ~= old then
      known[member] = zset.set(new, member, score, not old)
      added = added + (old and 0 or 1)
      changed = changed + (old and 1 or 0)
    end
    last = score
  end
  return { added = added, changed = changed, last = last }
end

local function add(world, argv, always_incr)
  local options, first = read_options(argv)
  options.INCR = options.INCR or always_incr
  local refusal = options_refuse(options, #argv - first + 1)
  if refusal then
    return nil, refusal
  end
  local entries, bad = read_entries(argv, first)
  if bad then
    return nil, bad
  end
  local old, wrong = zset.read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local new = arrays.copy(old)
  local done, bad_sum = add_entries(new, options, entries)
  if bad_sum then
    return nil, bad_sum
  end
  if done.added + done.changed > 0 then
    zset.write(world, argv[2], new)
  else
    world.store:confirm(argv[2])
  end
  if options.INCR then
    return done.last and scores.text(done.last) or false
  end
  return done.added + (options.CH and done.changed or 0)
end

local function zincrby(world, argv)
  return add(world, argv, true)
end

local function zrem(world, argv)
  local entries, wrong = zset.read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local left, removed = arrays.copy(entries), 0
  for i = 3, #argv do
    local place = zset.place(left, argv[i])
    if place then
      table.remove(left, place)
      removed = removed + 1
    end
  end
  if removed > 0 then
    zset.write(world, argv[2], left)
  end
  return removed
end

local function zcard(world, argv)
  local entries, wrong = zset.read(world, argv[2])
  return entries and #entries, wrong
end

local function zmscore(world, argv)
  local entries, wrong = zset.read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local found = {}
  for i = 3, #argv do
    local score = zset.score(entries, argv[i])
    found[i - 2] = score and scores.text(score) or false
  end
  return found
end

local function zscore(world, argv)
  local found, wrong = zmscore(world, argv)
  return found and found[1], wrong
end

local function rank(reverse)
  return function(world, argv)
    local entries, wrong = zset.read(world, argv[2])
    if wrong then
      return nil, wrong
    end
    local place = zset.place(entries, argv[3])
    if not place then
      return false
    end
    return reverse and #entries - place or place - 1
  end
end

local function pop(greatest)
  return function(world, argv)
    if #argv > 3 then
      return nil, arrays.SYNTAX
    end
    local count, bad = arrays.read_count(argv[3] or '1')
    if bad then
      return nil, bad
    end
    local entries, wrong = zset.read(world, argv[2])
    if wrong then
      return nil, wrong
    end
    local first, last = 1, math.min(count, #entries)
    if greatest then
      first, last = #entries + 1 - last, #entries
    end
    local popped = arrays.copy(entries, first, last)
    if popped[1] then
      zset.write(world, argv[2], arrays.without(entries, first, last))
    else
      world.store:confirm(argv[2])
    end
    return zset.reply(greatest and arrays.reverse(popped) or popped, true)
  end
end

local WRITE = 'write denyoom'

return {
  ZADD = { arity = -4, flags = WRITE, keys = ONE_KEY, run = add },
  ZINCRBY = { arity = 4, flags = WRITE, keys = ONE_KEY, run = zincrby },
  ZREM = { arity = -3, flags = 'write', keys = ONE_KEY, run = zrem },
  ZCARD = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = zcard },
  ZSCORE = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = zscore },
  ZMSCORE = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = zmscore },
  ZRANK = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = rank(false) },
  ZREVRANK = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = rank(true) },
  ZPOPMIN = { arity = -2, flags = 'write', keys = ONE_KEY, run = pop(false) },
  ZPOPMAX = { arity = -2, flags = 'write', keys = ONE_KEY, run = pop(true) },
}
