-- SPDX-License-Identifier: Apache-2.0
-- The server's library `struct`: values to bytes by a format, and back.
local bit = require('bit')

local ieee = require('latchkey.mock.ieee')
local lua51 = require('latchkey.mock.lua51')

local struct = {}

local SIZES = { b = 1, B = 1, h = 2, H = 2, l = 8, L = 8, T = 8, f = 4, d = 8, x = 1 }
local INT_SIZE, LARGEST, ALIGN_MAX, INT_MAX = 4, 32, 8, 2 ^ 31 - 1

local function bad_argument(place, name, why, level)
  error(("bad argument #%d to '%s' (%s)"):format(place, name, why), level + 1)
end

local function check(place, name, value, wanted, count, level)
  local ok = wanted == 'string' and (type(value) == 'string' or type(value) == 'number')
    or wanted == 'number' and lua51.number(value) ~= nil
  if not ok then
    bad_argument(place, name, ('%s expected, got %s'):format(wanted,
      place > count and (name ~= 'pack' or place == 1) and 'no value' or type(value)), level or 3)
  end
  return wanted == 'string' and lua51.text(value) or lua51.number(value)
end

-- One option of a format after the other: its letter, its size, how many bytes stand before it.
local function each(format, name)
  local state = { at = 1, is_big = false, align = 1 }

  local function number(otherwise)
    local digits = format:match('^%d+', state.at)
    state.at = state.at + #(digits or '')
    if digits and tonumber(digits) > INT_MAX then
      error('integral size overflow', 5)
    end
    return digits and tonumber(digits) or otherwise
  end

  local function size_of(letter)
    if letter == 'c' then
      local size = number(1) -- it counts the functions above it
      return size
    elseif letter == 'i' or letter == 'I' then
      local size = number(INT_SIZE)
      if size > LARGEST then
        error(('integral size %d is larger than limit of %d'):format(size, LARGEST), 4)
      end
      return size
    end
    return SIZES[letter] or 0
  end

  local function control(letter)
    if letter == '>' or letter == '<' then
      state.is_big = letter == '>'
    elseif letter == '!' then
      local align = number(ALIGN_MAX)
      if align == 0 or bit.band(align, align - 1) ~= 0 then
        error(('alignment %d is not a power of 2'):format(align), 4)
      end
      state.align = align
    elseif letter ~= ' ' and (name ~= 'size' or not letter:find('%w')) then
      bad_argument(1, name, ("invalid format option '%s'"):format(letter), 4)
    end
  end

  -- The next option that has a value or a place; `total` are the bytes before it.
  function state.next(total)
    while state.at <= #format do
      local letter = format:sub(state.at, state.at)
      state.at = state.at + 1
      if SIZES[letter] or letter:find('[iIcs]') then
        local size = size_of(letter)
        local align = math.min(size, state.align)
        -- Of a size that is no power of two the server takes the bits as they are.
        local gap = (size == 0 or letter == 'c') and 0
          or bit.band(align - bit.band(total, align - 1), align - 1)
        return letter, size, gap
      end
      control(letter)
    end
  end

  return state
end

local function ordered(bytes, is_big)
  return is_big and bytes:reverse() or bytes
end

local function packed_text(text, letter, size, place)
  local length = size == 0 and #text or size
  if #text < length then
    bad_argument(place + 1, 'pack', 'string too short', 4)
  end
  return text:sub(1, length) .. (letter == 's' and '\0' or '')
end

local function packed(letter, size, value, place, count)
  if letter == 'c' or letter == 's' then
    return packed_text(check(place, 'pack', value, 'string', count, 4), letter, size, place), false
  end
  local number = check(place, 'pack', value, 'number', count, 4)
  if letter == 'f' then
    return ieee.from_float(number), true
  elseif letter == 'd' then
    return ieee.from_double(number), true
  end
  return ieee.from_integer(number, size), true
end

function struct.pack(...)
  local count, place, total, out = select('#', ...), 1, 0, {}
  local format = check(1, 'pack', (...), 'string', count)
  local options = each(format, 'pack')
  while true do
    local letter, size, gap = options.next(total)
    if not letter then
      return table.concat(out)
    end
    local bytes, has_order = '\0', nil
    if letter ~= 'x' then
      place = place + 1
      bytes, has_order = packed(letter, size, (select(place, ...)), place, count)
    end
    bytes = ('\0'):rep(gap) .. (has_order and ordered(bytes, options.is_big) or bytes)
    out[#out + 1] = bytes
    total = total + #bytes
  end
end

local function too_short(level)
  bad_argument(2, 'unpack', 'data string too short', level + 1)
end

-- A value at `at` (from 0), and how many bytes it takes.
local function unpacked(letter, size, data, at, options)
  local bytes = ordered(data:sub(at + 1, at + size), options.is_big)
  if letter == 'f' then
    return ieee.to_float(bytes), size
  elseif letter == 'd' then
    return ieee.to_double(bytes), size
  elseif letter == 's' then
    local stop = data:find('%z', at + 1)
    if not stop then
      error('unfinished string in data', 3)
    end
    return data:sub(at + 1, stop - 1), stop - at
  elseif letter == 'c' then
    return data:sub(at + 1, at + size), size
  end
  return ieee.to_integer(bytes, letter:lower() == letter), size
end

function struct.unpack(...)
  local count = select('#', ...)
  local format = check(1, 'unpack', (...), 'string', count)
  local data = check(2, 'unpack', (select(2, ...)), 'string', count)
  local start = select(3, ...)
  local first = start == nil and 1 or check(3, 'unpack', start, 'number', count)
  local at = (first < 0 and math.ceil(first) or math.floor(first)) - 1
  if at < 0 and at > -2 then
    bad_argument(3, 'unpack', 'offset must be 1 or greater', 2)
  end
  local options, results, n = each(format, 'unpack'), {}, 0
  while true do
    local letter, size, gap = options.next(at)
    if not letter then
      results[n + 1] = at + 1
      return unpack(results, 1, n + 1)
    end
    at = at + gap
    if at < 0 or at + size > #data then
      too_short(2)
    end
    if letter == 'c' and size == 0 then
      size = results[n]
      if n == 0 or not tonumber(size) then
        error("format 'c0' needs a previous size", 2)
      end
      size, n = math.floor(tonumber(size)), n - 1
      if size < 0 or at + size > #data then
        too_short(2)
      end
    end
    if letter ~= 'x' then
      n = n + 1
      results[n], size = unpacked(letter, size, data, at, options)
    end
    at = at + size
  end
end

function struct.size(...)
  local format = check(1, 'size', (...), 'string', select('#', ...))
  local options, total = each(format, 'size'), 0
  while true do
    local letter, size, gap = options.next(total)
    if not letter then
      return total
    elseif letter == 's' then
      bad_argument(1, 'size', "option 's' has no fixed size", 2)
    elseif letter == 'c' and size == 0 then
      bad_argument(1, 'size', "option 'c0' has no fixed size", 2)
    end
    total = total + gap + size
  end
end

return struct
