-- SPDX-License-Identifier: Apache-2.0
-- Which of a script's own functions a call may be of: local ones, and those in fields of tables.
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')

local Functions = {}
Functions.__index = Functions

-- The variable that a name or a field begins with, and the fields from there on: "", ".go",
-- ".deep.go". A local that is such a field and stays it is followed.
function Functions:place_of(node)
  if node.tag == 'Paren' then
    return self:place_of(node[1])
  elseif node.tag == 'Index' and node[2].tag == 'String' then
    local var, path = self:place_of(node[1])
    return var, var and path .. '.' .. node[2].value
  elseif node.tag ~= 'Name' or not node.var then
    return nil
  end
  local value, var, path = self.values[node.var], nil, nil
  if value and (value.tag == 'Name' or value.tag == 'Index' or value.tag == 'Paren') then
    var, path = self:place_of(value)
  end
  return var or node.var, path or ''
end

-- A field that is ever given what is no function of the script, nobody knows.
function Functions:note(var, path, value)
  local fields = self.fields[var] or {}
  self.fields[var] = fields
  if value and value.tag == 'Table' then
    for _, pair in ipairs(value) do
      if pair.tag == 'Pair' and pair[1].tag == 'String' then
        self:note(var, path .. '.' .. pair[1].value, pair[2])
      end
    end
  elseif path == '' then
    self.unknown[var] = true
  else
    fields[path] = fields[path] or {}
    table.insert(fields[path], value or false)
  end
end

function Functions:read(block)
  parser.walk(block, function(node)
    local first = node.tag == 'Assign' and node.targets or 0
    for i = 1, first do
      local var, path = self:place_of(node[i])
      if var then
        self:note(var, path, node[first + i])
      end
    end
    for i, var in ipairs(node.tag == 'Local' and node.vars or {}) do
      if node[i] and node[i].tag == 'Table' then
        self:note(var, '', node[i])
      end
    end
  end)
end

-- Adds those that a field may be; false where one of them is not known.
function Functions:add_field(var, path, list, seen)
  local given = var and not self.unknown[var] and self.fields[var] and self.fields[var][path]
  if not given then
    return false
  elseif seen[given] then
    return true
  end
  seen[given] = true
  for _, value in ipairs(given) do
    if not value or not self:add(value, list, seen) then
      return false
    end
  end
  return true
end

function Functions:add(node, list, seen)
  local tag, body = node.tag, self.locals[node.var or false]
  if tag == 'Function' or body then
    table.insert(list, body or node)
    return true
  elseif tag == 'Paren' then
    return self:add(node[1], list, seen)
  elseif tag ~= 'Name' and tag ~= 'Index' and tag ~= 'Method' then
    return false
  end
  local var, path = self:place_of(tag == 'Method' and node[1] or node)
  local value = self.locals[path == '' and var or false]
  if value and tag ~= 'Method' then
    table.insert(list, value)
    return true
  end
  return self:add_field(var, var and tag == 'Method' and path .. '.' .. node.name or path, list,
    seen)
end

---@param node table what is called, or handed on; a Method for the function that it calls
---@return table[] functions nodes of which it may be any; none: not one of the script's, or only a
---  run can tell
function Functions:of(node)
  local list = self.found[node]
  if not list then
    list = {}
    list = self:add(node, list, {}) and list or {}
    self.found[node] = list
  end
  return list
end

local functions = {}

---@param block table
---@return table functions
function functions.of(block)
  local self = setmetatable({ locals = script_of.functions(block), fields = {}, unknown = {},
    values = script_of.definitions(block), found = {} }, Functions)
  self:read(block)
  return self
end

return functions
