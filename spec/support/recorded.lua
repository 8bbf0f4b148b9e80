-- SPDX-License-Identifier: Apache-2.0
-- What all scripts have in common that keep the last call of each caller in a record: "repeat: seq"
-- with the fragments recall and remember.
local assert = require('luassert')

local helper = require('helper')

local recorded = {}

local ANN, BOB = 'lk-ann', 'lk-bob'

---@param caller string
---@return string key of the caller's record for the name "job"
function recorded.key(caller)
  return 'latchkey_seq:{job}:' .. caller
end

---The record of a call.
---@param ... integer its seq and its reply
function recorded.record(...)
  return helper.string(table.concat({ ... }, ' '), 60000)
end

local CASES = {
  { 'answers a copy of the call as before, whatever has happened since', function(script)
    assert.reply(script.first, script:call(ANN, 5))

    script:assert_only_recorded()
  end },

  { 'does nothing for a call that a later one has overtaken', function(script)
    assert.reply({ -2 }, script:call(ANN, 4))

    script:assert_only_recorded()
  end },

  { 'tells a seq of 16 digits from the next', function(script)
    script:call(ANN, 9007199254740990)
    script:forget_all_but_records()

    assert.reply({ -2 }, script:call(ANN, 9007199254740989))

    script:call(ANN, 9007199254740991)
    assert.matches('^9007199254740991 ', script:record_of(ANN))
  end },

  { 'does the call of another caller, and keeps a record of its own', function(script)
    helper.fill(script.world, script.state)

    assert.reply(script.first, script:call(BOB, 4))

    assert.matches('^4 ', script:record_of(BOB))
    assert.matches('^5 ', script:record_of(ANN))
  end },

  { 'does not know a call any more after 60 s', function(script)
    script.world:advance(60001)
    helper.fill(script.world, script.state)

    assert.reply(script.first, script:call(ANN, 4))

    assert.matches('^4 ', script:record_of(ANN))
  end },

  { 'refuses a record of another type, and writes nothing', function(script)
    local before = { [recorded.key(ANN)] = helper.hash({ seq = '4' }) }
    script.world:command('DEL', recorded.key(ANN))
    helper.fill(script.world, before)

    assert.refused('WRONGTYPE', 'wrong kind', script:call(ANN, 5))

    assert.left(script.world, before)
  end },
}

for _, value in ipairs({ '', 'x', '1.5', '-0', '007', '1000000000000000' }) do
  local title = ('refuses "%s" for a number, and writes nothing'):format(value)
  table.insert(CASES, { title, function(script)
    local before = { [script.keys[1]] = helper.string(value) }
    script.world:command('DEL', recorded.key(ANN))
    helper.fill(script.world, before)

    assert.refused('LKARG', 'must hold an integer', script:call(ANN, 5))

    assert.left(script.world, before)
  end })
end

local Script = {}
Script.__index = Script

function Script:call(caller, seq)
  local keys = { unpack(self.keys) }
  table.insert(keys, recorded.key(caller))
  return self.world:eval(self.name, keys, self.arguments(caller, seq))
end

function Script:record_of(caller)
  return (self.world:command('GET', recorded.key(caller)))
end

function Script:forget_all_but_records()
  for _, key in ipairs(self.keys) do
    self.world:command('DEL', key)
  end
  self.world:messages()
end

function Script:assert_only_recorded()
  local record = recorded.record(5, unpack(self.first, 1, self.first.n))
  assert.left(self.world, { [recorded.key(ANN)] = record })
end

---What a spec of such a script has to show. Before each case a caller has called with seq 5, and
---all but the record of that is gone.
---@param name string the script's
---@param state table the keys before
---@param arguments fun(caller: string, seq: integer): table of a call that changes the state
---@param keys? string[] those of the script without the record, which comes last; default "job"
---@return table[] cases { title, show }
function recorded.cases(name, state, arguments, keys)
  local list = {}
  for i, case in ipairs(CASES) do
    list[i] = { case[1], function()
      local script = setmetatable({ name = name, keys = keys or { 'job' }, state = state,
        arguments = arguments, world = helper.world() }, Script)
      helper.fill(script.world, state)
      script.first = assert(script:call(ANN, 5))
      script:forget_all_but_records()
      case[2](script)
    end }
  end
  return list
end

return recorded
