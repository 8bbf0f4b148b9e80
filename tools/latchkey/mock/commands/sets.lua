-- SPDX-License-Identifier: Apache-2.0
-- Sets. The value is an array of members: in the order of numbers while all that ever came are
-- integers, in the order in which they came afterwards (`loose`). So does a server from 7.2 on
-- while a set is small; one of 7.0 has an order of its own where a member is no integer.
local arrays = require('latchkey.mock.arrays')
local choice = require('latchkey.mock.choice')
local integers = require('latchkey.mock.integers')

local ONE_KEY, TWO_KEYS, ALL_KEYS = { 1, 1, 1 }, { 1, 2, 1 }, { 1, -1, 1 }

local function read(world, key)
  return arrays.read(world, key, 'set')
end

local function place(members, member)
  for i = 1, #members do
    if members[i] == member then
      return i
    end
  end
  return nil
end

local function is_before(a, b)
  local x, y = tonumber(a), tonumber(b)
  if x ~= y then
    return x < y
  end
  -- Beyond 2^53 two of them can be one number of Lua.
  return (x < 0) ~= (#a < #b or #a == #b and a < b)
end

local function copy(members)
  local new = arrays.copy(members)
  new.loose = members.loose
  return new
end

local function add(members, member)
  if place(members, member) then
    return 0
  end
  members.loose = members.loose or not integers.is_int64(member) or nil
  local at = #members + 1
  while not members.loose and at > 1 and is_before(member, members[at - 1]) do
    at = at - 1
  end
  table.insert(members, at, member)
  return 1
end

local function write(world, key, members)
  arrays.write(world, key, 'set', members)
end

local function sadd(world, argv)
  local old, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local new, added = copy(old), 0
  for i = 3, #argv do
    added = added + add(new, argv[i])
  end
  if added > 0 then
    write(world, argv[2], new)
  end
  return added
end

local function without(members, gone)
  local left = { loose = members.loose }
  for _, member in ipairs(members) do
    if not place(gone, member) then
      left[#left + 1] = member
    end
  end
  return left
end

local function srem(world, argv)
  local members, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local left = without(members, arrays.copy(argv, 3))
  local removed = #members - #left
  if removed > 0 then
    write(world, argv[2], left)
  end
  return removed
end

local function scard(world, argv)
  local members, wrong = read(world, argv[2])
  return members and #members, wrong
end

local function sismember(world, argv)
  local members, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  return place(members, argv[3]) and 1 or 0
end

local function smismember(world, argv)
  local members, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local found = {}
  for i = 3, #argv do
    found[i - 2] = place(members, argv[i]) and 1 or 0
  end
  return found
end

local function smembers(world, argv)
  local members, wrong = read(world, argv[2])
  return members and arrays.copy(members), wrong
end

local function smove(world, argv)
  if not world.store:get(argv[2]) then
    return 0
  end
  local from, wrong = read(world, argv[2])
  local to, wrong_to = read(world, argv[3])
  if wrong or wrong_to then
    return nil, wrong or wrong_to
  elseif not place(from, argv[4]) then
    return 0
  elseif argv[2] == argv[3] then
    return 1
  end
  local new = copy(to)
  write(world, argv[2], without(from, { argv[4] }))
  if add(new, argv[4]) > 0 then
    write(world, argv[3], new)
  end
  return 1
end

-- The sets of `keys`; all have the right type, or it is an error.
local function read_all(world, keys)
  local sets = {}
  for i, key in ipairs(keys) do
    local members, wrong = read(world, key)
    if wrong then
      return nil, wrong
    end
    sets[i] = members
  end
  return sets
end

local function united(sets)
  local all = {}
  for _, members in ipairs(sets) do
    for _, member in ipairs(members) do
      add(all, member)
    end
  end
  return all
end

local function is_in_all(sets, member)
  for _, members in ipairs(sets) do
    if not place(members, member) then
      return false
    end
  end
  return true
end

-- In the order of the smallest.
local function common(sets)
  local least = sets[1]
  for _, members in ipairs(sets) do
    least = #members < #least and members or least
  end
  local all = {}
  for _, member in ipairs(least) do
    if is_in_all(sets, member) then
      all[#all + 1] = member
    end
  end
  return all
end

local function only_first(sets)
  local left = sets[1]
  for i = 2, #sets do
    left = without(left, sets[i])
  end
  return united({ left })
end

local function combine(operation)
  return function(world, argv)
    local sets, wrong = read_all(world, arrays.copy(argv, 2))
    return sets and arrays.copy(operation(sets)), wrong
  end
end

local function store(operation)
  return function(world, argv)
    local sets, wrong = read_all(world, arrays.copy(argv, 3))
    if wrong then
      return nil, wrong
    end
    local result = united({ operation(sets) })
    world.store:put(argv[2], nil)
    write(world, argv[2], result)
    return #result
  end
end

local function read_limit(argv, first)
  local limit = 0
  for i = first, #argv, 2 do
    if argv[i]:upper() ~= 'LIMIT' or not argv[i + 1] then
      return nil, arrays.SYNTAX
    end
    local bad
    limit, bad = arrays.read_count(argv[i + 1], "ERR LIMIT can't be negative")
    if bad then
      return nil, bad
    end
  end
  return limit
end

local function sintercard(world, argv)
  local refusal = 'ERR numkeys should be greater than 0'
  local count, bad = arrays.read_count(argv[2], refusal)
  if bad or count == 0 then
    return nil, bad or refusal
  elseif count > #argv - 2 then
    return nil, "ERR Number of keys can't be greater than number of args"
  end
  local limit, bad_limit = read_limit(argv, count + 3)
  if bad_limit then
    return nil, bad_limit
  end
  local sets, wrong = read_all(world, arrays.copy(argv, 3, count + 2))
  if wrong then
    return nil, wrong
  end
  local found = #common(sets)
  return limit > 0 and math.min(limit, found) or found
end

local function spop(world, argv)
  local members, wrong = read(world, argv[2])
  local count, bad = choice.count(argv)
  if bad or wrong then
    return nil, bad or wrong
  end
  local chosen, unknown = choice.of(members, count)
  if chosen and #members > 0 and count ~= 0 then
    world.store:put(argv[2], nil)
  end
  return chosen, unknown
end

local function srandmember(world, argv)
  local count, bad = choice.count(argv, 'any')
  if bad then
    return nil, bad
  end
  local members, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  return choice.of(members, count)
end

local WRITE = 'write denyoom'

return {
  SADD = { arity = -3, flags = WRITE, keys = ONE_KEY, run = sadd },
  SREM = { arity = -3, flags = 'write', keys = ONE_KEY, run = srem },
  SCARD = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = scard },
  SISMEMBER = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = sismember },
  SMISMEMBER = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = smismember },
  SMEMBERS = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = smembers },
  SMOVE = { arity = 4, flags = 'write', keys = TWO_KEYS, run = smove },
  SUNION = { arity = -2, flags = 'readonly', keys = ALL_KEYS, run = combine(united) },
  SINTER = { arity = -2, flags = 'readonly', keys = ALL_KEYS, run = combine(common) },
  SDIFF = { arity = -2, flags = 'readonly', keys = ALL_KEYS, run = combine(only_first) },
  SUNIONSTORE = { arity = -3, flags = WRITE, keys = ALL_KEYS, run = store(united) },
  SINTERSTORE = { arity = -3, flags = WRITE, keys = ALL_KEYS, run = store(common) },
  SDIFFSTORE = { arity = -3, flags = WRITE, keys = ALL_KEYS, run = store(only_first) },
  SINTERCARD = { arity = -3, flags = 'readonly', counted = 2, run = sintercard },
  SPOP = { arity = -2, flags = 'write', keys = ONE_KEY, run = spop },
  SRANDMEMBER = { arity = -2, flags = 'readonly', keys = ONE_KEY, run = srandmember },
}
