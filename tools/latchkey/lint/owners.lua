-- SPDX-License-Identifier: Apache-2.0
-- Which arguments of a script tell one caller from another: they, or what is made of them, are
-- compared with what is not written out, or given to a command.
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')
local text = require('latchkey.text')

local owners = {}

-- They keep nothing of what they are given but in what they answer.
local PASSING = text.set([[assert error ipairs next pairs print select tonumber tostring unpack
  cjson.encode cmsgpack.pack redis.error_reply redis.sha1hex redis.status_reply string.byte
  string.char string.format string.lower string.rep string.reverse string.sub string.upper
  struct.pack table.concat]])
-- Nor in that.
local BLIND = text.set('redis.breakpoint redis.debug redis.log string.len type')
local MATCHING = text.set('string.find string.gmatch string.gsub string.match')

local WRITTEN = text.set('False Nil Number String True')

local ALL = 'all'

local Uses = {}
Uses.__index = Uses

local function note(list, var, value)
  list[var] = list[var] or {}
  table.insert(list[var], value or nil)
end

-- What each variable may have been made of: var -> expressions.
function Uses:read(block)
  local made = self.made
  parser.walk(block, function(node)
    for i, var in ipairs(node.tag == 'Local' and node.vars or {}) do
      note(made, var, node[i] or node[#node])
    end
    for _, var in ipairs(node.tag == 'For' and node.vars or {}) do
      for i = 1, #node - 1 do
        note(made, var, node[i])
      end
    end
    for i = 1, node.targets or 0 do
      note(made, node[i].var or false, node[node.targets + i] or node[#node])
    end
  end)
  parser.walk(block, function(node)
    local called = node.tag == 'Call' and self.functions[node[1].var or false]
    for i, var in ipairs(called and called.params or {}) do
      note(made, var, node[i + 1])
    end
  end)
end

function Uses:is_arguments(node)
  local made = self.made[node.var or false]
  return script_of.is_global(node, 'ARGV')
    or made ~= nil and #made == 1 and script_of.is_global(made[1], 'ARGV')
end

-- The place in ARGV that a node is; "all" where any may be meant.
function Uses:place(node)
  if self:is_arguments(node) then
    return ALL
  elseif node.tag == 'Index' and self:is_arguments(node[1]) then
    return node[2].tag == 'Number' and node[2].value or ALL
  end
end

-- The function of Lua or of the server that is called, "string.len", and what it is given.
function Uses:called(node)
  if node.tag == 'Method' then
    return 'string.' .. node.name, { unpack(node) }
  end
  local made = self.made[node[1].var or false]
  local from = made and #made == 1 and made[1] or node[1]
  local name = from.tag == 'Name' and not from.var and from.name or nil
  if from.tag == 'Index' and from[1].tag == 'Name' and not from[1].var
    and from[2].tag == 'String' then
    name = from[1].name .. '.' .. from[2].value
  end
  return name, { unpack(node, 2) }
end

-- All arguments that an expression is made of tell callers apart.
function Uses:mind(node, seen)
  local place = not seen[node] and self:place(node)
  if place then
    self.minded[place] = true
  end
  if place or seen[node] or node.tag == 'Unary' or node.tag == 'Function' then
    return
  end
  seen[node] = true
  local parts = node
  if node.tag == 'Call' or node.tag == 'Method' then
    local name, given = self:called(node)
    parts = BLIND[name or false] and {} or given
    parser.walk(self.functions[node[1].var or false] or {}, function(inner)
      for _, value in ipairs(inner.tag == 'Return' and inner or {}) do
        self:mind(value, seen)
      end
    end)
  elseif node.tag == 'Name' then
    parts = self.made[node.var or false] or {}
  end
  for _, part in ipairs(parts) do
    self:mind(part, seen)
  end
end

-- What a call does with what it is given: a local function is looked into, and what is told to
-- others or matched with a text that is written out guards nothing.
function Uses:call(node, command)
  local name, given = self:called(node)
  local is_known = self.functions[node[1].var or false] or PASSING[name or false]
    or BLIND[name or false]
    or MATCHING[name or false] and given[2] and WRITTEN[given[2].tag]
    or command and command.access == 'publish'
  for _, value in ipairs(is_known and {} or given) do
    self:mind(value, {})
  end
end

---@param script table of lint.script, with a block
---@return fun(place: integer): boolean does this argument tell callers apart?
function owners.minded(script)
  local self = setmetatable({ made = {}, functions = script_of.functions(script.block),
    minded = {} }, Uses)
  local commands = {}
  for _, call in ipairs(script.calls) do
    commands[call.node] = call.command
  end
  self:read(script.block)
  parser.walk(script.block, function(node)
    local compares = node.tag == 'Operator' and (node.op == '==' or node.op == '~=')
    if compares and not (WRITTEN[node[1].tag] or WRITTEN[node[2].tag]) then
      self:mind(node[1], {})
      self:mind(node[2], {})
    elseif node.tag == 'Call' or node.tag == 'Method' then
      self:call(node, commands[node])
    elseif node.tag == 'Index' and not self:is_arguments(node[1]) then
      self:mind(node[2], {})
    end
    -- What is put into a table is looked for there.
    for i = 1, node.targets or 0 do
      if node[i].tag == 'Index' then
        self:mind(node[node.targets + i] or node[#node], {})
      end
    end
  end)
  return function(place)
    return self.minded[place] or self.minded[ALL] or false
  end
end

return owners
