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

  it('grants the lock to the first waiter, with its lease, and tells its client', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000, lease = 60000 },
      { cat, score = 630000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, lease = 60000, { cat, score = 330000, beat = 50000 } },
      fair.told('lk-bob', '2'))
  end)

  it('takes off the scores the wait that the one who goes had added', function()
    fair.fill(world, { holder = ann, { bob, score = 130000, beat = 50000, wait = 100000 },
      { jim, score = 430000 }, { cat, score = 730000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, { jim, score = 330000 }, { cat, score = 630000, beat = 50000 } },
      fair.told('lk-bob', '2'))
  end)

  it('leaves those behind their own wait where the first was overdue', function()
    fair.fill(world, { holder = ann, { bob, score = -200000, beat = 50000 },
      { jim, score = 100000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, { jim, score = 100000 } }, fair.told('lk-bob', '2'))
  end)

  it('gives a waiter without a score none', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 }, { jim },
      { cat, score = 630000, beat = 50000 } })

    assert.reply({ 1, 0 }, release(ann))

    assert_left({ holder = bob, { jim }, { cat, score = 330000, beat = 50000 } },
      fair.told('lk-bob', '2'))
  end)

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

    assert_left({ { 'lk-dan:101', score = 0, beat = 0 }, { 'lk-dan:102', score = 0, beat = 0 } })
  end)

  it('brings forward the scores of ten thousand', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
    for first = 1, 10001, 1000 do
      local owners = {}
      for i = first, math.min(first + 999, 10001) do
        table.insert(owners, jim .. i)
      end
      world:command('RPUSH', fair.KEYS[2], unpack(owners))
    end
    local score = world:now_ms() + 630000
    for _, i in ipairs({ 500, 501, 10000, 10001 }) do
      world:command('ZADD', fair.KEYS[3], score, jim .. i)
    end

    assert.reply({ 1, 0 }, release(ann))

    local function nearer_by(i)
      return score - world:command('ZSCORE', fair.KEYS[3], jim .. i)
    end
    assert.equal(300000, nearer_by(500))
    assert.equal(300000, nearer_by(501))
    assert.equal(300000, nearer_by(10000))
    assert.equal(0, nearer_by(10001))
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

    assert_left({ holder = bob, { cat, score = 330000, beat = 50000 } },
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
