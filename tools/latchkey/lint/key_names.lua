-- SPDX-License-Identifier: Apache-2.0
-- Where the key of a command comes from in a script with a header: the header's keys, or names that
-- a script builds of them. Those of scripts with a contract are in latchkey.lint.their_keys.
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')

local key_names = {}

-- Stand in a built name for what is only known at run time, and for a key in braces.
local UNKNOWN, BRACED = '\1', '\2'

-- The local functions that put a name into braces, so that all that follows it stays in its slot.
local function bracers(functions)
  local found = {}
  for var, body in pairs(functions) do
    parser.walk(body, function(node)
      if node.tag == 'String' and node.value:find('{', 1, true) then
        found[var] = true
      end
    end)
  end
  return found
end

-- Loop variables that go through the keys: var -> header key.
local function loop_keys(script, many)
  local found = {}
  parser.walk(script.block, function(node)
    local call = node.tag == 'For' and node[1]
    local list = call and call.tag == 'Call' and call[2] and many[call[2].var or false]
    local goes_on = list and node.vars[2]
      and (script_of.is_global(call[1], 'ipairs') or script_of.is_global(call[1], 'pairs'))
    if goes_on then
      found[node.vars[2]] = list
    end
  end)
  return found
end

local Origin = {}
Origin.__index = Origin

-- What a node was before it was handed on: a parameter is what its function is called with. What a
-- function hands on to itself is left out.
function Origin:handed_on(node, found, seen)
  local var = node and node.var or false
  local value, arguments = self.values[var], self.arguments[var]
  if value and value.tag == 'Name' then
    return self:handed_on(value, found, seen)
  elseif not arguments then
    found[#found + 1] = node
  elseif not seen[var] then
    seen[var] = true
    for _, argument in ipairs(arguments) do
      self:handed_on(argument, found, seen)
    end
  end
  return found
end

-- What a parameter is in each call of its function, where that is the same in all of them. While it
-- is asked for, nothing is known of what the function makes of its own parameter.
function Origin:in_each_call(node, what)
  local var = node.var or false
  local arguments = self.arguments[var]
  local list = arguments and self:handed_on(node, {}, {}) or {}
  self.arguments[var] = nil
  local same = list[1] and what(self, list[1]) or nil
  for _, one in ipairs(list) do
    same = one and what(self, one) == same and same or nil
  end
  self.arguments[var] = arguments
  return same
end

-- Header key of an expression that is one of KEYS itself.
function Origin:declared(node)
  if not node then
    return nil
  elseif node.tag == 'Index' then
    return self.many[node[1].var or false]
  end
  local var = node.var or false
  if self.one[var] or self.turns[var] then
    return self.one[var] or self.turns[var]
  elseif self.values[var] then
    return self:declared(self.values[var])
  end
  return self:in_each_call(node, Origin.declared)
end

-- What a script puts together: the text of a name, in which a key in braces is BRACED.
function Origin:text(node)
  return script_of.text_of(node, self.values, function(part)
    if part.tag == 'Call' and self.bracers[part[1].var or false] and self:declared(part[2]) then
      return BRACED
    elseif self.values[part.var or false] then
      return nil
    end
    return self:in_each_call(part, Origin.text) or UNKNOWN
  end)
end

-- Is a declared key, without braces around it, part of the name?
function Origin:holds_bare_key(node)
  if self:declared(node) then
    return true
  elseif node.tag == 'Operator' and node.op == '..' then
    return self:holds_bare_key(node[1]) or self:holds_bare_key(node[2])
  end
  local value = self.values[node.var or false]
  return value ~= nil and self:holds_bare_key(value)
end

local function escaped(text)
  return (text:gsub('%W', '%%%0'):gsub('%%%*', '.+'))
end

-- Is it a name of this form, as the header derives it?
local function follows(text, form)
  if form.kind == 'suffix' then
    return text:find('^' .. BRACED .. ':?' .. escaped(form.text) .. '$') ~= nil
  end
  return text:find('^' .. escaped(form.text) .. ':?' .. BRACED .. '$') ~= nil
end

---@return table|nil key the header's, where the expression is one of KEYS
---@return string|nil wrong rule that a name breaks which the script builds itself
function Origin:of(node)
  local key = self:declared(node)
  if key then
    return key
  elseif #self.derived == 0 then
    return nil, 'keys'
  end
  local text = self:text(node)
  if not text:find(BRACED, 1, true) then
    return nil, self:holds_bare_key(node) and 'slot' or 'derived'
  end
  for _, derived in ipairs(self.derived) do
    if follows(text, derived.form) then
      return derived
    end
  end
  return nil, 'derived'
end

---@param script table of lint.script, with header and block
---@return table origin
function key_names.of(script)
  local functions = script_of.functions(script.block)
  local self = setmetatable({ one = {}, many = {}, values = script_of.definitions(script.block),
    arguments = script_of.passed(script.block, functions), bracers = bracers(functions),
    derived = script.header.derived }, Origin)
  for _, bound in ipairs(script.bindings) do
    if bound.array == 'KEYS' and bound.index then
      self.one[bound.var] = script.header.keys[bound.index]
    elseif bound.array == 'KEYS' then
      self.many[bound.var] = script.header.keys[1]
    end
  end
  self.turns = loop_keys(script, self.many)
  return self
end

return key_names
