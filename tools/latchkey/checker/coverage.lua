-- SPDX-License-Identifier: Apache-2.0
-- Which outcomes and errors of each header a check has reached. One that was never reached is a
-- part of a script that nobody has looked at.
local parts = require('latchkey.checker.parts')

local coverage = {}

local function wanted(header)
  local list = {}
  for _, reply in ipairs(header.returns) do
    list[#list + 1] = reply.shape
  end
  -- What a user may not run is no matter of any order of calls.
  for _, listed in ipairs(header.errors) do
    list[#list + 1] = listed.code ~= 'NOPERM' and listed.code or nil
  end
  return list
end

---Calls each script without keys and arguments: an error that is listed, and nothing written.
---@return table findings
function coverage.probe(steps)
  local findings = {}
  -- What others' scripts do about misuse is their business.
  for _, script in ipairs(steps.model.foreign and {} or coverage.scripts(steps.model)) do
    local world = steps.server.world
    world:replace({})
    local _, err = world:eval(script, {}, {})
    local code = err and err.code or 'no error'
    steps.server.covered[script] = steps.server.covered[script] or {}
    steps.server.covered[script][code] = true
    if code ~= 'LKARG' or next(world:keys()) then
      findings[#findings + 1] = { property = 'G10', script = script, line = err and err.line,
        trail = {}, message = ('%s, called with nothing, answers %s'):format(script,
          err and err.message or 'as if that were right') }
    end
  end
  return findings
end

---@return string[] the scripts of a model
function coverage.scripts(model)
  return parts.sorted_names(model.verbs)
end

---Adds what one verdict reached to what others did.
function coverage.add(all, covered)
  for script, shapes in pairs(covered) do
    all[script] = all[script] or {}
    for shape in pairs(shapes) do
      all[script][shape] = true
    end
  end
end

---@param model table its `unreached` names what no client of it can bring about, and why
---@param covered table script -> shape -> true
---@return string[] missing "script shape", in order
---@return integer reached
function coverage.missing(model, server, covered)
  local missing, reached = {}, 0
  for _, script in ipairs(coverage.scripts(model)) do
    for _, shape in ipairs(wanted(server:header(script))) do
      local name = script .. ' ' .. shape
      if covered[script] and covered[script][shape] then
        reached = reached + 1
      elseif not (model.unreached and model.unreached[name]) then
        missing[#missing + 1] = name
      end
    end
  end
  return missing, reached
end

---What a model says has to be reached, and was not: then nothing that follows from it was tried.
---@param covered table script -> shape -> true
---@return string[] unmet in order
function coverage.unmet(model, covered)
  local unmet = {}
  for _, script in ipairs(parts.sorted_names(model.reaches or {})) do
    local met = false
    for _, shape in ipairs(model.reaches[script]) do
      met = met or covered[script] and covered[script][shape]
    end
    if not met then
      unmet[#unmet + 1] = ('%s never answers %s'):format(script,
        table.concat(model.reaches[script], ' or '))
    end
  end
  return unmet
end

return coverage
