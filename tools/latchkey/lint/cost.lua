-- SPDX-License-Identifier: Apache-2.0
-- The rule on "cost:": the most commands that any way through a script can take.
local functions_of = require('latchkey.lint.functions').of
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')

local Counter = {}
Counter.__index = Counter

local function new_counter(script)
  local self = setmetatable({ commands = {}, functions = functions_of(script.block),
    known = {}, loops = {}, assumed = {}, grows = script.header.cost.per ~= nil }, Counter)
  for _, call in ipairs(script.calls) do
    self.commands[call.node] = true
  end
  return self
end

-- A function's own commands; one that calls itself is counted once.
function Counter:call(body)
  if not self.known[body] then
    self.known[body] = 0
    self.known[body] = self:block(body[1])
  end
  return self.known[body]
end

-- What a condition comes to, as far as the assumptions tell; nil: either.
function Counter:truth(node)
  if node.tag == 'Name' then
    return self.assumed[node.var or false]
  elseif node.tag == 'Paren' then
    return self:truth(node[1])
  elseif node.tag == 'Unary' and node.op == 'not' then
    local operand = self:truth(node[1])
    if operand ~= nil then
      return not operand
    end
  elseif node.tag == 'Operator' and (node.op == 'and' or node.op == 'or') then
    local left, right = self:truth(node[1]), self:truth(node[2])
    local decisive = node.op == 'or'
    if left == decisive or right == decisive then
      return decisive
    elseif left ~= nil and right ~= nil then
      return not decisive
    end
  end
end

-- Is the right side of "and" or "or" never looked at?
function Counter:stops_short(node)
  if node.tag ~= 'Operator' or (node.op ~= 'and' and node.op ~= 'or') then
    return false
  end
  return self:truth(node[1]) == (node.op == 'or')
end

-- What a function that is called on the spot, or handed to another one, takes: as if it were called
-- once there. Of several that it may be, the longest.
function Counter:handed_on(node)
  local most = 0
  for _, body in ipairs(self.functions:of(node)) do
    most = math.max(most, self:call(body))
  end
  return most
end

-- The commands of an expression, or of a statement without blocks; what a function holds counts
-- where it is called.
function Counter:expression(node)
  if node.tag == 'Function' then
    return 0
  end
  local count = self.commands[node] and 1 or 0
  local is_method = node.tag == 'Method'
  for i, child in ipairs((is_method or node.tag == 'Call') and node or {}) do
    count = count + self:handed_on(is_method and i == 1 and node or child)
  end
  for i, child in ipairs(node) do
    if i == 1 or not self:stops_short(node) then
      count = count + self:expression(child)
    end
  end
  return count
end

-- How often a loop runs where that is written out.
local function times(node)
  local from, to = script_of.integer(node[1]), script_of.integer(node[2])
  if node.tag == 'For' and #node == 3 and from and to then
    return math.max(to - from + 1, 0)
  end
end

-- A loop's commands count in one turn; all turns do where their number is written out and the
-- header gives no cost for each.
function Counter:loop(node)
  local body = node.tag == 'Repeat' and 1 or #node
  local head, turn = 0, self:block(node[body])
  for i, child in ipairs(node) do
    if i ~= body and node.tag == 'For' then
      head = head + self:expression(child)
    elseif i ~= body then
      turn = turn + self:expression(child)
    end
  end
  local count = not self.grows and times(node)
  if count then
    return head + count * turn
  elseif turn > 0 then
    self.loops[#self.loops + 1] = { line = node.line, turn = turn }
  end
  return head
end

-- Of an if statement: the most commands of a way that goes on below it, nil if none does, and of
-- one that ends with it.
function Counter:branches(node)
  local so_far, on, ended = 0, nil, 0
  for i = 1, #node, 2 do
    local block, truth = node[i + 1] or node[i], true
    if node[i + 1] then
      so_far, truth = so_far + self:expression(node[i]), self:truth(node[i])
    end
    if truth ~= false then
      local most, goes_on = self:block(block)
      ended = math.max(ended, so_far + most)
      on = goes_on and math.max(on or 0, so_far + goes_on) or on
    end
    if truth then
      return on, ended
    end
  end
  return math.max(on or 0, so_far), ended
end

local LOOPS = { While = true, Repeat = true, For = true }

---@return integer most commands of any way through the block
---@return integer|nil goes_on of one that reaches its end
function Counter:block(block)
  local count, most = 0, 0
  for _, statement in ipairs(block) do
    if statement.tag == 'If' then
      local on, ended = self:branches(statement)
      most = math.max(most, count + ended)
      if not on then
        return most
      end
      count = count + on
    elseif LOOPS[statement.tag] then
      count = count + self:loop(statement)
    elseif statement.tag == 'Block' then
      local inner, goes_on = self:block(statement)
      most = math.max(most, count + inner)
      if not goes_on then
        return most
      end
      count = count + goes_on
    elseif statement.tag ~= 'LocalFunction' then
      count = count + self:expression(statement)
    end
    if statement.tag == 'Return' or statement.tag == 'Break' then
      return math.max(most, count)
    end
  end
  return math.max(most, count), count
end

-- Locals that two conditions look at, and nothing changes: ways are counted for each truth of them,
-- so that "if free" and a later "if not free" are not both taken.
local ASSUMED_MAX = 6

local function deciders(script)
  local seen, changed, list = {}, script_of.changed(script.block), {}
  parser.walk(script.block, function(node)
    local operands = node.tag == 'If' and node or node.tag == 'Operator' and node
      or node.tag == 'Unary' and node.op == 'not' and node or {}
    for _, operand in ipairs(operands) do
      local var = operand.tag == 'Name' and operand.var
      if var then
        seen[var] = (seen[var] or 0) + 1
        list[#list + 1] = seen[var] == 2 and var or nil
      end
    end
  end)
  local found = {}
  for _, var in ipairs(list) do
    if not changed[var] and #found < ASSUMED_MAX then
      found[#found + 1] = var
    end
  end
  return found
end

-- The most commands beside loops, whatever the deciders are.
local function longest(counter, script, vars, at)
  if at > #vars then
    counter.known, counter.loops = {}, {}
    return (counter:block(script.block))
  end
  local most = 0
  for _, truth in ipairs({ true, false }) do
    counter.assumed[vars[at]] = truth
    most = math.max(most, longest(counter, script, vars, at + 1))
  end
  counter.assumed[vars[at]] = nil
  return most
end

local function cost(script, report)
  local declared, counter = script.header.cost, new_counter(script)
  local line = script.header.lines.cost
  local most = longest(counter, script, deciders(script), 1)
  longest(counter, script, {}, 1) -- leaves the loops of all ways
  if most > declared.base then
    report(line, ('%d commands on the longest way beside loops; the header says %d'):format(most,
      declared.base))
  end
  for _, loop in ipairs(counter.loops) do
    if not declared.per then
      report(loop.line,
        'commands in a loop; the header says how many: "N + M per WORD, at most MAX"')
    elseif loop.turn > declared.per then
      report(loop.line, ('%d commands in one turn of this loop; the header says %d per %s'):format(
        loop.turn, declared.per, declared.of))
    end
  end
  if declared.max and declared.max < declared.base + declared.per then
    report(line, ('at most %.0f is less than %.0f + %.0f'):format(declared.max, declared.base,
      declared.per))
  end
end

return {
  { id = 'cost', wants = 'no way through the code takes more commands than "cost:" says',
    needs = 'both', check = cost },
}
