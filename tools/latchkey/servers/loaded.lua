-- SPDX-License-Identifier: Apache-2.0
-- Which scripts a server has, under their SHA1 and as functions.
local functions = require('latchkey.bundle.functions')
local targets = require('latchkey.servers.targets')

local loaded = {}

---@param client latchkey.client
---@return table[]|nil scripts { name, version, sha1, loaded }, sorted by name
---@return latchkey.error|nil err
function loaded.scripts(client)
  local rows, wanted = {}, client:scripts()
  local plan, err = targets.scripts.plan(client, wanted)
  if not plan then
    return nil, err
  end
  local there = {}
  for _, script in ipairs(plan.stays) do
    there[script] = true
  end
  for i, script in ipairs(wanted) do
    rows[i] = { name = script.name, version = script.version, sha1 = script.sha1,
      loaded = there[script] or false }
  end
  return rows
end

---The function libraries of latchkey's, whatever scripts and versions they are of.
---@param client latchkey.client
---@return table[]|nil libraries { library, name, version, sha1, current }, sorted by library;
---current: is it what this program would load? nil for a script that it does not know
---@return latchkey.error|nil err beside the libraries where a script cannot be one
function loaded.functions(client)
  local present, err = targets.functions.present(client)
  if not present then
    return nil, err
  end
  local codes = {}
  local wanted, why = targets.functions.wanted(client:scripts())
  for _, library in ipairs(wanted or {}) do
    codes[library.library] = library.code
  end
  local rows = {}
  for name, library in pairs(present) do
    local script = functions.described(library.description)
    if script then
      script.library = name
      script.current = codes[name] and codes[name] == library.code
      rows[#rows + 1] = script
    end
  end
  table.sort(rows, function(a, b)
    return a.library < b.library
  end)
  return rows, why and { status = 'LK_INVALID', message = why }
end

---@param scripts table[] as of loaded.scripts
---@return string[] names of those that the server lacks
function loaded.missing(scripts)
  local missing = {}
  for _, script in ipairs(scripts) do
    if not script.loaded then
      missing[#missing + 1] = script.name
    end
  end
  return missing
end

-- So many names stand in a verdict.
local NAMED = 3

---The first names of a list, for a line: the rest is counted.
---@param names string[]
---@return string
function loaded.first_of(names)
  local more = #names - NAMED
  return table.concat(names, ' ', 1, math.min(#names, NAMED))
    .. (more > 0 and (' and %d more'):format(more) or '')
end

return loaded
