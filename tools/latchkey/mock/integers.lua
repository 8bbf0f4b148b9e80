-- SPDX-License-Identifier: Apache-2.0
-- Redis counts in signed 64 bits, Lua in doubles. Between 2^53 and 2^63 a double is not exact, and
-- the mock refuses rather than be nearly right.
local integers = {}

local EXACT = 2 ^ 53 - 1
local INT64_MAX, INT64_MIN = '9223372036854775807', '9223372036854775808'

integers.NOT_AN_INTEGER = 'ERR value is not an integer or out of range'
integers.TOO_BIG = 'MOCK integers of 2^53 and above are not modelled'

local function fits_int64(text)
  local digits = text:match('%d+')
  local limit = text:sub(1, 1) == '-' and INT64_MIN or INT64_MAX
  return #digits < #limit or (#digits == #limit and digits <= limit)
end

---Would the server keep this text as a number?
---@param text string
function integers.is_int64(text)
  return (text == '0' or text:find('^%-?[1-9]%d*$') ~= nil) and fits_int64(text)
end

---Reads an integer as the server does: no sign but "-", no leading zeros or spaces.
---@param text string
---@return integer|nil
---@return string|nil err
function integers.parse(text)
  if text ~= '0' and not text:find('^%-?[1-9]%d*$') then
    return nil, integers.NOT_AN_INTEGER
  end
  local n = tonumber(text)
  if n >= -EXACT and n <= EXACT then
    return n
  end
  return nil, fits_int64(text) and integers.TOO_BIG or integers.NOT_AN_INTEGER
end

---@return integer|nil
---@return string|nil err
function integers.add(a, b)
  local sum = a + b
  if sum < -EXACT or sum > EXACT then
    return nil, integers.TOO_BIG
  end
  return sum
end

---@return string
function integers.text(n)
  return ('%.0f'):format(n)
end

return integers
