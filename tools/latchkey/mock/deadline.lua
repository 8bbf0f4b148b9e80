-- SPDX-License-Identifier: Apache-2.0
-- Reading the moment at which a key shall expire from a command's argument.
local integers = require('latchkey.mock.integers')

local deadline = {}

local INT64 = 2 ^ 63
local EXACT = 2 ^ 53

function deadline.invalid(command)
  return ("ERR invalid expire time in '%s' command"):format(command:lower())
end

---@param text string
---@param unit_ms integer 1 or 1000
---@param base_ms number what it counts from: now, or 0 for a moment in time
---@param command string for the error text
---@return number|nil when_ms
---@return string|nil err
function deadline.read(text, unit_ms, base_ms, command)
  local value, why = integers.parse(text)
  if not value and why ~= integers.TOO_BIG then
    return nil, why
  end
  local span = tonumber(text) * unit_ms
  local overflows = unit_ms > 1 and math.abs(span) >= INT64
    or base_ms > 0 and span + base_ms >= INT64
  if overflows then
    return nil, deadline.invalid(command)
  elseif not value or math.abs(span + base_ms) >= EXACT then
    return nil, integers.TOO_BIG
  end
  return span + base_ms
end

return deadline
