-- SPDX-License-Identifier: Apache-2.0
-- The function libraries that are made of scripts do on a server what the scripts do.
local catalog = require('latchkey.script.catalog')

local cases = require('support.cases')
local functions = require('latchkey.bundle.functions')
local helper = require('helper')
local latchkey = require('latchkey')
local targets = require('latchkey.servers.targets')

local URL = os.getenv('LATCHKEY_SPEC_URL'):match('^[^?]*')

local scripts = assert(catalog.read(helper.scripts))

-- A call of the script's function.
local function fcall(world, script, keys, args)
  local words = { 'FCALL', functions.name(script.name, script.header.version), #keys }
  for _, list in ipairs({ keys, args }) do
    for _, value in ipairs(list) do
      words[#words + 1] = value
    end
  end
  return world:command(unpack(words))
end

local function load_all(client)
  local target = targets.functions
  local wanted = assert(target.wanted(client:scripts()))
  for _, step in ipairs(assert(target.plan(client, wanted, true)).new) do
    assert(target.put(client, step))
  end
end

local function compare(script, state, keys, args)
  local mock, live = helper.mock_world(), helper.live_world()
  cases.fill(mock, script.header, state)
  cases.fill(live, script.header, state)
  for place, argument in ipairs(script.header.argv) do
    if argument.type == 'channel' then
      live:listen(args[place])
    end
  end

  local expected, err = mock:eval(script.name, keys, args)
  local reply, live_err = fcall(live, script, keys, args)

  if err then
    local words = err.message:gsub(' script: %x+, on @user_script:%d+%.$', '')
    assert.same({ words, err.line }, { live_err.message, live_err.line })
  else
    assert.reply(expected[1], reply and reply[1])
  end
  assert.left(live, helper.dump(mock), mock:messages())
end

describe('scripts as functions', function()
  local world

  setup(function()
    world = helper.live_world()
    load_all(world.client)
  end)

  teardown(function()
    assert(world:command('FUNCTION', 'FLUSH'))
  end)

  for _, script in ipairs(scripts) do
    it('do what ' .. script.name .. ' does, whatever its keys hold', function()
      local keys, args = cases.call(script.header)
      for _, state in ipairs(cases.states) do
        compare(script, state, keys, args)
        compare(script, state, {}, args)
        compare(script, state, keys, cases.too_many(script.header, args))
      end
    end)
  end

  local function assert_all_stay()
    local wanted = assert(targets.functions.wanted(world.client:scripts()))
    local plan = assert(targets.functions.plan(world.client, wanted))
    assert.same({ 0, #scripts, 0, 0 }, { #plan.new, #plan.stays, #plan.goes, #plan.refused })
  end

  it('stay where they are loaded again', function()
    assert_all_stay()
  end)

  it('are the same bytes when a client loads them', function()
    assert(world:command('FUNCTION', 'FLUSH'))

    local client = assert(latchkey.open(URL .. '?functions=1'))

    assert_all_stay()
    client:close()
  end)
end)
