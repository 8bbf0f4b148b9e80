-- SPDX-License-Identifier: Apache-2.0
-- Do the modules of the C library keep to their floors? Told from what each object file defines and
-- needs, since an #include says little about that. A module is FLOOR/NAME, as its source is below
-- c/src; it may use its own floor and those before it in the list, and nothing in a circle. What a
-- module still uses of the system is listed: a row that no module needs any more must go.
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

local function check_arrows(arrows, rules, say)
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
  for name in tablex.sort(arrows) do
    local way = not seen[name] and circle_through(arrows, name)
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
  check_arrows(arrows, rules, say)
  check_outside(outside, rules, say)
  return findings
end

return floors
