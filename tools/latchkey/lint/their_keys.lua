-- SPDX-License-Identifier: Apache-2.0
-- What the key of a command may be in a script with a contract, which is written in any way: a key
-- of the contract, what is none, and what only a run can tell.
local tablex = require('pl.tablex')

local Strict = require('latchkey.mock.strict')
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')

local their_keys = {}

-- Stand in a built name for what is only known at run time, and for a key.
local UNKNOWN, BARE = '\1', '\3'

-- To one key: where each of thirty variables is made of the one before in two ways, there are a
-- billion.
local STEPS_MAX = 10000

local Values = {}
Values.__index = Values

-- What a value may be: `keys` of the contract; `made`, expressions that are no key; `unknown`: only
-- a run can tell; `falsy`: it may be none at all.
local function nothing_yet()
  return { keys = {}, made = {} }
end

local function is_made_alone(found)
  return not found.unknown and #found.keys == 0
end

local function is_open(node)
  return node ~= nil and (node.tag == 'Call' or node.tag == 'Method' or node.tag == 'Vararg')
end

local function merge(into, from)
  for _, list in ipairs({ 'keys', 'made' }) do
    for _, one in ipairs(from[list]) do
      table.insert(into[list], one)
    end
  end
  into.unknown = into.unknown or from.unknown
end

function Values:give(var, value)
  self.given[var] = self.given[var] or {}
  table.insert(self.given[var], value)
end

-- `nth` is the place among the results of the last value, if that may have several.
function Values:give_all(vars, first, values, is_passed)
  local last = #values
  for i, var in ipairs(vars) do
    local place = first + i - 1
    if place < last or place == last and not is_open(values[last]) then
      self:give(var, { node = values[place], is_passed = is_passed })
    elseif last >= first and is_open(values[last]) then
      self:give(var, { node = values[last], nth = place - last + 1, is_passed = is_passed })
    end
  end
end

function Values:read_assignment(node)
  for i = 1, node.targets do
    local target = node[i]
    if target.var then
      self:give_all({ target.var }, node.targets + i, node)
    elseif target.tag == 'Index' and target[1].var then
      self:give(target[1].var, { unknown = true }) -- it holds what it was not made of
    end
  end
end

local LOOPS = { ipairs = true, pairs = true }

-- Of a loop over numbers there are two at least; `for name in next, list` has two as well.
local function is_over_numbers(node)
  return #node.vars == 1 and #node > 2 and not script_of.is_global(node[1], 'next')
end

function Values:read_loop(node)
  local call = node[1]
  local name = call.tag == 'Call' and call[2] and not call[1].var and call[1].name or nil
  for i, var in ipairs(node.vars) do
    if is_over_numbers(node) or i == 1 and (name == 'ipairs' or name and self:is_all_keys(call[2]))
    then
      self:give(var, { number = node })
    elseif LOOPS[name or false] then
      self:give(var, { element = call[2] })
    else
      self:give(var, { unknown = true })
    end
  end
end

-- A function that is handed on is called by others, with what only they know.
function Values:read_functions(block)
  local callees = {}
  parser.walk(block, function(node)
    local called = node.tag == 'Call' and self.functions[node[1].var or false]
    if called then
      callees[node[1]] = true
      self:give_all(called.params, 2, node, true)
    end
  end)
  local own = {}
  for var, body in pairs(self.functions) do
    own[body] = var
  end
  parser.walk(block, function(node)
    local handed_on = node.tag == 'Name' and not callees[node] and self.functions[node.var or false]
      or node.tag == 'Function' and not own[node] and node
    for _, param in ipairs(handed_on and handed_on.params or {}) do
      self:give(param, { unknown = true })
    end
  end)
end

function Values:read(block)
  parser.walk(block, function(node)
    if node.tag == 'Local' then
      self:give_all(node.vars, 1, node)
    elseif node.tag == 'Assign' then
      self:read_assignment(node)
    end
  end)
  self:read_functions(block)
  parser.walk(block, function(node)
    if node.tag == 'For' then
      self:read_loop(node)
    end
  end)
end

-- Is it KEYS, or a variable that is KEYS and nothing else?
function Values:is_all_keys(node, seen)
  if not node or node.tag == 'Paren' then
    return node ~= nil and self:is_all_keys(node[1], seen)
  elseif script_of.is_global(node, 'KEYS') then
    return true
  end
  local given = self.given[node.var or false]
  seen = seen or {}
  if not given or seen[given] then
    return false
  end
  seen[given] = true
  for _, value in ipairs(given) do
    if not value.node or (value.nth or 1) > 1 or not self:is_all_keys(value.node, seen) then
      return false
    end
  end
  return true
end

-- KEYS[place], else any of them.
function Values:add_key(found, place, node)
  local keys = self.keys
  local last = keys[#keys]
  local key = place and (keys[place] or last and last.many and last)
    or not place and #keys == 1 and last.many and last
  if key then
    table.insert(found.keys, key)
  elseif place then
    table.insert(found.made, node)
  else
    found.unknown = true
  end
end

-- The keys that unpack(KEYS, first) gives from its nth result on.
function Values:unpacked(node, nth)
  local is_unpack = node.tag == 'Call' and script_of.is_global(node[1], 'unpack')
  if is_unpack and self:is_all_keys(node[2]) then
    local first = not node[3] and 1 or script_of.integer(node[3])
    return true, first and first + nth - 1
  end
end

local function all_are_made(self, node, first, seen)
  for i = first, #node do
    if not is_made_alone(self:what(node[i], seen)) then
      return false
    end
  end
  return true
end

-- What a function of the script gives back first.
function Values:add_returned(body, found, seen)
  if seen[body] then
    return
  end
  seen[body] = true
  parser.walk(body[1], function(node, depth)
    if node.tag == 'Return' and depth == 0 and node[1] then
      self:add(node[1], found, seen)
    end
  end)
end

-- What is made of no key is none; what a function of others makes of one, nobody knows.
function Values:add_called(node, found, seen)
  local callee = node[1]
  local own = node.tag == 'Call' and self.functions[callee.var or false]
  local passes = node.tag == 'Call' and node[2]
    and (script_of.is_global(callee, 'assert') or script_of.is_global(callee, 'tostring'))
  local is_unpack, place = self:unpacked(node, 1)
  local base = callee.tag == 'Index' and callee[1] or callee
  if self.commands[node] then
    table.insert(found.made, node)
  elseif passes then
    self:add(node[2], found, seen)
  elseif is_unpack then
    self:add_key(found, place, node)
  elseif own then
    self:add_returned(own, found, seen)
  elseif (node.tag == 'Method' or base.tag == 'Name' and not base.var)
    and all_are_made(self, node, node.tag == 'Method' and 1 or 2, seen) then
    table.insert(found.made, node)
  else
    found.unknown = true
  end
end

function Values:add_variable(node, found, seen)
  local given = self.given[node.var or false]
  if not node.var then
    found.unknown = not script_of.is_global(node, 'ARGV')
    table.insert(found.made, not found.unknown and node or nil)
    return
  elseif seen[node.var] then
    return
  end
  seen[node.var] = true
  local all, is_passed = nothing_yet(), true
  for _, value in ipairs(given or {}) do
    self:add_given(value, all, seen)
    is_passed = is_passed and value.is_passed
  end
  -- Which of its values it has there, only a run can tell; what a function is called with, it has.
  if #all.made > 0 and #all.keys > 0 and not is_passed then
    all.made, all.unknown = {}, true
  end
  seen[node.var] = nil
  merge(found, all)
end

function Values:add_given(value, found, seen)
  local is_unpack, place
  if value.nth then
    is_unpack, place = self:unpacked(value.node, value.nth)
  end
  if value.unknown then
    found.unknown = true
  elseif value.number then
    table.insert(found.made, value.number)
  elseif value.element and self:is_all_keys(value.element) then
    self:add_key(found, nil)
  elseif value.element then
    self:add_element(value.element, found, seen)
  elseif is_unpack then
    self:add_key(found, place, value.node)
  elseif value.nth and value.nth > 1 then
    found.unknown = true
  else
    self:add(value.node, found, seen)
  end
end

-- Of a table or an answer that is no key; what is put into a table may be one.
function Values:add_element(of, found, seen)
  local base = self:what(of, seen)
  if is_made_alone(base) and #base.made > 0 then
    table.insert(found.made, base.made[1])
  else
    found.unknown = true
  end
end

-- `a or b` is b only where a may be none.
function Values:add_operator(node, found, seen)
  if node.op == 'and' then
    self:add(node[2], found, seen)
    found.falsy = true
  elseif node.op == 'or' then
    local left = self:what(node[1], seen)
    merge(found, left)
    if left.falsy or #left.keys == 0 then
      self:add(node[2], found, seen)
    end
  else
    table.insert(found.made, node)
  end
end

local ADD = {
  Paren = function(self, node, found, seen)
    self:add(node[1], found, seen)
  end,
  Operator = Values.add_operator,
  Name = Values.add_variable,
  Call = Values.add_called,
  Method = Values.add_called,
  Index = function(self, node, found, seen)
    if self:is_all_keys(node[1]) then
      self:add_key(found, node[2].tag == 'Number' and node[2].value or nil, node)
    else
      self:add_element(node[1], found, seen)
    end
  end,
}
for tag in ('String Number True Unary'):gmatch('%a+') do
  ADD[tag] = function(_, node, found)
    table.insert(found.made, node)
  end
end
for tag in ('Nil False'):gmatch('%a+') do
  ADD[tag] = function(_, _, found)
    found.falsy = true
  end
end

function Values:add(node, found, seen)
  local add = ADD[node.tag]
  self.steps = self.steps + 1
  if add and self.steps <= STEPS_MAX then
    add(self, node, found, seen)
  else
    found.unknown = true
  end
end

function Values:what(node, seen)
  local found = nothing_yet()
  self:add(node, found, seen or {})
  return found
end

-- The text of a name that is put together, in which the first key is what stands for it; whether it
-- is in doubt, as a part of it may be a key.
function Values:text(node)
  local in_doubt = false
  local function known(part)
    local found = self:what(part)
    local key, made = found.keys[1], found.made
    if #made == 0 and #found.keys == 1 and not found.unknown then
      return self.first and key == self.first.key and self.first.text or UNKNOWN
    elseif tablex.find(made, node) then
      return UNKNOWN -- it is made longer each time
    elseif not is_made_alone(found) or #made > 1 then
      in_doubt = true
    elseif made[1] and made[1] ~= part and not self.values[part.var or false]
      and (made[1].tag == 'String' or made[1].tag == 'Operator' and made[1].op == '..') then
      return script_of.text_of(made[1], self.values, known)
    end
    return not self.values[part.var or false] and UNKNOWN or nil
  end
  return script_of.text_of(node, self.values, known) or UNKNOWN, in_doubt
end

-- A name that is no key of the contract: a derived one, the rule that it breaks, or nil where only
-- a run can tell.
function Values:judge(node)
  if #self.derived == 0 then
    return nil, 'keys'
  elseif node.tag ~= 'String' and not (node.tag == 'Operator' and node.op == '..') then
    return nil
  end
  local text, in_doubt = self:text(node)
  for i, pattern in ipairs(self.first and self.first.patterns or {}) do
    if text:find(pattern) then
      return self.derived[i]
    end
  end
  return nil, not in_doubt and 'derived' or nil
end

---What stands in the place of a key.
---@param node table
---@param is_last boolean the last argument, where a call gives all of its results
---@return table found { keys, wrong, unknown }: keys of the contract that it may be; rules that it
---  breaks; may it be anything else?
function Values:of(node, is_last)
  self.steps = 0
  local is_unpack, place = self:unpacked(node, 1)
  if is_unpack and is_last and place then
    local keys = { unpack(self.keys, math.max(place, 1)) }
    return { keys = keys, wrong = {}, unknown = #keys == 0 }
  end
  local found = self:what(node)
  found.wrong = {}
  for _, made in ipairs(found.made) do
    local derived, rule = self:judge(made)
    if derived then
      table.insert(found.keys, derived)
    elseif rule then
      found.wrong[rule] = true
    else
      found.unknown = true
    end
  end
  return found
end

-- Has each key of this form a tag of its own?
local function is_tagged(form)
  return form.kind == 'prefix' or form.kind == 'suffix' or form.kind == 'braces'
    or form.kind == 'pattern' and form.text:gsub('{name}', 'l'):find('{[^{}]+}') ~= nil
end

-- The first key of a contract, what stands for it in names that are built of it, and the patterns
-- of those that may be.
local function first_of(script)
  local key = script.header.keys[1]
  if not key or key.many or key.form.kind == 'slot' then
    return nil
  end
  local text = is_tagged(key.form) and '{' .. BARE .. '}' or BARE
  return { key = key, text = text, patterns = Strict.derived_patterns(script.header, { text }) }
end

---@param script table of lint.script, with a contract and block
---@return table values
function their_keys.of(script)
  local self = setmetatable({ given = {}, functions = script_of.functions(script.block),
    values = script_of.definitions(script.block), steps = 0, commands = {},
    keys = script.header.keys,
    derived = script.header.derived, first = first_of(script) }, Values)
  for _, call in ipairs(script.calls) do
    self.commands[call.node] = true
  end
  self:read(script.block)
  return self
end

return their_keys
