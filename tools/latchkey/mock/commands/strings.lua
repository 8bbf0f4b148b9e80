-- SPDX-License-Identifier: Apache-2.0
-- Strings.
local arrays = require('latchkey.mock.arrays')
local deadline = require('latchkey.mock.deadline')
local integers = require('latchkey.mock.integers')

local ONE_KEY, ALL_KEYS, PAIRS = { 1, 1, 1 }, { 1, -1, 1 }, { 1, -1, 2 }
local WRONGTYPE, SYNTAX = arrays.WRONGTYPE, arrays.SYNTAX

local function read(world, key)
  local record = world.store:get(key)
  if record and record.type ~= 'string' then
    return nil, WRONGTYPE
  end
  return record
end

local function write(world, key, value, expires_at)
  world.store:put(key, { type = 'string', value = value, expires_at = expires_at })
end

local function get(world, argv)
  local record, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  return record and record.value or false
end

-- Which words SET and GETEX know, and which exclude each other: at most one of each class.
local SET_OPTIONS = { NX = 'condition', XX = 'condition', GET = 'get', KEEPTTL = 'expiry',
  EX = 'expiry', PX = 'expiry', EXAT = 'expiry', PXAT = 'expiry' }
local GETEX_OPTIONS = { PERSIST = 'expiry', EX = 'expiry', PX = 'expiry', EXAT = 'expiry',
  PXAT = 'expiry' }
local UNIT_MS = { EX = 1000, PX = 1, EXAT = 1000, PXAT = 1 }
local RELATIVE = { EX = true, PX = true }

local function read_options(argv, first, known)
  local options = {}
  local i = first
  while i <= #argv do
    local word = argv[i]:upper()
    local class = known[word]
    if not class or (options[class] and options[class] ~= word) then
      return nil, SYNTAX
    end
    if UNIT_MS[word] then
      i = i + 1
      if i > #argv then
        return nil, SYNTAX
      end
      options.time = argv[i]
    end
    options[class] = word
    i = i + 1
  end
  return options
end

-- A positive number, unlike EXPIRE's.
local function read_deadline(world, text, unit_ms, relative, command)
  local value, why = integers.parse(text)
  if not value and why == integers.NOT_AN_INTEGER then
    return nil, why
  elseif tonumber(text) <= 0 then
    return nil, deadline.invalid(command)
  end
  return deadline.read(text, unit_ms, relative and world.clock.ms or 0, command)
end

local function option_deadline(world, options, command)
  local word = options.expiry
  return read_deadline(world, options.time, UNIT_MS[word], RELATIVE[word], command)
end

local function set(world, argv)
  local options, bad = read_options(argv, 4, SET_OPTIONS)
  if not options then
    return nil, bad
  end
  local expires_at
  if options.time then
    expires_at, bad = option_deadline(world, options, 'set')
    if bad then
      return nil, bad
    end
  end

  local old = world.store:get(argv[2])
  if options.get and old and old.type ~= 'string' then
    return nil, WRONGTYPE
  end
  local reply = { ok = 'OK' }
  if options.get then
    reply = old and old.value or false
  end
  if (options.condition == 'NX' and old) or (options.condition == 'XX' and not old) then
    return options.get and reply or false
  end
  if options.expiry == 'KEEPTTL' and old then
    expires_at = old.expires_at
  end
  write(world, argv[2], argv[3], expires_at)
  return reply
end

local function setnx(world, argv)
  if world.store:get(argv[2]) then
    return 0
  end
  write(world, argv[2], argv[3])
  return 1
end

local function set_for(unit_ms)
  return function(world, argv)
    local expires_at, bad = read_deadline(world, argv[3], unit_ms, true, argv[1])
    if bad then
      return nil, bad
    end
    write(world, argv[2], argv[4], expires_at)
    return { ok = 'OK' }
  end
end

local function getset(world, argv)
  local value, wrong = get(world, argv)
  if wrong then
    return nil, wrong
  end
  write(world, argv[2], argv[3])
  return value
end

local function getdel(world, argv)
  local value, wrong = get(world, argv)
  if value then
    world.store:put(argv[2], nil)
  end
  return value, wrong
end

local function getex(world, argv)
  local options, bad = read_options(argv, 3, GETEX_OPTIONS)
  if not options then
    return nil, bad
  end
  local record, wrong = read(world, argv[2])
  if not record then
    return not wrong and false, wrong
  end
  if options.expiry == 'PERSIST' and not record.expires_at then
    world.store:confirm(argv[2])
  elseif options.expiry == 'PERSIST' then
    write(world, argv[2], record.value)
  elseif options.time then
    local expires_at, why = option_deadline(world, options, 'getex')
    if why then
      return nil, why
    elseif expires_at <= world.clock.ms then
      world.store:put(argv[2], nil)
    else
      write(world, argv[2], record.value, expires_at)
    end
  end
  return record.value
end

local function mget(world, argv)
  local values = {}
  for i = 2, #argv do
    local record = read(world, argv[i])
    values[i - 1] = record and record.value or false
  end
  return values
end

local function odd_pairs(argv)
  return #argv % 2 == 0
    and ("ERR wrong number of arguments for '%s' command"):format(argv[1]:lower())
end

local function mset(world, argv)
  if odd_pairs(argv) then
    return nil, odd_pairs(argv)
  end
  for i = 2, #argv, 2 do
    write(world, argv[i], argv[i + 1])
  end
  return { ok = 'OK' }
end

local function msetnx(world, argv)
  if odd_pairs(argv) then
    return nil, odd_pairs(argv)
  end
  for i = 2, #argv, 2 do
    if world.store:get(argv[i]) then
      return 0
    end
  end
  mset(world, argv)
  return 1
end

local function append(world, argv)
  local record, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local value = (record and record.value or '') .. argv[3]
  write(world, argv[2], value, record and record.expires_at)
  return #value
end

local function strlen(world, argv)
  local record, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  return record and #record.value or 0
end

local function add(world, key, step)
  local record, wrong = read(world, key)
  if wrong then
    return nil, wrong
  end
  local value, bad = 0, nil
  if record then
    value, bad = integers.parse(record.value)
  end
  if bad then
    return nil, bad
  end
  local sum, too_big = integers.add(value, step)
  if too_big then
    return nil, too_big
  end
  write(world, key, integers.text(sum), record and record.expires_at)
  return sum
end

local function add_one(sign)
  return function(world, argv)
    return add(world, argv[2], sign)
  end
end

local function add_many(sign)
  return function(world, argv)
    local step, bad = integers.parse(argv[3])
    if bad then
      return nil, bad
    end
    return add(world, argv[2], sign * step)
  end
end

local WRITE = 'write denyoom'

return {
  GET = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = get },
  SET = { arity = -3, flags = WRITE, keys = ONE_KEY, run = set },
  SETNX = { arity = 3, flags = WRITE, keys = ONE_KEY, run = setnx },
  SETEX = { arity = 4, flags = WRITE, keys = ONE_KEY, run = set_for(1000) },
  PSETEX = { arity = 4, flags = WRITE, keys = ONE_KEY, run = set_for(1) },
  GETSET = { arity = 3, flags = WRITE, keys = ONE_KEY, run = getset },
  GETDEL = { arity = 2, flags = 'write', keys = ONE_KEY, run = getdel },
  GETEX = { arity = -2, flags = 'write', keys = ONE_KEY, run = getex },
  MGET = { arity = -2, flags = 'readonly', keys = ALL_KEYS, run = mget },
  MSET = { arity = -3, flags = WRITE, keys = PAIRS, run = mset },
  MSETNX = { arity = -3, flags = WRITE, keys = PAIRS, run = msetnx },
  APPEND = { arity = 3, flags = WRITE, keys = ONE_KEY, run = append },
  STRLEN = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = strlen },
  INCR = { arity = 2, flags = WRITE, keys = ONE_KEY, run = add_one(1) },
  DECR = { arity = 2, flags = WRITE, keys = ONE_KEY, run = add_one(-1) },
  INCRBY = { arity = 3, flags = WRITE, keys = ONE_KEY, run = add_many(1) },
  DECRBY = { arity = 3, flags = WRITE, keys = ONE_KEY, run = add_many(-1) },
}
