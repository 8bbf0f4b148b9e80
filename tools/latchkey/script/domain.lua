-- SPDX-License-Identifier: Apache-2.0
-- What a header or contract lets an argument be.
local tablex = require('pl.tablex')

local domain = {}

local RANGES = {
  integer = function(field, value)
    local number = value:find('^%d+$') and tonumber(value)
    return number and number >= field.min and number <= field.max
      or ('is %.0f to %.0f'):format(field.min, field.max)
  end,
  choice = function(field, value)
    return tablex.find(field.values, value) and true or 'is ' .. table.concat(field.values, ' or ')
  end,
  text = function(field, value)
    return #value >= field.min and #value <= field.max
      or ('has %.0f to %.0f bytes'):format(field.min, field.max)
  end,
}

---@param value any
---@return string text as it is sent: whole numbers have all their digits
function domain.text(value)
  local is_whole = type(value) == 'number' and value % 1 == 0
  return is_whole and ('%.0f'):format(value) or tostring(value)
end

---Why a value is none that an argument may have.
---@param field table of a header
---@param value string
---@return string|nil why such as "is 50 to 86400000"
function domain.why(field, value)
  local range = RANGES[field.kind]
  local good = not range or range(field, value)
  return good ~= true and good or nil
end

return domain
