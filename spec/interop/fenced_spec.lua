-- SPDX-License-Identifier: Apache-2.0
-- Fencing tokens of latchkey and Redisson on one lock.
local Redisson = require('interop.player.fenced')
local helper = require('helper')
local about = helper.about

describe('a fenced lock between latchkey and Redisson', function()
  local keys = { 'job', 'redisson_lock_token:{job}' }
  local channel = 'redisson_lock__channel:{job}'
  local world, jim

  before_each(function()
    world = helper.world()
    jim = Redisson:new(world)
  end)

  local function acquire(owner, hold)
    return world:eval('fenced/acquire', keys, { 30000, owner, hold or 1 })
  end

  local function release(owner)
    return world:eval('lock/release', { 'job' }, { 30000, owner, 0, channel, 'PUBLISH' })
  end

  it('has rising tokens, whoever draws, and however often a further level draws', function()
    local last = 0
    for turn = 1, 3 do
      local owner = 'lk-ann:' .. turn
      local reply = acquire(owner)
      assert.is_true(reply[3] > last)
      last = reply[3]
      assert.reply({ 1, 2, last }, acquire(owner, 2))
      assert.reply(about(30000), (jim:lock_and_get_token()))
      release(owner)

      assert.same({ -1, last + 1 }, { jim:lock_and_get_token() })
      assert.same({ -1, last + 2 }, { jim:lock_and_get_token() })
      assert.reply({ 0, about(30000) }, acquire('lk-bob:' .. turn))
      last = last + 2
      jim:give_back()
      jim:give_back()
    end
    assert.equal(last, jim:token())
    world:messages()

    assert.left(world, { [keys[2]] = helper.string(('%.0f'):format(last)) })
  end)

  it('goes on above Redisson\'s small numbers', function()
    assert.same({ -1, 1 }, { jim:lock_and_get_token() })
    jim:give_back()

    local reply = acquire('lk-ann:1')

    assert.is_true(reply[3] > world:now_ms() * 1000 - 60000000)
    assert.equal(reply[3], jim:token())
  end)

  it('draws above Redisson\'s tokens where the counter was lost, Redisson does not', function()
    local token = acquire('lk-ann:1')[3]
    release('lk-ann:1')
    world:command('DEL', keys[2])
    world:advance(1)
    assert.is_true(acquire('lk-ann:2')[3] > token)
    release('lk-ann:2')

    world:command('DEL', keys[2])

    assert.same({ -1, 1 }, { jim:lock_and_get_token() })
  end)

  it('broken by latchkey shuts Redisson\'s holder out of the resource', function()
    local _, token = jim:lock_and_get_token()

    local reply = world:eval('fenced/break', keys, { jim.owner, channel, 'PUBLISH' })

    assert.equal(1, reply[1])
    assert.is_true(reply[2] > token)
    assert.left(world, { [keys[2]] = helper.string(('%.0f'):format(reply[2])) },
      { { verb = 'PUBLISH', channel = channel, message = '0' } })
  end)

  it('is one lock for those who ask for no token', function()
    acquire('lk-ann:1')

    assert.reply(about(30000), jim:lock())
    release('lk-ann:1')
    assert.is_nil(jim:lock())

    assert.equal(1, jim:hold_count())
  end)
end)
