-- SPDX-License-Identifier: Apache-2.0
-- Findings of the tools over scripts: { file, line, rule, message }, for people and for programs.
local cjson = require('cjson')
local tablex = require('pl.tablex')

local report = {}

---@param findings table[]
---@return string one line each
function report.text(findings)
  local lines = {}
  for i, finding in ipairs(findings) do
    lines[i] = ('%s:%d: %s: %s\n'):format(finding.file, finding.line, finding.rule, finding.message)
  end
  return table.concat(lines)
end

---Sorts findings by file, line and rule.
---@param findings table[]
---@return table[] findings the same table
function report.sort(findings)
  table.sort(findings, function(a, b)
    if a.file ~= b.file then
      return a.file < b.file
    elseif a.line ~= b.line then
      return a.line < b.line
    elseif a.rule ~= b.rule then
      return a.rule < b.rule
    end
    return a.message < b.message
  end)
  return findings
end

-- Unlike cjson's: the names of an object are sorted, "/" stands as it is, and an integer has all of
-- its digits.
local function encode(value)
  if type(value) == 'number' and value % 1 == 0 then
    return ('%.0f'):format(value)
  elseif type(value) ~= 'table' then
    return (cjson.encode(value):gsub('\\/', '/'))
  end
  local parts = {}
  if #value > 0 or next(value) == nil then
    for i, element in ipairs(value) do
      parts[i] = encode(element)
    end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  for name, element in tablex.sort(value) do
    parts[#parts + 1] = encode(name) .. ':' .. encode(element)
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

---A value as JSON; an empty table is an empty array.
---@param value any
---@return string
function report.encode(value)
  return encode(value)
end

---One machine-readable document.
---@param command string whose document it is
---@param fields table what stands in it beside its schema
---@return string json
function report.json(command, fields)
  local document = { schema = 'latchkey/' .. command .. '/1' }
  for name, value in pairs(fields) do
    document[name] = value
  end
  return encode(document) .. '\n'
end

return report
