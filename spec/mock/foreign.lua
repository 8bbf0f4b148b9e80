-- SPDX-License-Identifier: Apache-2.0
-- Runs a folder of scripts that nobody wrote for latchkey on the mock and on a server, and compares
-- replies and keys. The calls of FILE.lua are in FILE.calls where that is there, a table of Lua:
--   return { { keys = { 'k' }, args = { '1' }, before = { { 'SET', 'k', 'v' } } } }
-- Where it is not, they are guessed from the text.
local World = require('latchkey.mock.world')
local compare = require('mock.compare')
local dir = require('pl.dir')
local file = require('pl.file')
local grammar = require('mock.grammar')
local guesses = require('mock.guesses')
local path = require('pl.path')
local tablex = require('pl.tablex')

local Foreign = {}
Foreign.__index = Foreign

-- So many keyspaces for each script, and so many calls on each.
local ATTEMPTS, CALLS = 30, 4
-- A script that reads the time may be so late on one side, in its unit.
local LATE = 2000
-- What ends so soon may have ended on the server only.
local SOON_MS = 3000
-- Near the end of a second the two sides might see two of them.
local SECOND_ENDS_MS = 900

---@param oracle table of mock.oracle
---@param attempts? integer keyspaces for each script
function Foreign.new(oracle, attempts)
  local mock = World.new({ strict = false })
  return setmetatable({ oracle = oracle, mock = mock, empty = mock:snapshot(),
    attempts = attempts or ATTEMPTS, has_texts = oracle.is_model and not rawget(_G, 'jit') },
    Foreign)
end

local function near(a, b)
  a, b = tonumber(a), tonumber(b)
  return a == b or a and b and math.abs(a - b) <= math.max(LATE, math.abs(a) > 1e15 and LATE * 1000
    or 0) and (math.abs(a) > 1e9 or math.abs(a - b) <= math.max(2, math.abs(a) / 100))
end

-- The text with "@" for each number, and the numbers.
local function split(text)
  local numbers = {}
  local rest = text:gsub('%-?%d+%.?%d*', function(number)
    numbers[#numbers + 1] = number
    return '@'
  end)
  return rest, numbers
end

local function same_text(a, b)
  local rest, numbers = split(a)
  local other_rest, other_numbers = split(b)
  for i, number in ipairs(numbers) do
    if not near(number, other_numbers[i]) then
      return false
    end
  end
  return rest == other_rest
end

-- Equal but for what the time does, and for the spelling of numbers.
local function same(a, b)
  if type(a) ~= type(b) then
    return false
  elseif type(a) == 'number' then
    return near(a, b)
  elseif type(a) == 'string' then
    return a == b or same_text(a, b)
  elseif type(a) ~= 'table' then
    return a == b
  end
  for name, value in pairs(a) do
    if not same(value, b[name]) then
      return false
    end
  end
  return tablex.size(a) == tablex.size(b)
end

-- What answers in no one order, so that what is made of it has none either.
local UNORDERED = { 'pairs', 'cjson%.encode', 'msgpack%.pack', 'SMEMBERS', 'SUNION', 'SINTER',
  'SDIFF', 'SSCAN', 'KEYS[\'"]', 'SCAN' }

local function has_no_order(source)
  for _, word in ipairs(UNORDERED) do
    if source:find(word) or source:find(word:lower()) then
      return true
    end
  end
  return false
end

-- Characters in order: two texts of the same parts are one.
local function scrambled(value)
  if type(value) == 'string' then
    local bytes = { value:byte(1, math.min(#value, 4000)) }
    table.sort(bytes)
    return string.char(unpack(bytes))
  elseif type(value) ~= 'table' then
    return value
  end
  local list = {}
  for name, element in pairs(value) do
    list[#list + 1] = type(name) == 'number' and { scrambled(element) }
      or { name, scrambled(element) }
  end
  table.sort(list, function(a, b)
    return require('pl.pretty').write(a, '') < require('pl.pretty').write(b, '')
  end)
  return list
end

-- Lua's own words are those of the Lua that runs the mock: then the line tells.
local function same_error(self, a, b)
  if a.message == b.message then
    return true
  elseif self.has_texts then
    return same_text(a.message, b.message)
  end
  return a.message:match('^%S+') == b.message:match('^%S+')
    or (a.message:match('@user_script:(%d+)%.$') ~= nil
    and a.message:match('@user_script:(%d+)%.$') == b.message:match('@user_script:(%d+)%.$'))
end

function Foreign:differs(expected, actual, script)
  if expected.err or actual.err then
    return not (expected.err and actual.err and same_error(self, expected.err, actual.err))
  elseif not compare.outcomes(expected, actual, true) then
    return false
  end
  return not ((script.has_time or not self.oracle.is_model) and same(expected.reply, actual.reply))
    and not (script.has_no_order and same(scrambled(expected.reply), scrambled(actual.reply)))
end

function Foreign:keys_differ(script)
  local expected, actual = self.oracle:dump(), self.mock:dump()
  local found = compare.keys(expected, actual)
  if not found or (script.has_time or not self.oracle.is_model) and same(expected, actual)
    or script.has_no_order and same(scrambled(expected), scrambled(actual)) then
    return nil
  end
  return found
end

local function synchronize(self)
  local now_ms = self.oracle:now_ms()
  while now_ms % 1000 > SECOND_ENDS_MS do
    now_ms = self.oracle:now_ms()
  end
  self.mock:advance(math.max(now_ms - self.mock:now_ms(), 0))
  return now_ms
end

function Foreign:reset()
  self.oracle:command('FLUSHALL')
  self.oracle:command('SCRIPT', 'FLUSH')
  self.mock:restore(self.empty)
end

local function shown(outcome)
  local reply = outcome.err and outcome.err.message or outcome.reply
  return type(reply) == 'table' and require('pl.pretty').write(reply, '') or tostring(reply)
end

local function ends_soon(mock)
  for _, record in pairs(mock:dump()) do
    if record.pttl >= 0 and record.pttl < SOON_MS then
      return true
    end
  end
  return false
end

-- One call on both sides; the mock is asked first, since it alone stops what never ends.
function Foreign:call(script, call, seen)
  for _, argv in ipairs(call.before or {}) do
    self.oracle:command(unpack(argv))
    self.mock:command(unpack(argv))
  end
  synchronize(self)
  local expected, actual = {}, {}
  actual.reply, actual.err = self.mock:eval_source(script.source, call.keys or {},
    call.args or {})
  if actual.err and actual.err.code == 'MOCK' then
    seen.refused = seen.refused or actual.err.message
    return 'refused'
  end
  expected.reply, expected.err = self.oracle:eval_source(script.source, call.keys or {},
    call.args or {})
  seen.calls = seen.calls + 1
  seen.replies = seen.replies + (expected.err and 0 or 1)
  if self:differs(expected, actual, script) then
    return 'differs', ('expected %s, found %s'):format(shown(expected), shown(actual))
  end
  if ends_soon(self.mock) then
    return 'short'
  end
  local found = self:keys_differ(script)
  return found and 'differs', found
end

local function calls_of(script, attempt, now_ms)
  if script.calls then
    return script.calls
  end
  local pick, list = grammar.generator(attempt), {}
  for i = 1, CALLS do
    list[i] = guesses.call(script.about, pick, now_ms)
    list[i].before = i == 1 and attempt % 3 > 0 and list[i].before or nil
  end
  return list
end

---One script: its calls on keyspaces of their own.
---@param script table { source, calls? }
---@return table seen { verdict = 'same'|'differs'|'refused', why?, calls, replies, refused? }
function Foreign:try(script)
  script.about = guesses.read(script.source)
  script.has_time = script.source:upper():find('[\'"]TIME[\'"]') ~= nil
    or script.source:find('XADD', 1, true) ~= nil
  script.has_no_order = has_no_order(script.source)
  local seen = { calls = 0, replies = 0 }
  for attempt = 1, script.calls and 1 or self.attempts do
    self:reset()
    for i, call in ipairs(calls_of(script, attempt, synchronize(self))) do
      local verdict, why = self:call(script, call, seen)
      if verdict == 'differs' then
        seen.verdict, seen.why = verdict, ('attempt %d, call %d: %s'):format(attempt, i, why)
        return seen
      elseif verdict then
        break
      end
    end
  end
  seen.verdict = seen.refused and 'refused' or 'same'
  seen.why = seen.refused
  return seen
end

---The scripts of a folder, in order of their names.
---@param folder string
---@return table[] scripts { name, source, calls? }
function Foreign.read(folder)
  local scripts = {}
  for name in dir.dirtree(folder) do
    if name:find('%.lua$') and path.isfile(name) then
      local calls = name:gsub('%.lua$', '.calls')
      scripts[#scripts + 1] = { name = name:sub(#folder + 2), source = file.read(name),
        calls = path.isfile(calls) and assert(loadfile(calls))() or nil }
    end
  end
  table.sort(scripts, function(a, b)
    return a.name < b.name
  end)
  return scripts
end

return Foreign
