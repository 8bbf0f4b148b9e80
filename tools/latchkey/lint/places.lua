-- SPDX-License-Identifier: Apache-2.0
-- Which place of KEYS or ARGV an expression is, for a contract that is to be written: what lint
-- sees through where it reads one (latchkey.lint.their_keys), as far as one place can be told.
local header = require('latchkey.script.header')
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')

local places = {}

-- "KEYS" or "ARGV" where a node is one of these as a whole, under that name or another.
local function array_of(node, values)
  while node and (node.tag == 'Paren' or values[node.var or false]) do
    node = node.tag == 'Paren' and node[1] or values[node.var]
  end
  for _, array in ipairs({ 'KEYS', 'ARGV' }) do
    if script_of.is_global(node, array) then
      return array
    end
  end
end

-- unpack(KEYS): the array, and the place of what that gives first.
local function unpacked(node, values)
  local is_unpack = node and node.tag == 'Call' and script_of.is_global(node[1], 'unpack')
  local array = is_unpack and array_of(node[2], values)
  local first = array and (not node[3] and 1 or script_of.integer(node[3]))
  if first and first >= 1 and first <= header.FIELDS_MAX and first % 1 == 0 then
    return array, first
  end
end

-- What gives its first argument, or a number that this is.
local PASSES = { assert = true, tonumber = true, tostring = true }

-- The expression that a node has the value of; nil: it has its own.
local function inner(node)
  local callee = node.tag == 'Call' and node[1]
  if node.tag == 'Paren' or node.tag == 'Operator' and node.op == 'or' then
    return node[1]
  end
  return callee and not callee.var and PASSES[callee.name or false] and node[2] or nil
end

---@param block table
---@return fun(node: table): string|nil, integer|nil place "KEYS" or "ARGV", and which of them
---@return table bound names, wherever they are given: var -> { array, place, order,
---  is_unpacked }; the last where no other node is that place
function places.of(block)
  local bound, arguments, count = {}, script_of.passed(block, script_of.functions(block)), 0
  local values = script_of.definitions(block)
  local function place(node)
    if node.tag == 'Index' and node[2].tag == 'Number' then
      local array = array_of(node[1], values)
      return array, array and node[2].value
    end
    local known = bound[node.var or false]
    if known then
      return known.array, known.place
    end
    -- A parameter is what the one call of its function has there; that may be in itself.
    local var, given = node.var or false, arguments[node.var or false]
    if given and #given == 1 and given[1] then
      arguments[var] = nil
      local array, at = place(given[1])
      arguments[var] = given
      return array, at
    end
    local child = inner(node)
    if child then
      return place(child)
    end
  end
  parser.walk(block, function(node)
    for i, var in ipairs(node.tag == 'Local' and node.vars or {}) do
      local array, at
      local all, first = unpacked(node[#node], values)
      local is_unpacked = i >= #node and all ~= nil and first + i - #node <= header.FIELDS_MAX
      if is_unpacked then
        array, at = all, first + i - #node
      elseif node[i] then
        array, at = place(node[i])
      end
      count = count + 1
      bound[var] = array and { array = array, place = at, order = count,
        is_unpacked = is_unpacked } or nil
    end
  end)
  return place, bound
end

-- The nodes that say no more than which place is meant, or give an array another name.
local function mere_names(block, values)
  local mere = {}
  parser.walk(block, function(node)
    local is_place = node.tag == 'Index' and node[2].tag == 'Number'
    if is_place or node.tag == 'Unary' or node.tag == 'Paren' then
      mere[node[1]] = true
    end
    for i, child in ipairs(node.tag == 'Local' and node or {}) do
      mere[child] = values[node.vars[i] or false] == child or nil
      if i == #node and unpacked(child, values) then
        mere[child[2]] = true
      end
    end
  end)
  return mere
end

---@param block table
---@return table<string, boolean> wholes which of KEYS and ARGV a script takes as a whole, or by a
---  number that only a run knows
function places.wholes(block)
  local wholes, values = {}, script_of.definitions(block)
  local mere = mere_names(block, values)
  parser.walk(block, function(node)
    for _, child in ipairs(node) do
      local array = not mere[child] and array_of(child, values)
      if array then
        wholes[array] = true
      end
    end
  end)
  return wholes
end

---@param block table
---@return fun(node: table): boolean is_any is a node one of KEYS that are gone through?
function places.any_key(block)
  local values, turns = script_of.definitions(block), {}
  parser.walk(block, function(node)
    local call = node.tag == 'For' and node[1]
    if call and call.tag == 'Call' and array_of(call[2], values) == 'KEYS' then
      turns[node.vars[2] or false] = true
    end
  end)
  local function is_any(node)
    if node.tag == 'Index' or node.tag == 'Call' then
      return array_of(node[node.tag == 'Index' and 1 or 2], values) == 'KEYS'
    end
    local value = values[node.var or false]
    return turns[node.var or false] or value and is_any(value) or false
  end
  return is_any
end

return places
