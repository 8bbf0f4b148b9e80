-- SPDX-License-Identifier: Apache-2.0
-- Lists. The value is the array of elements, the left end first.
local arrays = require('latchkey.mock.arrays')
local integers = require('latchkey.mock.integers')

local ONE_KEY, TWO_KEYS = { 1, 1, 1 }, { 1, 2, 1 }
local OK = 'OK'
local ZERO_RANK = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second"
  .. ' ... or use negative to start from the end of the list'

local function read(world, key)
  return arrays.read(world, key, 'list')
end

local function write(world, key, list)
  arrays.write(world, key, 'list', list)
end

local function add(list, side, element)
  if side == 'LEFT' then
    table.insert(list, 1, element)
  else
    list[#list + 1] = element
  end
end

local function push(side, must_exist)
  return function(world, argv)
    local old, wrong = read(world, argv[2])
    if wrong then
      return nil, wrong
    elseif must_exist and #old == 0 then
      return 0
    end
    local new = arrays.copy(old)
    for i = 3, #argv do
      add(new, side, argv[i])
    end
    write(world, argv[2], new)
    return #new
  end
end

-- The places of so many elements at one side.
local function places_at(side, n, count)
  if side == 'LEFT' then
    return 1, math.min(count, n)
  end
  return math.max(n - count, 0) + 1, n
end

local function pop(side)
  return function(world, argv)
    if #argv > 3 then
      return nil, ("ERR wrong number of arguments for '%s' command"):format(argv[1]:lower())
    end
    local count, bad_count = 1, nil
    if argv[3] then
      count, bad_count = arrays.read_count(argv[3])
    end
    if bad_count then
      return nil, bad_count
    end
    local list, wrong = read(world, argv[2])
    if wrong then
      return nil, wrong
    elseif #list == 0 then
      return false
    elseif count == 0 then
      return {}
    end
    local first, last = places_at(side, #list, count)
    write(world, argv[2], arrays.without(list, first, last))
    local popped = arrays.copy(list, first, last)
    if not argv[3] then
      return popped[1]
    end
    return side == 'LEFT' and popped or arrays.reverse(popped)
  end
end

local function llen(world, argv)
  local list, wrong = read(world, argv[2])
  return list and #list, wrong
end

-- An index, from 0 or from the end, as a place in a list of n.
local function read_place(text, n)
  local index, bad = integers.parse(text)
  return index and (index < 0 and index + n or index) + 1, bad
end

local function lindex(world, argv)
  local list, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif #list == 0 then
    return false
  end
  local place, bad = read_place(argv[3], #list)
  if bad then
    return nil, bad
  end
  return list[place] or false
end

local function lset(world, argv)
  local list, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif #list == 0 then
    return nil, 'ERR no such key'
  end
  local place, bad = read_place(argv[3], #list)
  if bad then
    return nil, bad
  elseif not list[place] then
    return nil, 'ERR index out of range'
  end
  local new = arrays.copy(list)
  new[place] = argv[4]
  write(world, argv[2], new)
  return { ok = OK }
end

-- The part of a list that two arguments name.
local function read_part(world, argv)
  local range, bad = arrays.read_range(argv[3], argv[4])
  if bad then
    return nil, bad
  end
  local list, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  return arrays.copy(list, arrays.places(range, #list))
end

local function ltrim(world, argv)
  local part, bad = read_part(world, argv)
  if bad then
    return nil, bad
  end
  write(world, argv[2], part)
  return { ok = OK }
end

-- Keeps what is not the element, and what is once `count` of them have gone.
local function remove(list, element, count)
  local left, removed = {}, 0
  for i = 1, #list do
    if list[i] == element and removed < count then
      removed = removed + 1
    else
      left[#left + 1] = list[i]
    end
  end
  return left, removed
end

local function lrem(world, argv)
  local count, bad = integers.parse(argv[3])
  if bad then
    return nil, bad
  end
  local list, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local left, removed
  if count < 0 then
    left, removed = remove(arrays.reverse(list), argv[4], -count)
    left = arrays.reverse(left)
  else
    left, removed = remove(list, argv[4], count == 0 and #list or count)
  end
  if removed > 0 then
    write(world, argv[2], left)
  end
  return removed
end

local function read_rank(text)
  local rank, bad = integers.parse(text)
  if rank == 0 then
    return nil, ZERO_RANK
  end
  return rank, bad
end

local LPOS_OPTIONS = {
  RANK = read_rank,
  COUNT = function(text)
    return arrays.read_count(text, "ERR COUNT can't be negative")
  end,
  MAXLEN = function(text)
    return arrays.read_count(text, "ERR MAXLEN can't be negative")
  end,
}

local function read_lpos_options(argv)
  local options = { RANK = 1, MAXLEN = 0 }
  for i = 4, #argv, 2 do
    local word = argv[i]:upper()
    local option = LPOS_OPTIONS[word]
    if not option or not argv[i + 1] then
      return nil, arrays.SYNTAX
    end
    local value, bad = option(argv[i + 1])
    if bad then
      return nil, bad
    end
    options[word] = value
  end
  return options
end

-- Where the element is, counted from 0 from the left: at most `count` places from the rank-th on,
-- among the first `reach` elements from the end at which the rank starts.
local function find(list, element, rank, count, reach)
  local n, found, matches = #list, {}, 0
  for i = 1, math.min(n, reach) do
    local place = rank < 0 and n + 1 - i or i
    if list[place] == element then
      matches = matches + 1
      if matches >= math.abs(rank) then
        found[#found + 1] = place - 1
      end
    end
    if #found == count then
      break
    end
  end
  return found
end

local function lpos(world, argv)
  local options, bad = read_lpos_options(argv)
  if bad then
    return nil, bad
  end
  local list, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local count = options.COUNT or 1
  local found = find(list, argv[3], options.RANK, count == 0 and math.huge or count,
    options.MAXLEN == 0 and #list or options.MAXLEN)
  if options.COUNT then
    return found
  end
  return found[1] or false
end

local INSERT_BEHIND = { BEFORE = 0, AFTER = 1 }

local function linsert(world, argv)
  local behind = INSERT_BEHIND[argv[3]:upper()]
  if not behind then
    return nil, arrays.SYNTAX
  end
  local list, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif #list == 0 then
    return 0
  end
  local at = find(list, argv[4], 1, 1, #list)[1]
  if not at then
    return -1
  end
  local new = arrays.copy(list)
  table.insert(new, at + 1 + behind, argv[5])
  write(world, argv[2], new)
  return #new
end

local function move(world, source, destination, from, to)
  local list, wrong = read(world, source)
  if wrong then
    return nil, wrong
  elseif #list == 0 then
    return false
  end
  local others, wrong_too = read(world, destination)
  if wrong_too then
    return nil, wrong_too
  end
  local place = places_at(from, #list, 1)
  local left, element = arrays.without(list, place, place), list[place]
  local new = source == destination and left or arrays.copy(others)
  add(new, to, element)
  if source ~= destination then
    write(world, source, left)
  end
  write(world, destination, new)
  return element
end

local SIDES = { LEFT = true, RIGHT = true }

local function lmove(world, argv)
  local from, to = argv[4]:upper(), argv[5]:upper()
  if not SIDES[from] or not SIDES[to] then
    return nil, arrays.SYNTAX
  end
  return move(world, argv[2], argv[3], from, to)
end

local function rpoplpush(world, argv)
  return move(world, argv[2], argv[3], 'RIGHT', 'LEFT')
end

local WRITE = 'write denyoom'

return {
  LPUSH = { arity = -3, flags = WRITE, keys = ONE_KEY, run = push('LEFT') },
  RPUSH = { arity = -3, flags = WRITE, keys = ONE_KEY, run = push('RIGHT') },
  LPUSHX = { arity = -3, flags = WRITE, keys = ONE_KEY, run = push('LEFT', true) },
  RPUSHX = { arity = -3, flags = WRITE, keys = ONE_KEY, run = push('RIGHT', true) },
  LPOP = { arity = -2, flags = 'write', keys = ONE_KEY, run = pop('LEFT') },
  RPOP = { arity = -2, flags = 'write', keys = ONE_KEY, run = pop('RIGHT') },
  LLEN = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = llen },
  LINDEX = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = lindex },
  LRANGE = { arity = 4, flags = 'readonly', keys = ONE_KEY, run = read_part },
  LPOS = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = lpos },
  LSET = { arity = 4, flags = WRITE, keys = ONE_KEY, run = lset },
  LTRIM = { arity = 4, flags = 'write', keys = ONE_KEY, run = ltrim },
  LREM = { arity = 4, flags = 'write', keys = ONE_KEY, run = lrem },
  LINSERT = { arity = 5, flags = WRITE, keys = ONE_KEY, run = linsert },
  LMOVE = { arity = 5, flags = WRITE, keys = TWO_KEYS, run = lmove },
  RPOPLPUSH = { arity = 3, flags = WRITE, keys = TWO_KEYS, run = rpoplpush },
}
