-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')

describe('fair/leave', function()
  local ann, bob, cat = 'lk-ann:1', 'lk-bob:2', 'lk-cat:3'
  local jim = '8ee15f1c-jim:1' -- of another client
  local world

  before_each(function()
    world = helper.world()
  end)

  local function leave(...)
    return fair.leave(world, ...)
  end

  local function assert_left(state, messages)
    assert.left(world, fair.keys(state), messages)
  end

  it('takes the last waiter out of the queue, and leaves no trace of one', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })

    assert.reply({ 1 }, leave(bob))

    assert_left({ holder = ann })
  end)

  it('leaves the scores of others as they are', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 },
      { bob, score = 430000, beat = 50000, wait = 100000 }, { cat, score = 730000, beat = 50000 } })

    assert.reply({ 1 }, leave(bob))

    assert_left({ holder = ann, { jim, score = 330000 }, { cat, score = 730000, beat = 50000 } })
  end)

  it('takes out a waiter without a record, and one without a score', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 }, { bob, beat = 50000 },
      { cat, score = 630000, beat = 50000 } })

    assert.reply({ 1 }, leave(jim))
    assert.reply({ 1 }, leave(bob))

    assert_left({ holder = ann, { cat, score = 630000, beat = 50000 } })
  end)

  it('takes out what is left of a waiter whose queue was lost', function()
    fair.fill(world, { { bob, score = 330000, beat = 50000 } })
    world:command('DEL', fair.KEYS[2])

    assert.reply({ 1 }, leave(bob))

    assert_left({})
  end)

  it('leaves no record of who was dropped by another client', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 },
      { cat, score = 330000, beat = 50000 } })
    world:command('ZREM', fair.KEYS[3], bob)
    world:command('LPOP', fair.KEYS[2])

    assert.reply({ -1 }, leave(bob))

    assert_left({ holder = ann, { cat, score = 330000, beat = 50000 } })
  end)

  it('grants nothing for a user without PEXPIRE, and the next stays first', function()
    fair.fill(world, { holder = bob, { cat, score = 330000, beat = 20000 } })
    world:set_denied('PEXPIRE')

    assert.reply({ 1 }, leave(bob))

    world:set_denied()
    assert_left({ { cat, score = 330000, beat = 20000 } })
  end)

  it('gives back a lock that was granted meanwhile, to the next', function()
    fair.fill(world, { holder = bob, { cat, score = 330000, beat = 20000 } })

    assert.reply({ 1 }, leave(bob))

    assert_left({ holder = cat, lease = 20000 }, fair.told('lk-cat', '3'))
  end)

  it('gives back a lock that nobody else waits for', function()
    fair.fill(world, { holder = bob })

    assert.reply({ 1 }, leave(bob))

    assert_left({})
  end)

  it('passes on a free lock that it was told of', function()
    fair.fill(world, { { bob, score = 330000, beat = 50000 }, { jim, score = 630000 } })

    assert.reply({ 1 }, leave(bob))

    assert_left({ { jim, score = 630000 } }, fair.told(jim))
  end)

  it('passes over the dead', function()
    helper.listen(world, fair.CHANNEL .. ':lk-cat')
    fair.fill(world, { { bob, score = 330000, beat = 50000 }, { ann, score = 630000, beat = -1 },
      { cat, score = 930000, beat = 50000 }, { jim, score = 1230000 } })

    assert.reply({ 1 }, leave(bob, 'SPUBLISH'))

    assert_left({ holder = cat, { jim, score = 1230000 } }, fair.told('lk-cat', '3', 'SPUBLISH'))
  end)

  it('tells nobody when nobody is left', function()
    fair.fill(world, { { bob, score = 330000, beat = 50000 }, { ann, score = 630000, beat = -1 } })

    assert.reply({ 1 }, leave(bob))

    assert_left({})
  end)

  it('does nothing when it runs twice, though the lock is free', function()
    fair.fill(world, { { bob, score = 330000, beat = 50000 }, { jim, score = 630000 } })
    leave(bob)
    world:messages()

    assert.reply({ -1 }, leave(bob))

    assert_left({ { jim, score = 630000 } })
  end)

  it('does nothing to a lock that another holds', function()
    fair.fill(world, { holder = ann })

    assert.reply({ -1 }, leave(bob))

    assert_left({ holder = ann })
  end)

  it('works on a full server', function()
    fair.fill(world, { holder = bob, { cat, score = 330000, beat = 50000 } })
    world:set_oom(true)

    assert.reply({ 1 }, leave(bob))

    assert_left({ holder = cat }, fair.told('lk-cat', '3'))
  end)

  for place = 2, 4 do
    it(('writes nothing when key %d alone is of another type'):format(place), function()
      fair.fill(world, { holder = bob, { bob, score = 330000, beat = 50000 } })
      world:command('DEL', fair.KEYS[place])
      world:command('SET', fair.KEYS[place], 'value')
      local before = helper.dump(world)

      assert.refused('WRONGTYPE', 'wrong kind of value', leave(bob))

      assert.left(world, before)
    end)
  end
end)
