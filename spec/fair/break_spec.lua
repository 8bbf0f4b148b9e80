-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')

describe('fair/break', function()
  local ann, bob, cat = 'lk-ann:1', 'lk-bob:2', 'lk-cat:3'
  local jim = '8ee15f1c-jim:1' -- of another client
  local world

  before_each(function()
    world = helper.world()
  end)

  local function break_(...)
    return fair.break_(world, ...)
  end

  local function assert_left(state, messages)
    assert.left(world, fair.keys(state), messages)
  end

  it('frees the lock of the owner that is named, whatever its count and lease', function()
    fair.fill(world, { holder = ann, count = 7, lease = -1 })

    assert.reply({ 1 }, break_(ann))

    assert_left({})
  end)

  it('grants it to the first waiter', function()
    fair.fill(world, { holder = jim, { bob, score = 330000, beat = 20000 },
      { cat, score = 630000, beat = 50000 } })

    assert.reply({ 1 }, break_(jim))

    assert_left({ holder = bob, lease = 20000, { cat, score = 630000, beat = 50000 } },
      fair.told('lk-bob', '2'))
  end)

  it('grants nothing for a user without PEXPIRE, and the first waiter stays that', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
    world:set_denied('PEXPIRE')

    assert.reply({ 1 }, break_(ann))

    world:set_denied()
    assert_left({ { bob, score = 330000, beat = 20000 } })
  end)

  it('tells a waiter of another client', function()
    helper.listen(world, fair.CHANNEL .. ':' .. jim)
    fair.fill(world, { holder = ann, { cat, score = 330000, beat = -1 }, { jim, score = 630000 } })

    assert.reply({ 1 }, break_(ann, 'SPUBLISH'))

    assert_left({ { jim, score = 630000 } }, fair.told(jim, '0', 'SPUBLISH'))
  end)

  it('says that nobody holds the lock, and wakes nobody', function()
    fair.fill(world, { { bob, score = 330000, beat = 50000 } })

    assert.reply({ 0 }, break_(ann))

    assert_left({ { bob, score = 330000, beat = 50000 } })
  end)

  it('refuses when another holds the lock by now, and when it runs twice', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
    break_(ann)
    world:messages()

    assert.reply({ -1 }, break_(ann))

    assert_left({ holder = bob })
  end)

  it('works on a full server', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
    world:set_oom(true)

    assert.reply({ 1 }, break_(ann))

    assert_left({ holder = bob }, fair.told('lk-bob', '2'))
  end)
end)
