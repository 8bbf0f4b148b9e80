-- SPDX-License-Identifier: Apache-2.0
-- Hashes. The value is { field, value, field, value ... } in the order in which fields came, which
-- is how a server keeps a small hash.
local arrays = require('latchkey.mock.arrays')
local integers = require('latchkey.mock.integers')

local ONE_KEY = { 1, 1, 1 }

local copy = arrays.copy

local function read(world, key)
  return arrays.read(world, key, 'hash')
end

local function write(world, key, pairs_)
  arrays.write(world, key, 'hash', pairs_)
end

local function place(pairs_, field)
  for i = 1, #pairs_, 2 do
    if pairs_[i] == field then
      return i
    end
  end
  return nil
end

local function set_fields(world, argv)
  if #argv % 2 == 1 then
    return nil, ("ERR wrong number of arguments for '%s' command"):format(argv[1]:lower())
  end
  local old, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local new, added = copy(old), 0
  for i = 3, #argv, 2 do
    local at = place(new, argv[i])
    if not at then
      at = #new + 1
      added = added + 1
    end
    new[at], new[at + 1] = argv[i], argv[i + 1]
  end
  write(world, argv[2], new)
  return added
end

local function hmset(world, argv)
  local added, wrong = set_fields(world, argv)
  return added and { ok = 'OK' }, wrong
end

local function hsetnx(world, argv)
  local old, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif place(old, argv[3]) then
    return 0
  end
  return set_fields(world, argv)
end

local function hget(world, argv)
  local fields, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local at = place(fields, argv[3])
  return at and fields[at + 1] or false
end

local function hmget(world, argv)
  local fields, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local values = {}
  for i = 3, #argv do
    local at = place(fields, argv[i])
    values[i - 2] = at and fields[at + 1] or false
  end
  return values
end

local function hgetall(world, argv)
  local fields, wrong = read(world, argv[2])
  return fields and copy(fields), wrong
end

-- HKEYS (offset 0) and HVALS (offset 1).
local function every_second(offset)
  return function(world, argv)
    local fields, wrong = read(world, argv[2])
    if wrong then
      return nil, wrong
    end
    local found = {}
    for i = 1, #fields, 2 do
      found[#found + 1] = fields[i + offset]
    end
    return found
  end
end

local function hexists(world, argv)
  local fields, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  return place(fields, argv[3]) and 1 or 0
end

local function hlen(world, argv)
  local fields, wrong = read(world, argv[2])
  return fields and #fields / 2, wrong
end

local function hstrlen(world, argv)
  local value, wrong = hget(world, argv)
  if wrong then
    return nil, wrong
  end
  return value and #value or 0
end

local function hdel(world, argv)
  local fields, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local gone, left = {}, {}
  for i = 3, #argv do
    gone[argv[i]] = true
  end
  for i = 1, #fields, 2 do
    if not gone[fields[i]] then
      left[#left + 1] = fields[i]
      left[#left + 1] = fields[i + 1]
    end
  end
  if #left < #fields then
    write(world, argv[2], left)
  end
  return (#fields - #left) / 2
end

local function hincrby(world, argv)
  local step, bad_step = integers.parse(argv[4])
  if bad_step then
    return nil, bad_step
  end
  local value, wrong = hget(world, argv)
  if wrong then
    return nil, wrong
  end
  local n, bad_value = integers.parse(value or '0')
  if bad_value then
    return nil, bad_value == integers.NOT_AN_INTEGER and 'ERR hash value is not an integer'
      or bad_value
  end
  local sum, too_big = integers.add(n, step)
  if too_big then
    return nil, too_big
  end
  set_fields(world, { argv[1], argv[2], argv[3], integers.text(sum) })
  return sum
end

local WRITE = 'write denyoom'

return {
  HSET = { arity = -4, flags = WRITE, keys = ONE_KEY, run = set_fields },
  HMSET = { arity = -4, flags = WRITE, keys = ONE_KEY, run = hmset },
  HSETNX = { arity = 4, flags = WRITE, keys = ONE_KEY, run = hsetnx },
  HGET = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = hget },
  HMGET = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = hmget },
  HGETALL = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = hgetall },
  HKEYS = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = every_second(0) },
  HVALS = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = every_second(1) },
  HEXISTS = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = hexists },
  HLEN = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = hlen },
  HSTRLEN = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = hstrlen },
  HDEL = { arity = -3, flags = 'write', keys = ONE_KEY, run = hdel },
  HINCRBY = { arity = 4, flags = WRITE, keys = ONE_KEY, run = hincrby },
}
