-- SPDX-License-Identifier: Apache-2.0
-- The mock and the server give the same replies and errors, and leave the same keys and messages.
local catalog = require('latchkey.script.catalog')

local cases = require('support.cases')
local helper = require('helper')

-- Every call of a script that the contract knows: valid, and with each argument at its limits.
local function calls(h)
  local keys, args = cases.call(h)
  local list = {
    { keys, args }, { {}, args }, { keys, {} }, { keys, cases.too_many(h, args) },
  }
  for place, argument in ipairs(h.argv) do
    for _, values in ipairs({ cases.taken(argument), cases.refused(argument) }) do
      for _, case in ipairs(values) do
        list[#list + 1] = { keys, cases.with(args, place, case.value) }
      end
    end
  end
  return list
end

-- Numbers that may be what is left of a lease, or a moment, which moves on a server; its clock is
-- `ahead_ms` of the mock's.
local MOMENT = 1e12
-- As many ms at least are a time that passes; no count of the cases is as high.
local TIME = 10000

local function loosened(reply, ahead_ms)
  if type(reply) ~= 'table' then
    return reply
  end
  local loose = { n = reply.n }
  for i = 1, reply.n do
    local number = type(reply[i]) == 'number' and reply[i] or 0
    local is_moment = number >= MOMENT and number < 10 * MOMENT
    loose[i] = number >= TIME and helper.about(is_moment and number + ahead_ms or number)
      or reply[i]
  end
  return loose
end

-- The library may put the key before the server's own words, and leaves their tail away.
local function assert_same_error(expected, err)
  if not expected then
    return assert.is_nil(err)
  end
  local words = expected.message:gsub(' script: %x+, on @user_script:%d+%.$', '')
  assert.same({ expected.code, expected.script, expected.line, words },
    { err.code, err.script, err.line, err.message:sub(-#words) })
end

local function compare(script, state, keys, args)
  local mock, live = helper.mock_world(), helper.live_world()
  cases.fill(mock, script.header, state)
  cases.fill(live, script.header, state)

  local expected, mock_err = mock:eval(script.name, keys, args)
  local reply, live_err = live:eval(script.name, keys, args)

  assert_same_error(mock_err, live_err)
  assert.reply(loosened(expected, live:now_ms() - mock:now_ms()), reply)
  assert.left(live, helper.dump(mock), mock:messages())
end

describe('mock and server agree', function()
  for _, script in ipairs(assert(catalog.read(helper.scripts))) do
    for _, state in ipairs(cases.states) do
      it(('on %s and %s'):format(script.name, state.what), function()
        for _, call in ipairs(calls(script.header)) do
          compare(script, state, call[1], call[2])
        end
      end)
    end
  end
end)
