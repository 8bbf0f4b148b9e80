-- SPDX-License-Identifier: Apache-2.0
-- Findings of the tools over scripts: { file, line, rule, message }, for people and for programs.
local json = require('latchkey.json')
local text = require('latchkey.text')

local report = {}

---@param findings table[]
---@return string one line each, without what a terminal obeys
function report.text(findings)
  local lines = {}
  for i, finding in ipairs(findings) do
    lines[i] = ('%s:%d: %s: %s\n'):format(text.safe(finding.file), finding.line, finding.rule,
      text.safe(finding.message))
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

---One machine-readable document.
---@param command string whose document it is
---@param fields table what stands in it beside its schema
---@return string json
function report.json(command, fields)
  local document = { schema = 'latchkey/' .. command .. '/1' }
  for name, value in pairs(fields) do
    document[name] = value
  end
  return text.safe_json(json.encode(document)) .. '\n'
end

return report
