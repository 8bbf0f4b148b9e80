-- SPDX-License-Identifier: Apache-2.0
-- JSON in one form. Unlike cjson's: the names of an object are sorted, "/" stands as it is, an
-- integer has all of its digits, a number that is not finite is null, and what is no UTF-8 is
-- written as \xNN.
local cjson = require('cjson')
local tablex = require('pl.tablex')

local text = require('latchkey.text')

local json = {}

local INDENT = '  '

-- On one line, or in lines where something is in it that is no plain value.
local function array_of(value, indent)
  local parts, inner, is_plain = {}, indent and indent .. INDENT, true
  for i, element in ipairs(value) do
    is_plain = is_plain and type(element) ~= 'table'
    parts[i] = json.encode(element, inner)
  end
  if indent and not is_plain then
    return '[\n' .. inner .. table.concat(parts, ',\n' .. inner) .. '\n' .. indent .. ']'
  end
  return '[' .. table.concat(parts, indent and ', ' or ',') .. ']'
end

local function object_of(value, indent)
  local parts, inner = {}, indent and indent .. INDENT
  for name, element in tablex.sort(value) do
    parts[#parts + 1] = json.encode(name) .. (indent and ': ' or ':')
      .. json.encode(element, inner)
  end
  return indent and '{\n' .. inner .. table.concat(parts, ',\n' .. inner) .. '\n' .. indent .. '}'
    or '{' .. table.concat(parts, ',') .. '}'
end

local function plain_number(number)
  if number - number ~= 0 then
    return 'null'
  end
  return number % 1 == 0 and ('%.0f'):format(number) or cjson.encode(number)
end

---A value as JSON; an empty table is an empty array.
---@param value any
---@param indent? string of the first line: then each member has a line; without it, all is on one
---@return string
function json.encode(value, indent)
  if type(value) == 'number' then
    return plain_number(value)
  elseif type(value) == 'string' then
    return (cjson.encode(text.utf8(value)):gsub('\\/', '/'))
  elseif type(value) ~= 'table' then
    return cjson.encode(value)
  elseif #value > 0 or next(value) == nil then
    return array_of(value, indent)
  end
  return object_of(value, indent)
end

return json
