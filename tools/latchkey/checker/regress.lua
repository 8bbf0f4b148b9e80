-- SPDX-License-Identifier: Apache-2.0
-- A counterexample as a spec: it fails as long as the scripts allow the run.
local path = require('pl.path')
local tablex = require('pl.tablex')

local whole_file = require('latchkey.whole_file')

local regress = {}

local SPEC = [[
-- SPDX-License-Identifier: Apache-2.0
-- Found by latchkey check: %s.
local checker = require('latchkey.checker')
local helper = require('helper')

describe('the model ' .. %s, function()
  it('keeps %s in a run that once broke it', function()
    local finding = checker.replay(%s,
      %s,
      { scripts = helper.scripts,%s clients = %d, rounds = %d, faults = %d,
        kinds = {%s},
        limits = {%s} })

    assert.is_nil(finding)
  end)
end)
]]

local function quote(text)
  return "'" .. text:gsub('\\', '\\\\'):gsub("'", "\\'") .. "'"
end

-- A replay in lines of at most 100 columns.
local function wrapped(text)
  local lines, line = {}, ''
  for word in text:gmatch('%S+') do
    if #line + #word > 84 then
      lines[#lines + 1] = quote(line .. ' ')
      line = ''
    end
    line = line == '' and word or line .. ' ' .. word
  end
  lines[#lines + 1] = quote(line)
  return table.concat(lines, '\n      .. ')
end

local function plain_value(value)
  return value == math.huge and 'math.huge' or tostring(value)
end

local function padded(list)
  return #list > 0 and ' ' .. table.concat(list, ', ') .. ' ' or ''
end

---@return string|nil file that was written
---@return string|nil why it could not be
function regress.write(folder, verdict, finding)
  local kinds, limits, only = {}, {}, {}
  for kind in tablex.sort(verdict.kinds) do
    kinds[#kinds + 1] = quote(kind)
  end
  for limit, value in tablex.sort(verdict.limits or {}) do
    limits[#limits + 1] = limit .. ' = ' .. plain_value(value)
  end
  for i, id in ipairs(verdict.only or {}) do
    only[i] = quote(id)
  end
  local name = path.splitext(path.basename(verdict.model))
  local bounds, number = verdict.bounds, 1
  local file
  repeat
    file = path.join(folder, ('%s_%s_%d_spec.lua'):format(name, finding.property:lower(),
      number))
    number = number + 1
  until not path.exists(file)
  local options = verdict.beside and (' beside = %s,'):format(quote(verdict.beside)) or ''
  options = options .. (verdict.symmetric == false and ' symmetric = false,' or '')
  options = options .. (verdict.only and (' only = {%s},'):format(padded(only)) or '')
  local text = SPEC:format((finding.message:gsub('%c', ' ')), quote(verdict.model),
    finding.property, quote(verdict.model), wrapped(table.concat(finding.trail, ' ')), options,
    bounds.clients, bounds.rounds, bounds.faults, padded(kinds), padded(limits))
  local written, why = whole_file.write_below(file, text)
  return written and file, why
end

return regress
