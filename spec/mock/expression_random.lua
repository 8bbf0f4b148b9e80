-- SPDX-License-Identifier: Apache-2.0
-- Runs random expressions on a server and on the mock, and cuts down the first that differs.
local World = require('latchkey.mock.world')
local expressions = require('mock.expressions')

local Random = {}
Random.__index = Random

-- Texts of errors are those of the Lua that runs the mock; addresses are nobody's.
local HAS_TEXTS = not rawget(_G, 'jit')

---@param oracle table of mock.oracle
function Random.new(oracle)
  return setmetatable({ oracle = oracle, mock = World.new({ strict = false }), covered = {} },
    Random)
end

local function shown(reply, err)
  local text = err and '!! ' .. err.message or tostring(reply)
  return (text:gsub('0x%x%x%x%x%x%x+', 'ADDRESS'))
end

-- The fields of an object of JSON stand in the order of `pairs`, which is that of the Lua.
local function in_order(text)
  local bytes = { text:byte(1, -1) }
  table.sort(bytes)
  return table.concat(bytes, ' ')
end

local function same(expected, actual)
  if expected:sub(1, 1) == '!' and not HAS_TEXTS then
    return actual:sub(1, 1) == '!'
  elseif not HAS_TEXTS and expected:find('":', 1, true) and #expected == #actual then
    return in_order(expected) == in_order(actual)
  end
  return expected == actual
end

-- What both say of some expressions: arrays of texts.
function Random:ask(trees)
  local commands, expected, actual = {}, {}, {}
  for i, tree in ipairs(trees) do
    commands[i] = { 'EVAL', expressions.script(tree), '0' }
  end
  for i, outcome in ipairs(self.oracle:pipeline(commands)) do
    expected[i] = shown(outcome.reply, outcome.err)
    actual[i] = shown(self.mock:command(unpack(commands[i])))
  end
  self.oracle:command('SCRIPT', 'FLUSH')
  self.mock:script_flush()
  return expected, actual
end

-- The smallest part that differs by itself; nil: none does.
function Random:cut(tree)
  local parts = {}
  for _, part in ipairs(tree) do
    parts[#parts + 1] = type(part) == 'table' and part or nil
  end
  local expected, actual = self:ask(parts)
  for i, part in ipairs(parts) do
    if not same(expected[i], actual[i]) then
      return self:cut(part) or part
    end
  end
  for _, part in ipairs(parts) do
    local smaller = self:cut(part)
    if smaller then
      return smaller
    end
  end
end

function Random:count(tree, expected)
  local counts = self.covered[tree.sort] or { replies = 0, errors = 0 }
  self.covered[tree.sort] = counts
  local what = expected:sub(1, 1) == '!' and 'errors' or 'replies'
  counts[what] = counts[what] + 1
end

---One list of expressions.
---@param seed integer
---@return string|nil report of what differs: the seed, the expression, both outcomes
function Random:try(seed)
  local trees = expressions.list(seed)
  local expected, actual = self:ask(trees)
  for i, tree in ipairs(trees) do
    self:count(tree, expected[i])
    if not same(expected[i], actual[i]) then
      local least = self:cut(tree) or tree
      expected, actual = self:ask({ least })
      return ('seed %d, %s\n  %s\nexpected %s, found %s'):format(seed, self.oracle.name,
        expressions.text(least), expected[1], actual[1])
    end
  end
end

return Random
