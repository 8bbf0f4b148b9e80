-- SPDX-License-Identifier: Apache-2.0
-- Where a run is to stop: break points by line, and keys that are watched.
local code_lines = require('latchkey.lua51.code_lines')
local parser = require('latchkey.lua51.parser')

local Points = {}
Points.__index = Points

-- Statements that run; others are only around those.
local RUNS = { Local = true, Assign = true, Return = true, Break = true, Call = true, Method = true,
  For = true }
local CALLS = { Call = true, Method = true }
local CONDITIONED = { If = true, While = true, Repeat = true }

-- The function that a statement makes: at its end, where there is nothing to see. A call that is
-- given one runs where it begins, too.
local function made_function(node)
  local last = (RUNS[node.tag] or node.tag == 'LocalFunction') and node[#node]
  return last and last.tag == 'Function' and last
end

-- A statement over several lines runs at the first of them that has code; without code, nowhere.
local function add_line(self, line, last)
  while line <= last and self.code and not self.code[line] do
    line = line + 1
  end
  if line <= last then
    self.stoppable[line] = true
  end
end

local function collect(self, node, tokens)
  local made = made_function(node)
  local last = node.last and tokens[node.last].line
  if made then
    self.ends[made.last and tokens[made.last].line or last] = true
  end
  if RUNS[node.tag] and (not made or CALLS[node.tag]) then
    add_line(self, node.line, last or node.line)
  end
  for _, child in ipairs(node) do
    if CONDITIONED[node.tag] and child.tag ~= 'Block' then
      add_line(self, tokens[child.first].line, tokens[child.last].line)
    end
    collect(self, child, tokens)
  end
end

---@param store table of the world
---@param source string of the script
function Points.new(store, source)
  local self = setmetatable({ store = store, stoppable = {}, ends = {}, lines = {}, keys = {},
    held = {}, code = code_lines(source) }, Points)
  local tree, _, tokens = parser.parse((source:gsub('^#![^\n]*', '')))
  collect(self, tree or {}, tokens)
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
