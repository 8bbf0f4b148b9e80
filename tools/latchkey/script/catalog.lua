-- SPDX-License-Identifier: Apache-2.0
-- The scripts of a folder, parsed and sorted by name.
local path = require('pl.path')
local utils = require('pl.utils')

local header = require('latchkey.script.header')
local digest = require('latchkey.digest')
local files = require('latchkey.files')
local parser = require('latchkey.lua51.parser')

local catalog = {}

---The script files below a folder, in byte order.
---@param folder string
---@return string[]|nil files
---@return string|nil why
function catalog.files(folder)
  return files.below(folder, '.lua')
end

---The names of the scripts below a folder.
---@param folder string
---@return string[]
function catalog.names(folder)
  local names = {}
  for i, file in ipairs(catalog.files(folder) or {}) do
    names[i] = file:match('([^/]+/[^/]+)%.lua$')
  end
  return names
end

---The contract beside a script that has no header.
---@param file string the script
---@param source string its text
---@return string|nil contract the file
---@return string|nil text
function catalog.contract_of(file, source)
  local second = source:match('^[^\n]*\n([^\n]*)')
  local contract = file:gsub('%.lua$', '') .. '.contract'
  if second ~= header.MARK and path.isfile(contract) then
    return contract, utils.readfile(contract, true)
  end
end

---@param file string
---@return table|nil script { name, path, source, sha1, header, contract }; the last is the text of
---  a contract beside it
---@return table|nil findings array of { file, line, rule, message }
function catalog.read_file(file)
  local source, why = utils.readfile(file, true)
  if not source then
    return nil, { { file = file, line = 0, rule = 'file', message = why } }
  end
  local sha1 = digest.sha1(source)
  local contract, text = catalog.contract_of(file, source)
  local h, findings = header.of(source, sha1, file, text)
  if not h then
    for _, finding in ipairs(findings) do
      finding.file = not finding.of_script and contract or file
    end
    return nil, findings
  end
  return { name = h.name, path = file, source = source, sha1 = sha1, header = h, contract = text }
end

---@param folder string
---@return table|nil scripts array sorted by name, also indexed by name
---@return table|nil findings array of { file, line, rule, message }
function catalog.read(folder)
  local list, why = catalog.files(folder)
  if not list then
    return nil, { { file = folder, line = 0, rule = 'file', message = why } }
  end
  local scripts, findings = {}, {}
  for _, file in ipairs(list) do
    local script, wrong = catalog.read_file(file)
    for _, finding in ipairs(wrong or {}) do
      findings[#findings + 1] = finding
    end
    if script and scripts[script.name] then
      findings[#findings + 1] = { file = file, line = script.header.lines.name, rule = 'name',
        message = ('%s is the name of %s too'):format(script.name, scripts[script.name].path) }
    elseif script then
      scripts[#scripts + 1] = script
      scripts[script.name] = script
    end
  end
  if #findings > 0 then
    return nil, findings
  end
  table.sort(scripts, function(a, b)
    return a.name < b.name
  end)
  return scripts
end

---As catalog.read, for those who read the code as well: where it is no Lua, that is a finding.
---@param folder string
---@return table|nil scripts
---@return table|nil findings
function catalog.read_code(folder)
  local scripts, findings = catalog.read(folder)
  for _, script in ipairs(scripts or {}) do
    local _, problems = parser.parse(script.source)
    for _, problem in ipairs(problems or {}) do
      findings = findings or {}
      findings[#findings + 1] = { file = script.path, line = problem.line, rule = problem.rule,
        message = ('%s: %s'):format(problem.rule, problem.message) }
    end
  end
  return not findings and scripts or nil, findings
end

return catalog
