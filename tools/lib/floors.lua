-- SPDX-License-Identifier: Apache-2.0
-- Do modules keep to their floors? A module is FLOOR/NAME; it may use its own floor and those
-- before it in the list, and nothing in a circle. Of the C library this is told from what each
-- object file defines and needs, since an #include says little about that; of the Lua that is
-- installed, from what each file requires. What a module of C still uses of the system is listed: a
-- row that no module needs any more must go.
local tablex = require('pl.tablex')

local floors = {}

---Reads what `nm -P -A` prints of object files.
---@param lines string[]
---@param module_of fun(object: string): string
---@return table<string, { defines: table, needs: table }> modules
function floors.read(lines, module_of)
  local modules = {}
  for _, line in ipairs(lines) do
    local object, symbol, kind = line:match('^(.-): (%S+) (%a)')
    if object then
      local name = module_of(object)
      modules[name] = modules[name] or { defines = {}, needs = {} }
      local list = kind == 'U' and 'needs' or kind:find('%u') and 'defines'
      if list then
        modules[name][list][symbol] = true
      end
    end
  end
  return modules
end

-- Which module uses which, and what of the outside: { arrows, outside }, both module -> set.
local function uses_of(modules)
  local home, arrows, outside = {}, {}, {}
  for name, module in pairs(modules) do
    for symbol in pairs(module.defines) do
      home[symbol] = name
    end
  end
  for name, module in pairs(modules) do
    arrows[name], outside[name] = {}, {}
    for symbol in pairs(module.needs) do
      if not home[symbol] then
        outside[name][symbol] = true
      elseif home[symbol] ~= name then
        arrows[name][home[symbol]] = true
      end
    end
  end
  return arrows, outside
end

local function floor_of(name)
  return name:match('^[^/]+')
end

local function heights_of(order)
  local heights = {}
  for i, floor in ipairs(order) do
    heights[floor] = i
  end
  return heights
end

-- The names on a way from `name` back to itself along arrows, or nothing.
local function circle_through(arrows, name)
  local came_from, queue, at = {}, { name }, 1
  while queue[at] do
    for to in tablex.sort(arrows[queue[at]] or {}) do
      if to == name then
        local way, step = { name }, queue[at]
        while step ~= name do
          table.insert(way, 2, step)
          step = came_from[step]
        end
        way[#way + 1] = name
        return way
      elseif not came_from[to] then
        came_from[to] = queue[at]
        queue[#queue + 1] = to
      end
    end
    at = at + 1
  end
end

-- Up is not allowed to any of `arrows`, and no way back to any of `loads`, which are some of them.
local function check_arrows(arrows, loads, rules, say)
  local heights, seen = heights_of(rules.floors), {}
  for from in tablex.sort(arrows) do
    local height = heights[floor_of(from)]
    if not height then
      say(('%s is on no floor: %s'):format(from, table.concat(rules.floors, ', ')))
    end
    for to in tablex.sort(arrows[from]) do
      if height and (heights[floor_of(to)] or 0) > height then
        say(('%s uses %s, which is above it'):format(from, to))
      end
    end
  end
  for name in tablex.sort(loads) do
    local way = not seen[name] and circle_through(loads, name)
    for _, step in ipairs(way or {}) do
      seen[step] = true
    end
    if way then
      say('a circle: ' .. table.concat(way, ' -> '))
    end
  end
end

local function matches_any(symbol, patterns)
  for _, pattern in ipairs(patterns or {}) do
    if symbol:find('^' .. pattern .. '$') then
      return true
    end
  end
  return false
end

-- Pure symbols are anybody's, a library's are those of its modules, and what is of the operating
-- system is for one floor.
local function is_allowed(symbol, name, rules)
  return floor_of(name) == rules.system_floor or matches_any(symbol, rules.pure)
    or matches_any(symbol, rules.libraries[name])
    or matches_any(symbol, rules.libraries[floor_of(name)])
end

local function check_module(name, symbols, rules, say)
  local excepted = {}
  for _, symbol in ipairs((rules.system or {})[name] or {}) do
    excepted[symbol] = true
  end
  for symbol in tablex.sort(symbols) do
    if rules.refused and rules.refused[symbol] then
      say(('%s uses %s: %s'):format(name, symbol, rules.refused[symbol]))
    elseif excepted[symbol] then
      excepted[symbol] = nil
    elseif not is_allowed(symbol, name, rules) then
      say(('%s uses %s of the system; only %s/ may'):format(name, symbol, rules.system_floor))
    end
  end
  for symbol in tablex.sort(excepted) do
    say(('%s does not use %s any more: remove the exception'):format(name, symbol))
  end
end

-- Symbols that no module defines.
local function check_outside(outside, rules, say)
  for name in tablex.sort(outside) do
    check_module(name, outside[name], rules, say)
  end
  for name in tablex.sort(rules.system or {}) do
    if not outside[name] then
      say(('there is no module %s: remove its exceptions'):format(name))
    end
  end
end

---@param modules table of floors.read
---@param rules { floors: string[], system_floor: string, pure: string[], libraries: table,
---  refused?: table<string, string>, system?: table<string, string[]> }
---@return string[] findings
function floors.check(modules, rules)
  local findings = {}
  local function say(finding)
    findings[#findings + 1] = finding
  end
  local arrows, outside = uses_of(modules)
  check_arrows(arrows, arrows, rules, say)
  check_outside(outside, rules, say)
  return findings
end

-- FLOOR/NAME of what is required as latchkey.FLOOR.NAME; what has no folder stands on the lowest
-- floor, which has no name in it.
local function lua_module(required, rules)
  local floor, name = required:match('^latchkey%.([%w_]+)%.?([%w_.]*)$')
  if not floor then
    return rules.floors[1] .. '/init'
  elseif name ~= '' then
    return floor .. '/' .. name
  end
  local is_folder = false
  for _, one in ipairs(rules.floors) do
    is_folder = is_folder or one == floor
  end
  return is_folder and floor .. '/init' or rules.floors[1] .. '/' .. floor
end

---What the files of tools/latchkey require of one another. One that is required at the beginning
---of a line is needed to load a file; a circle of others does no harm.
---@param files { [1]: string, [2]: string }[] what a file is required as, and its text
---@param rules { floors: string[], outside: string[] } outside: patterns of what else may be
---  required by a name that begins as the project's own
---@return string[] findings
function floors.check_lua(files, rules)
  local findings, arrows, loads = {}, {}, {}
  local function say(finding)
    findings[#findings + 1] = finding
  end
  for _, file in ipairs(files) do
    local from = lua_module(file[1], rules)
    arrows[from], loads[from] = arrows[from] or {}, loads[from] or {}
    for line in file[2]:gmatch('[^\n]+') do
      local code = line:gsub('%-%-.*', '')
      for required in code:gmatch("%f[%w_]require[%s,(]*'([%w_.]+)'") do
        local to = required:find('^latchkey%f[^%w_]') and not matches_any(required, rules.outside)
          and lua_module(required, rules)
        if required:find('^lib%.') then
          say(('%s requires %s, which is not installed'):format(from, required))
        elseif to and to ~= from then
          arrows[from][to] = true
          loads[from][to] = not line:find('^%s') or loads[from][to]
        end
      end
    end
  end
  check_arrows(arrows, loads, rules, say)
  return findings
end

return floors
