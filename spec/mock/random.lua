-- SPDX-License-Identifier: Apache-2.0
-- Runs random sequences on a server and on the mock, and shrinks the first that differs.
local World = require('latchkey.mock.world')
local compare = require('mock.compare')
local grammar = require('mock.grammar')
local newer = require('mock.newer')

local Random = {}
Random.__index = Random

---@param oracle table of mock.oracle
function Random.new(oracle)
  local mock = World.new({ strict = false })
  return setmetatable({ oracle = oracle, mock = mock, empty = mock:snapshot(), covered = {},
    passing = {} }, Random)
end

-- Both sides empty, with the same scripts; the mock's clock is the server's.
function Random:reset()
  self.oracle:reset()
  self.mock:restore(self.empty)
  self.mock:script_flush()
  self.mock:advance(self.oracle:now_ms() - self.mock:now_ms())
  local loads = {}
  for i, source in ipairs(grammar.sources()) do
    loads[i] = { 'SCRIPT', 'LOAD', source }
    self.mock:command(unpack(loads[i]))
  end
  self.oracle:pipeline(loads)
end

-- Distances from now become times; a script's own text is left alone.
local function timed(commands, now_ms)
  local list = {}
  for i, argv in ipairs(commands) do
    list[i] = {}
    for place, word in ipairs(argv) do
      list[i][place] = word:gsub('^@([+-]%d+)$', function(distance_ms)
        return ('%.0f'):format(now_ms + distance_ms)
      end)
    end
  end
  return list
end

-- What was reached, so that a run that only ever saw errors does not pass for a good one.
function Random:count(kind, outcome)
  local counts = self.covered[kind] or { replies = 0, errors = 0 }
  self.covered[kind] = counts
  local what = outcome.err and 'errors' or 'replies'
  counts[what] = counts[what] + 1
end

-- A run of the commands on both sides: what differs, and how long it took until the server's keys
-- were read.
local function compared(self, commands, kind)
  self:reset()
  local list = timed(commands, self.mock:now_ms())
  local expected = self.oracle:pipeline(list)
  local keys, now_ms = self.oracle:dump()
  local took_ms = now_ms - self.mock:now_ms()
  for i, argv in ipairs(list) do
    local actual = {}
    actual.reply, actual.err = self.mock:command(unpack(argv))
    self:count(kind, actual)
    if compare.is_unordered(argv) then
      expected[i].reply, actual.reply = compare.sorted(expected[i].reply),
        compare.sorted(actual.reply)
    end
    local found = compare.outcomes(expected[i], actual, not self.oracle.is_model)
    if found then
      return ('command %d: %s'):format(i, found), took_ms
    end
  end
  local found = compare.keys(keys, self.mock:dump())
  return found and 'keys: ' .. found, took_ms
end

-- Which of two deadlines is the later depends on the time between their commands, where that is
-- longer than durations are apart: such a run, of a server that gets no processor, says nothing.
local TRIES = 20

---@param commands string[][]
---@param kind string that they are counted under
---@return string|nil difference
function Random:difference(commands, kind)
  for _ = 1, TRIES do
    local found, took_ms = compared(self, commands, kind)
    if not found or took_ms < grammar.APART_MS then
      return found
    end
    self.repeated = (self.repeated or 0) + 1
  end
  error(('the server took more than %d ms for a sequence, %d times in a row: too slow to compare')
    :format(grammar.APART_MS, TRIES), 0)
end

function Random:shrink(commands, kind)
  local length = #commands
  while length > 0 do
    for first = #commands - length + 1, 1, -length do
      local shorter = {}
      for i, argv in ipairs(commands) do
        if i < first or i >= first + length then
          shorter[#shorter + 1] = argv
        end
      end
      commands = self:difference(shorter, kind) and shorter or commands
    end
    length = math.floor(length / 2)
  end
  return commands
end

local function quoted(argv)
  local words = {}
  for i, text in ipairs(argv) do
    words[i] = ('%q'):format(#text > 300 and text:sub(1, 20) .. '...' or text)
  end
  return table.concat(words, ' ')
end

local function name_of(argv)
  for _, source in ipairs(argv[1] == 'EVALSHA' and grammar.sources() or {}) do
    if require('latchkey.digest').sha1(source) == argv[2] then
      return '   -- ' .. source:match('\nname: *(%S+)')
    end
  end
  return ''
end

-- A script that compares a moment with the server's time does otherwise than on the mock, whose
-- clock stands still, where that moment comes between two commands: not at another time.
local REPEATS = 3

-- The difference of a sequence that has shown one, where it shows one again.
function Random:again(commands, kind)
  for _ = 1, REPEATS do
    local found = self:difference(commands, kind)
    if found then
      return found
    end
  end
end

---One sequence. What differs once and not again is kept in `passing`: { seed, difference } each.
---@param seed integer
---@return string|nil report of what differs: the seed, the commands that it takes, both outcomes
function Random:try(seed)
  local commands, kind = grammar.sequence(seed)
  commands = self.oracle.is_model and commands or newer.without(commands)
  local first = self:difference(commands, kind)
  if not first then
    return nil
  elseif not self:again(commands, kind) then
    table.insert(self.passing, { seed, first })
    return nil
  end
  local lines = { ('seed %d (%s), %s'):format(seed, kind, self.oracle.name) }
  commands = self:shrink(commands, kind)
  for _, argv in ipairs(commands) do
    lines[#lines + 1] = '  ' .. quoted(argv) .. name_of(argv)
  end
  lines[#lines + 1] = self:difference(commands, kind)
    or 'a difference that does not come again when the sequence is repeated: ' .. first
  return table.concat(lines, '\n')
end

return Random
