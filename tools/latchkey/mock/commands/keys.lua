-- SPDX-License-Identifier: Apache-2.0
-- Keys and expiry.
local deadline = require('latchkey.mock.deadline')

local ONE_KEY, TWO_KEYS, ALL_KEYS = { 1, 1, 1 }, { 1, 2, 1 }, { 1, -1, 1 }

local function exists(world, argv)
  local count = 0
  for i = 2, #argv do
    if world.store:get(argv[i]) then
      count = count + 1
    end
  end
  return count
end

local function del(world, argv)
  local count = 0
  for i = 2, #argv do
    if world.store:get(argv[i]) then
      world.store:put(argv[i], nil)
      count = count + 1
    end
  end
  return count
end

local function type_of(world, argv)
  local record = world.store:get(argv[2])
  return { ok = record and record.type or 'none' }
end

local EXPIRE_FLAGS = { NX = true, XX = true, GT = true, LT = true }
local NO_FLAGS = {}

local function read_flags(argv)
  if #argv == 3 then
    return NO_FLAGS
  end
  local flags = {}
  for i = 4, #argv do
    local flag = argv[i]:upper()
    if not EXPIRE_FLAGS[flag] then
      return nil, 'ERR Unsupported option ' .. argv[i]
    end
    flags[flag] = true
  end
  if flags.NX and (flags.XX or flags.GT or flags.LT) then
    return nil, 'ERR NX and XX, GT or LT options at the same time are not compatible'
  elseif flags.GT and flags.LT then
    return nil, 'ERR GT and LT options at the same time are not compatible'
  end
  return flags
end

-- A key without a deadline lives for ever: nothing is greater, everything is less.
local function flags_refuse(flags, old, new)
  return (flags.NX and old) or (flags.XX and not old)
    or (flags.GT and (not old or new <= old)) or (flags.LT and old and new >= old)
end

local function expire(unit_ms, relative)
  return function(world, argv)
    local now = world.clock.ms
    local flags, bad_flags = read_flags(argv)
    if not flags then
      return nil, bad_flags
    end
    local when, bad_time = deadline.read(argv[3], unit_ms, relative and now or 0, argv[1])
    if not when then
      return nil, bad_time
    end

    local record = world.store:get(argv[2])
    if not record or flags_refuse(flags, record.expires_at, when) then
      return 0
    end
    if when <= now then
      world.store:put(argv[2], nil)
    else
      world.store:put(argv[2], { type = record.type, value = record.value, expires_at = when })
    end
    return 1
  end
end

local function time_to_live(unit_ms, relative)
  return function(world, argv)
    local record = world.store:get(argv[2])
    if not record then
      return -2
    end
    local when = record.expires_at
    if not when then
      return -1
    end
    local left = relative and math.max(when - world.clock.ms, 0) or when
    return unit_ms == 1 and left or math.floor((left + unit_ms / 2) / unit_ms)
  end
end

local function persist(world, argv)
  local record = world.store:get(argv[2])
  if not record or not record.expires_at then
    return 0
  end
  world.store:put(argv[2], { type = record.type, value = record.value })
  return 1
end

-- RENAME, and RENAMENX, which leaves a key that is there.
local function rename(keeps)
  return function(world, argv)
    local record = world.store:get(argv[2])
    if not record then
      return nil, 'ERR no such key'
    elseif keeps and world.store:get(argv[3]) then
      return 0
    end
    if argv[2] ~= argv[3] then
      world.store:put(argv[2], nil)
      world.store:put(argv[3], record)
    end
    return keeps and 1 or { ok = 'OK' }
  end
end

local function read_copy_options(argv)
  local replaces = false
  local i = 4
  while i <= #argv do
    local word = argv[i]:upper()
    if word == 'DB' and argv[i + 1] then
      return nil, 'MOCK several databases are not modelled'
    elseif word ~= 'REPLACE' then
      return nil, 'ERR syntax error'
    end
    replaces, i = true, i + 1
  end
  return replaces
end

local function copy(world, argv)
  local replaces, bad = read_copy_options(argv)
  if bad then
    return nil, bad
  elseif argv[2] == argv[3] then
    return nil, 'ERR source and destination objects are the same'
  end
  local record = world.store:get(argv[2])
  if not record or (world.store:get(argv[3]) and not replaces) then
    return 0
  end
  world.store:put(argv[3], record)
  return 1
end

local function flush(world, argv)
  local mode = argv[2] and argv[2]:upper()
  if #argv > 2 or (mode and mode ~= 'SYNC' and mode ~= 'ASYNC') then
    return nil, 'ERR syntax error'
  end
  world.store:clear()
  return { ok = 'OK' }
end

return {
  DEL = { arity = -2, flags = 'write', keys = ALL_KEYS, run = del },
  UNLINK = { arity = -2, flags = 'write', keys = ALL_KEYS, run = del },
  EXISTS = { arity = -2, flags = 'readonly', keys = ALL_KEYS, run = exists },
  TOUCH = { arity = -2, flags = 'readonly', keys = ALL_KEYS, run = exists },
  RENAME = { arity = 3, flags = 'write', keys = TWO_KEYS, run = rename(false) },
  RENAMENX = { arity = 3, flags = 'write', keys = TWO_KEYS, run = rename(true) },
  COPY = { arity = -3, flags = 'write denyoom', keys = TWO_KEYS, run = copy },
  TYPE = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = type_of },
  EXPIRE = { arity = -3, flags = 'write', keys = ONE_KEY, run = expire(1000, true) },
  PEXPIRE = { arity = -3, flags = 'write', keys = ONE_KEY, run = expire(1, true) },
  EXPIREAT = { arity = -3, flags = 'write', keys = ONE_KEY, run = expire(1000, false) },
  PEXPIREAT = { arity = -3, flags = 'write', keys = ONE_KEY, run = expire(1, false) },
  TTL = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = time_to_live(1000, true) },
  PTTL = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = time_to_live(1, true) },
  EXPIRETIME = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = time_to_live(1000, false) },
  PEXPIRETIME = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = time_to_live(1, false) },
  PERSIST = { arity = 2, flags = 'write', keys = ONE_KEY, run = persist },
  FLUSHALL = { arity = -1, flags = 'write', run = flush },
  FLUSHDB = { arity = -1, flags = 'write', run = flush },
}
