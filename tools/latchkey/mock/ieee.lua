-- SPDX-License-Identifier: Apache-2.0
-- Numbers as bytes, the low ones first: what `struct` and `cmsgpack` are made of.
local lua51 = require('latchkey.mock.lua51')

local ieee = {}

-- Of a format: bits of the fraction, bias of the exponent, its largest value, bytes.
local DOUBLE = { fraction = 52, bias = 1023, top = 2047, bytes = 8 }
local FLOAT = { fraction = 23, bias = 127, top = 255, bytes = 4 }

-- The nearest integer; of two, the even one.
local function rounded(number)
  local low = math.floor(number)
  local rest = number - low
  if rest > 0.5 or rest == 0.5 and low % 2 == 1 then
    return low + 1
  end
  return low
end

-- Sign, exponent and fraction, as a format stores them.
local function split(number, format)
  local sign = ('%g'):format(number):find('^-') and 1 or 0 -- -0 has one, too
  local size = math.abs(number)
  if number ~= number then
    return lua51.text(number):find('^-') and 1 or 0, format.top, 2 ^ (format.fraction - 1)
  elseif size == math.huge then
    return sign, format.top, 0
  elseif size == 0 then
    return sign, 0, 0
  end
  local _, exponent = math.frexp(size)
  local stored = math.max(exponent - 1 + format.bias, 1)
  local fraction = rounded(size * 2 ^ (format.bias - stored) * 2 ^ format.fraction)
  -- Rounded up to the next power of two, it adds one to the exponent beside which it stands.
  if fraction < 2 ^ format.fraction then
    return sign, 0, fraction
  elseif stored >= format.top then
    return sign, format.top, 0
  end
  return sign, stored, fraction - 2 ^ format.fraction
end

local function join(sign, exponent, fraction, format)
  local factor = sign == 1 and -1 or 1
  if exponent == format.top then
    return fraction == 0 and factor * math.huge or 0 / 0
  elseif exponent == 0 then
    return factor * math.ldexp(fraction, 1 - format.bias - format.fraction)
  end
  return factor * math.ldexp(fraction + 2 ^ format.fraction,
    exponent - format.bias - format.fraction)
end

---The bytes of an integer, of a negative one in two's complement; the low ones first.
---@param number number is cut to an integer, as C casts one to 64 bits
---@param size integer
---@return string
function ieee.from_integer(number, size)
  if number ~= number or number < -2 ^ 63 then
    number = -2 ^ 63
  elseif number >= 2 ^ 64 then
    number = 0
  end
  local rest = number - math.fmod(number, 1)
  local bytes = {}
  for i = 1, size do
    bytes[i] = string.char(i <= 8 and rest % 256 or 0)
    rest = math.floor(rest / 256)
  end
  return table.concat(bytes)
end

local function half(bytes, first, flip)
  local sum = 0
  for i = math.min(first + 3, #bytes), first, -1 do
    local byte = bytes:byte(i)
    sum = sum * 256 + (flip and 255 - byte or byte)
  end
  return sum
end

---@param bytes string the low ones first
---@param is_signed boolean|nil
---@return number
function ieee.to_integer(bytes, is_signed)
  if is_signed and bytes ~= '' and bytes:byte(math.min(#bytes, 8)) >= 128 then
    return -(half(bytes, 5, true) * 2 ^ 32 + (half(bytes, 1, true) + 1))
  end
  return half(bytes, 5) * 2 ^ 32 + half(bytes, 1)
end

local function encode(number, format)
  local sign, exponent, fraction = split(number, format)
  local low = ieee.from_integer(fraction, 4)
  local high_bits = format.fraction - (format.bytes == 8 and 32 or 0)
  local top = (sign * (format.top + 1) + exponent) * 2 ^ high_bits
  if format.bytes == 4 then
    return ieee.from_integer(top + fraction, 4)
  end
  return low .. ieee.from_integer(top + math.floor(fraction / 2 ^ 32), 4)
end

local function decode(bytes, format)
  local high = half(bytes, format.bytes - 3)
  local high_bits = format.fraction - (format.bytes == 8 and 32 or 0)
  local fraction = high % 2 ^ high_bits
  if format.bytes == 8 then
    fraction = fraction * 2 ^ 32 + half(bytes, 1)
  end
  local rest = math.floor(high / 2 ^ high_bits)
  return join(math.floor(rest / (format.top + 1)), rest % (format.top + 1), fraction, format)
end

---@return string bytes four, the low ones first
function ieee.from_float(number)
  return encode(number, FLOAT)
end

---@return string bytes eight, the low ones first
function ieee.from_double(number)
  return encode(number, DOUBLE)
end

function ieee.to_float(bytes)
  return decode(bytes, FLOAT)
end

function ieee.to_double(bytes)
  return decode(bytes, DOUBLE)
end

return ieee
