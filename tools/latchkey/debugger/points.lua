-- SPDX-License-Identifier: Apache-2.0
-- Where a run is to stop: break points by line, and keys that are watched.
local parser = require('latchkey.lua51.parser')

local Points = {}
Points.__index = Points

-- Statements that run where they begin. Others are only around those; and a function is made at its
-- end, where there is nothing to see.
local RUNS = { Local = true, Assign = true, Return = true, Break = true, Call = true, Method = true,
  For = true }
local CONDITIONED = { If = true, While = true, Repeat = true }

local function makes_function(node)
  return node.tag == 'LocalFunction' or RUNS[node.tag] and node[#node]
    and node[#node].tag == 'Function'
end

local function collect(node, tokens, lines, ends)
  if makes_function(node) then
    ends[tokens[node.last].line] = true
  elseif RUNS[node.tag] then
    lines[node.line] = true
  end
  for _, child in ipairs(node) do
    if CONDITIONED[node.tag] and child.tag ~= 'Block' then
      lines[tokens[child.first].line] = true
    end
    collect(child, tokens, lines, ends)
  end
end

---@param store table of the world
---@param source string of the script
function Points.new(store, source)
  local self = setmetatable({ store = store, stoppable = {}, ends = {}, lines = {}, keys = {},
    held = {} }, Points)
  local tree, _, tokens = parser.parse((source:gsub('^#![^\n]*', '')))
  collect(tree or {}, tokens, self.stoppable, self.ends)
  return self
end

---Is this line no step of its own?
function Points:is_passed_over(line)
  return self.ends[line] and not self.stoppable[line]
end

---A run begins.
function Points:begin()
  self.held = {}
  for key in pairs(self.keys) do
    self.held[key] = self.store.keys[key]
  end
end

---@param key string
---@param on boolean
function Points:watch(key, on)
  self.keys[key] = on or nil
  self.held[key] = self.store.keys[key]
end

---The watched key that has another value than at the last line, if there is one; records are
---replaced, never changed.
---@return string|nil key
function Points:changed_key()
  local changed
  for key in pairs(self.keys) do
    if self.held[key] ~= self.store.keys[key] then
      self.held[key] = self.store.keys[key]
      changed = (not changed or key < changed) and key or changed
    end
  end
  return changed
end

---The line itself, or the next at which a run can stop.
---@param line integer
---@return integer|nil
function Points:nearest(line)
  local nearest
  for candidate in pairs(self.stoppable) do
    if candidate >= line and (not nearest or candidate < nearest) then
      nearest = candidate
    end
  end
  return nearest
end

return Points
