-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')

describe('fair/release', function()
  local ann, bob, cat = 'lk-ann:1', 'lk-bob:2', 'lk-cat:3'
  local jim, joe = '8ee15f1c-jim:1', '8ee15f1c-joe:2' -- of other clients
  local world

  before_each(function()
    world = helper.world()
  end)

  local function release(...)
    return fair.release(world, ...)
  end

  local function assert_left(state, messages)
    assert.left(world, fair.keys(state), messages)
  end

  it('frees a lock that nobody waits for, and tells nobody', function()
    fair.fill(world, { holder = ann, count = 5 })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({})
  end)

  it('grants the lock to the first waiter until its heartbeat ends, and tells it', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000, lease = 60000 },
      { cat, score = 630000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, lease = 50000, { cat, score = 630000, beat = 50000 } },
      fair.told('lk-bob', '2'))
  end)

  it('grants it until the lease ends that the waiter asked for, where that is sooner', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000, lease = 49999 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, lease = 49999 }, fair.told('lk-bob', '2'))
  end)

  it('grants nothing for a user without PEXPIRE, and the first waiter stays that', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
    world:set_denied('PEXPIRE')

    assert.reply({ 1, 0 }, release(ann))

    world:set_denied()
    assert_left({ { bob, score = 330000, beat = 50000 } })
  end)

  it('leaves the scores of others as they are', function()
    fair.fill(world, { holder = ann, { bob, score = -130000, beat = 50000, wait = 100000 },
      { jim, score = 430000 }, { '8ee15f1c-eva:3' }, { cat, score = 730000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, { jim, score = 430000 }, { '8ee15f1c-eva:3' },
      { cat, score = 730000, beat = 50000 } }, fair.told('lk-bob', '2'))
  end)

  for _, score in ipairs({ '+inf', '1e17', '330000.5', '-inf' }) do
    it('passes over who has a score that is no moment: ' .. score, function()
      fair.fill(world, { holder = ann, { jim, score = 330000 },
        { cat, score = 630000, beat = 50000 } })
      world:command('ZADD', fair.KEYS[3], score, jim)

      assert.reply({ 1, 0 }, release(ann))

      assert_left({ holder = cat }, fair.told('lk-cat', '3'))
    end)
  end

  it('tells a waiter of another client to take the lock, and gives it nothing', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 },
      { bob, score = 630000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ { jim, score = 330000 }, { bob, score = 630000, beat = 50000 } },
      fair.told(jim))
  end)

  it('passes over the dead of both kinds', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = -1 }, { jim, score = -1 },
      { joe }, { cat, score = 630000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = cat }, fair.told('lk-cat', '3'))
  end)

  it('frees the lock and tells nobody when all who waited are gone', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = -1 }, { jim, score = -1 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({})
  end)

  it('grants nothing to a dead waiter behind a hundred others', function()
    local state = { holder = ann }
    for i = 1, 102 do
      table.insert(state, { 'lk-dan:' .. i, score = 330000, beat = 0 })
    end
    fair.fill(world, state)

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ { 'lk-dan:101', score = 330000, beat = 0 },
      { 'lk-dan:102', score = 330000, beat = 0 } })
  end)

  it('tells sharded channels when asked to', function()
    helper.listen(world, fair.CHANNEL .. ':' .. jim)
    fair.fill(world, { holder = ann, { jim, score = 330000 } })

    assert.reply({ 1, 0 }, release(ann, 0, 30000, 'SPUBLISH'))

    assert_left({ { jim, score = 330000 } }, fair.told(jim, '0', 'SPUBLISH'))
  end)

  it('grants once when the call runs twice', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 },
      { cat, score = 630000, beat = 50000 } })
    release(ann)

    assert.reply({ -1 }, release(ann))

    assert_left({ holder = bob, { cat, score = 630000, beat = 50000 } },
      fair.told('lk-bob', '2'))
  end)

  it('finds nothing when nobody or another holds the lock, and wakes nobody', function()
    fair.fill(world, { { bob, score = 330000, beat = 50000 } })
    assert.reply({ -1 }, release(ann))
    assert_left({ { bob, score = 330000, beat = 50000 } })

    fair.fill(world, { holder = cat })
    assert.reply({ -1 }, release(ann))
    assert.reply({ -1 }, release(ann, 1, 60000))

    assert_left({ holder = cat, { bob, score = 330000, beat = 50000 } })
  end)

  describe('of one level of several', function()
    it('sets the count that remains, once, and grants nothing', function()
      fair.fill(world, { holder = ann, count = 3, { bob, score = 330000, beat = -1 } })

      assert.reply({ 1, 2 }, release(ann, 2, 60000))
      assert.reply({ 1, 2 }, release(ann, 2, 60000))

      assert_left({ holder = ann, count = 2, lease = 60000, { bob, score = 330000, beat = -1 } })
    end)

    it('does not shorten the lease', function()
      fair.fill(world, { holder = ann, count = 2, lease = 60000 })

      assert.reply({ 1, 1 }, release(ann, 1, 50))

      assert_left({ holder = ann, lease = 60000 })
    end)
  end)

  it('grants the lock on a full server', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
    world:set_oom(true)

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob }, fair.told('lk-bob', '2'))
  end)

  for place = 2, 4 do
    it(('writes nothing when key %d alone is of another type'):format(place), function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = -1 } })
      world:command('DEL', fair.KEYS[place])
      world:command('SET', fair.KEYS[place], 'value')
      local before = helper.dump(world)

      assert.refused('WRONGTYPE', 'wrong kind of value', release(ann))

      assert.left(world, before)
    end)
  end
end)
