-- SPDX-License-Identifier: Apache-2.0
-- Which lines of the scripts ran, and which of their headers' outcomes came. LuaJIT only.
local code_lines = require('latchkey.lua51.code_lines')
local header = require('latchkey.script.header')
local sorted = require('latchkey.sorted')

local Coverage = {}
Coverage.__index = Coverage

---@param scripts table[] as catalog.read gives them
function Coverage.new(scripts)
  local self = setmetatable({ scripts = scripts, entries = {} }, Coverage)
  for _, script in ipairs(scripts) do
    self.entries[script.name] = { lines = {}, shapes = {}, codes = {} }
  end
  return self
end

---A script ran a line.
function Coverage:line(name, number)
  self.entries[name].lines[number] = true
end

---A script ended.
---@param reply any as a client sees it
---@param err string|nil
function Coverage:outcome(name, reply, err)
  local entry = self.entries[name]
  if err then
    entry.codes[err:match('^%S*')] = true
  else
    entry.shapes[header.reply_shape(self.scripts[name].header, reply)] = true
  end
end

-- The wanted that is not seen, in order, and how much is wanted.
local function missing(wanted, seen)
  local rest = {}
  for _, item in ipairs(wanted) do
    if not seen[item] then
      rest[#rest + 1] = tostring(item)
    end
  end
  return rest, #wanted
end

local function field_of(list, field)
  local values = {}
  for i, item in ipairs(list) do
    values[i] = item[field]
  end
  return values
end

---A table with a row for each script, followed by what is missing and by the sum of all.
---@return string text
---@return boolean is_complete
function Coverage:report()
  local rows = { ('%-20s %9s %9s %9s'):format('script', 'lines', 'replies', 'errors') }
  local gaps, sums = {}, {}
  for _, script in ipairs(self.scripts) do
    local entry, columns = self.entries[script.name], {}
    for _, measure in ipairs({
      { 'lines', sorted(code_lines(script.source)), entry.lines },
      { 'replies', field_of(script.header.returns, 'shape'), entry.shapes },
      { 'errors', field_of(script.header.errors, 'code'), entry.codes },
    }) do
      local rest, count = missing(measure[2], measure[3])
      local sum = sums[measure[1]] or { seen = 0, all = 0 }
      sum.seen, sum.all, sums[measure[1]] = sum.seen + count - #rest, sum.all + count, sum
      columns[#columns + 1] = ('%9s'):format(('%d/%d'):format(count - #rest, count))
      if #rest > 0 then
        gaps[#gaps + 1] = ('%s: %s never reached: %s'):format(script.path, measure[1],
          table.concat(rest, ' '))
      end
    end
    rows[#rows + 1] = ('%-20s %s'):format(script.name, table.concat(columns, ' '))
  end
  for _, gap in ipairs(gaps) do
    rows[#rows + 1] = gap
  end
  local words = { ('%d scripts'):format(#self.scripts) }
  for i, name in ipairs({ 'lines', 'replies', 'errors' }) do
    local sum = sums[name] or { seen = 0, all = 0 }
    words[i + 1] = ('%d of %d %s'):format(sum.seen, sum.all, name)
  end
  rows[#rows + 1] = table.concat(words, ', ')
  return table.concat(rows, '\n') .. '\n', #gaps == 0
end

return Coverage
