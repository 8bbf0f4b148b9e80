-- SPDX-License-Identifier: Apache-2.0
-- Parts of strings: bytes and bits by their places.
local arrays = require('latchkey.mock.arrays')
local integers = require('latchkey.mock.integers')

local ONE_KEY = { 1, 1, 1 }
local LENGTH_MAX = 512 * 1024 * 1024
local TOO_LONG = 'ERR string exceeds maximum allowed size (proto-max-bulk-len)'
local BAD_OFFSET = 'ERR bit offset is not an integer or out of range'

local function read(world, key)
  local record = world.store:get(key)
  if record and record.type ~= 'string' then
    return nil, arrays.WRONGTYPE
  end
  return record and record.value or ''
end

local function write(world, key, value)
  local old = world.store:get(key)
  world.store:put(key, { type = 'string', value = value, expires_at = old and old.expires_at })
end

-- The first and the last of so many places, from 1; an end before all of them is the first one.
local function places(range, count)
  local first, last = range[1], range[2]
  if first < 0 and last < 0 and first > last then
    return 1, 0
  end
  first = math.max(first < 0 and first + count or first, 0)
  last = math.max(last < 0 and last + count or last, 0)
  return first + 1, math.min(last, count - 1) + 1
end

local function getrange(world, argv)
  local range, bad = arrays.read_range(argv[3], argv[4])
  if bad then
    return nil, bad
  end
  local text, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local first, last = places(range, #text)
  return text:sub(first, last)
end

-- The text, with NULs up to this length.
local function padded(text, length)
  return text .. ('\0'):rep(length - #text)
end

local function setrange(world, argv)
  local offset, bad = integers.parse(argv[3])
  if bad or offset < 0 then
    return nil, bad or 'ERR offset is out of range'
  end
  local text, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif argv[4] == '' then
    return #text
  elseif offset + #argv[4] > LENGTH_MAX then
    return nil, TOO_LONG
  end
  text = padded(text, offset)
  text = text:sub(1, offset) .. argv[4] .. text:sub(offset + #argv[4] + 1)
  write(world, argv[2], text)
  return #text
end

local function read_offset(text)
  local offset, bad = integers.parse(text)
  if bad or offset < 0 or offset >= LENGTH_MAX * 8 then
    return nil, BAD_OFFSET
  end
  return offset
end

-- The bit at a place: 0 is the highest one of the first byte.
local function bit_at(text, offset)
  local byte = text:byte(math.floor(offset / 8) + 1) or 0
  return math.floor(byte / 2 ^ (7 - offset % 8)) % 2
end

local function getbit(world, argv)
  local offset, bad = read_offset(argv[3])
  if bad then
    return nil, bad
  end
  local text, wrong = read(world, argv[2])
  return text and bit_at(text, offset), wrong
end

local function setbit(world, argv)
  local offset, bad = read_offset(argv[3])
  if bad then
    return nil, bad
  elseif argv[4] ~= '0' and argv[4] ~= '1' then
    return nil, 'ERR bit is not an integer or out of range'
  end
  local text, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local place = math.floor(offset / 8) + 1
  local is_longer = #text < place
  text = padded(text, place)
  local old = bit_at(text, offset)
  if old == tonumber(argv[4]) and not is_longer then
    world.store:confirm(argv[2])
    return old
  end
  local byte = text:byte(place) + (tonumber(argv[4]) - old) * 2 ^ (7 - offset % 8)
  write(world, argv[2], text:sub(1, place - 1) .. string.char(byte) .. text:sub(place + 1))
  return old
end

-- The places of a part of the text: the first and the last bit, counted from 0.
local function read_part(argv, text)
  local unit = (argv[5] or 'BYTE'):upper()
  local range, bad = { 0, -1 }, nil
  if argv[3] then
    range, bad = arrays.read_range(argv[3], argv[4])
  end
  if bad then
    return nil, bad
  elseif range[1] < 0 and range[2] < 0 and range[1] > range[2] then
    return { 0, -1 } -- before the unit is looked at
  elseif unit ~= 'BYTE' and unit ~= 'BIT' then
    return nil, arrays.SYNTAX
  end
  local size = unit == 'BIT' and 1 or 8
  local first, last = places(range, #text * 8 / size)
  return { (first - 1) * size, last * size - 1 }
end

local function bitcount(world, argv)
  local text, wrong = read(world, argv[2])
  if wrong or not world.store:get(argv[2]) then
    return text and 0, wrong
  elseif #argv == 3 or #argv > 5 then
    return nil, arrays.SYNTAX
  end
  local part, bad = read_part(argv, text)
  if bad then
    return nil, bad
  end
  local count = 0
  for offset = part[1], part[2] do
    count = count + bit_at(text, offset)
  end
  return count
end

return {
  GETRANGE = { arity = 4, flags = 'readonly', keys = ONE_KEY, run = getrange },
  SUBSTR = { arity = 4, flags = 'readonly', keys = ONE_KEY, run = getrange },
  SETRANGE = { arity = 4, flags = 'write denyoom', keys = ONE_KEY, run = setrange },
  GETBIT = { arity = 3, flags = 'readonly', keys = ONE_KEY, run = getbit },
  SETBIT = { arity = 4, flags = 'write denyoom', keys = ONE_KEY, run = setbit },
  BITCOUNT = { arity = -2, flags = 'readonly', keys = ONE_KEY, run = bitcount },
}
