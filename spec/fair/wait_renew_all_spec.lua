-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

describe('fair/wait_renew_all', function()
  local ann, bob, cat, dan = 'lk-ann:1', 'lk-bob:2', 'lk-bob:3', 'lk-dan:4'
  local jim = '8ee15f1c-jim:1' -- of another client
  local world

  before_each(function()
    world = helper.world()
  end)

  local function renew(...)
    return fair.wait_renew_all(world, ...)
  end

  local function assert_left(state, messages)
    assert.left(world, fair.keys(state), messages)
  end

  it('keeps all places, and says how long the lease lasts', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 },
      { dan, score = 330000, beat = 20000 }, { cat, score = 330000, beat = 20000 } })

    assert.reply({ 0, about(30000), 0, 0 }, renew({ cat, bob }))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 },
      { dan, score = 330000, beat = 20000 }, { cat, score = 80000, beat = 50000 } })
  end)

  it('does for each what wait_renew does', function()
    local state = { holder = ann, { jim, score = 330000 },
      { bob, score = -20000, beat = 20000, lease = 70000, wait = 9000 },
      { '8ee15f1c-joe:2', score = 930000 }, { cat, score = -1, beat = -1, wait = 100000 } }
    fair.fill(world, state)
    assert.reply({ 0, about(30000), 1, 0 }, renew({ bob, cat }))
    local together = helper.dump(world)

    world = helper.world()
    fair.fill(world, state)
    fair.wait_renew(world, bob)
    fair.wait_renew(world, cat)

    assert.left(world, together)
    assert_left({ holder = ann, { jim, score = 330000 },
      { bob, score = 89000, beat = 50000, lease = 70000, wait = 9000 },
      { '8ee15f1c-joe:2', score = 930000 },
      { cat, score = 280000, beat = 50000, wait = 100000 } })
  end)

  it('keeps the record of one whose turn is days away', function()
    local state = { holder = ann }
    for i = 1, 12 do
      state[i] = { '8ee15f1c-joe:' .. i, score = 330000 }
    end
    state[13] = { bob, score = 330000, beat = 20000, wait = 86400000 }
    fair.fill(world, state)

    assert.reply({ 0, about(30000), 1, 0 }, renew({ bob }))

    state[13].score, state[13].beat, state.ttl = 1036880000, 50000, 1036930000
    assert_left(state)
  end)

  it('has a later score by its wait for each waiter of another client before it alone', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000, wait = 100000 },
      { dan, score = 330000, beat = 20000, wait = 100000 }, { jim, score = 630000 },
      { cat, score = 930000, beat = 20000, wait = 100000 },
      { '8ee15f1c-joe:2', score = 930000 }, { '8ee15f1c-eva:3', score = 1230000 } })

    assert.reply({ 0, about(30000), 1, 0 }, renew({ dan, cat, bob }))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000, wait = 100000 },
      { dan, score = 80000, beat = 50000, wait = 100000 }, { jim, score = 630000 },
      { cat, score = 180000, beat = 50000, wait = 100000 },
      { '8ee15f1c-joe:2', score = 930000 }, { '8ee15f1c-eva:3', score = 1230000 } })
  end)

  it('does not take a record that is left behind for a waiter of latchkey', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 },
      { bob, score = 330000, beat = 20000, wait = 100000 } })
    world:command('HSET', fair.KEYS[4], dan, '1 30000 300000 4 lk-dan')

    assert.reply({ 0, about(30000), 0, 0 }, renew({ bob }))

    assert.reply(about(180000), world:command('ZSCORE', fair.KEYS[3], bob) - world:now_ms())
  end)

  it('grants nothing for a user without PEXPIRE', function()
    fair.fill(world, { { bob, score = 330000, beat = 20000 } })
    world:set_denied('PEXPIRE')

    assert.reply({ 0, about(20000), 1, 1, 1 }, renew({ dan }))

    world:set_denied()
    assert_left({ { bob, score = 330000, beat = 20000 } })
  end)

  it('keeps the records of those who wait beyond their scores', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 },
      { bob, score = 330000, beat = 20000 }, { cat, score = 330000, beat = 20000, wait = 10 },
      ttl = 20000 })

    assert.reply({ 0, about(30000), 1, 0 }, renew({ bob, cat }))

    assert_left({ holder = ann, { jim, score = 330000 }, { bob, score = 380000, beat = 50000 },
      { cat, score = 80010, beat = 50000, wait = 10 }, ttl = 430000 })
  end)

  for others, score in pairs({ [999] = 80000, [1000] = 330000 }) do
    it(('sees to a score behind %d others: %d'):format(others, score), function()
      fair.fill(world, { holder = ann })
      for i = 1, others do
        world:command('RPUSH', fair.KEYS[2], 'lk-eva:' .. i)
        world:command('HSET', fair.KEYS[4], 'lk-eva:' .. i, 'x')
      end
      world:command('ZADD', fair.KEYS[3], world:now_ms() + 330000, 'lk-eva:1')
      world:command('RPUSH', fair.KEYS[2], bob)
      world:command('ZADD', fair.KEYS[3], world:now_ms() + 330000, bob)
      world:command('HSET', fair.KEYS[4], bob,
        ('%.0f 30000 300000 2 lk-bob'):format(world:now_ms() + 20000))

      assert.reply({ 0, about(30000), 0, 0 }, renew({ bob }))

      assert.reply(about(score), world:command('ZSCORE', fair.KEYS[3], bob) - world:now_ms())
      assert.reply(about(50000),
        world:command('HGET', fair.KEYS[4], bob):match('^%d+') - world:now_ms())
    end)
  end

  it('keeps the place of a waiter whose record says nothing more', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 }, { bob, score = 330000 } })
    world:command('HSET', fair.KEYS[4], bob, '1 x')

    assert.reply({ 0, about(30000), 1, 0 }, renew({ bob }))

    assert.reply(about(80000), world:command('ZSCORE', fair.KEYS[3], bob) - world:now_ms())
  end)

  it('takes a hundred', function()
    local state, owners = { holder = ann }, {}
    for i = 1, 100 do
      owners[i] = 'lk-eva:' .. 1000 + i
      state[i] = { owners[i], score = 330000, beat = 20000 }
    end
    fair.fill(world, state)

    assert.reply({ 0, about(30000), 0, 0 }, renew(owners))

    for _, waiter in ipairs(state) do
      waiter.score, waiter.beat = 80000, 50000
    end
    assert_left(state)
  end)

  describe('names the places of those that do not wait', function()
    it('when they were dropped', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })

      assert.reply({ 0, about(30000), 0, 0, 1, 3 }, renew({ cat, bob, dan }))

      assert_left({ holder = ann, { bob, score = 80000, beat = 50000 } })
    end)

    it('when one was granted the lock, and leaves its lease as it is', function()
      fair.fill(world, { holder = bob, lease = 20000, { cat, score = 330000, beat = 20000 } })

      assert.reply({ 0, about(20000), 0, 0, 2 }, renew({ cat, bob }))

      assert_left({ holder = bob, lease = 20000, { cat, score = 80000, beat = 50000 } })
    end)

    it('when another client took a score, and leaves the record to wait_renew', function()
      fair.fill(world, { holder = ann, { cat, score = 330000, beat = 20000 },
        { bob, beat = 20000 } })

      assert.reply({ 0, about(30000), 0, 0, 1 }, renew({ bob, cat }))

      assert_left({ holder = ann, { cat, score = 80000, beat = 50000 }, { bob, beat = 20000 } })
    end)

    it('when a record was lost', function()
      fair.fill(world, { holder = ann, { bob, score = 330000 },
        { cat, score = 330000, beat = 20000, wait = 1 } })

      assert.reply({ 0, about(30000), 1, 0, 1 }, renew({ bob, cat }))

      assert_left({ holder = ann, { bob, score = 330000 },
        { cat, score = 80000, beat = 50000, wait = 1 } })
    end)

    it('when the queue was lost', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
      world:command('DEL', fair.KEYS[2])

      assert.reply({ 0, about(30000), 1, 0, 1 }, renew({ bob }))

      assert.reply(about(20000),
        world:command('HGET', fair.KEYS[4], bob):match('^%d+') - world:now_ms())
    end)

    it('when the queue was lost, though others have queued since', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
      world:command('DEL', fair.KEYS[2])
      world:command('RPUSH', fair.KEYS[2], cat)
      world:command('ZADD', fair.KEYS[3], world:now_ms() + 80000, cat)

      assert.reply({ 0, about(30000), 0, 0, 1, 2 }, renew({ bob, cat }))
    end)

    it('when the queue has a thousand others, and lost a place', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
      world:command('DEL', fair.KEYS[2])
      for n = 1, 1000 do
        world:command('RPUSH', fair.KEYS[2], 'lk-eva:' .. n)
      end

      assert.reply({ 0, about(30000), 1, 0, 1 }, renew({ bob }))
    end)

    it('when none of them ever waited', function()
      assert.reply({ 0, 0, 1, 1, 1, 2 }, renew({ bob, cat }))

      assert_left({})
    end)
  end)

  describe('of a lock that is free', function()
    it('grants it to the first, who looks by itself, and tells nobody', function()
      fair.fill(world, { { bob, score = 330000, beat = 20000, lease = 60000 },
        { cat, score = 330000, beat = 20000 } })

      assert.reply({ 0, about(50000), 0, 0, 2 }, renew({ cat, bob }))

      assert_left({ holder = bob, lease = 50000, { cat, score = 80000, beat = 50000 } })
      assert.reply({ 1 }, fair.wait_renew(world, bob))
    end)

    it('tells the first, if it is none of them', function()
      fair.fill(world, { { dan, score = 330000, beat = 20000 },
        { cat, score = 330000, beat = 20000 } })

      assert.reply({ 0, about(20000), 0, 0 }, renew({ cat }))

      assert_left({ holder = dan, lease = 20000, { cat, score = 80000, beat = 50000 } },
        fair.told('lk-dan', '4'))
    end)

    it('tells a waiter of another client to take it, and gives it nothing', function()
      fair.fill(world, { { jim, score = 330000 }, { cat, score = 630000, beat = 50000 } })

      assert.reply({ 0, about(330000), 1, 1 }, renew({ cat }))

      assert_left({ { jim, score = 330000 }, { cat, score = 380000, beat = 50000 } },
        fair.told(jim))
    end)

    it('drops the dead before it, and no heartbeat that is late', function()
      fair.fill(world, { { dan, score = 330000, beat = -1 }, { jim, score = -1 },
        { bob, score = -1, beat = -1 } })

      assert.reply({ 0, about(30000), 0, 0, 1 }, renew({ bob }))

      assert_left({ holder = bob, lease = 30000 })
    end)

    it('drops at most a hundred, tells none of the dead, and is back at once', function()
      local dead = { { cat, score = 330000, beat = 50000 } }
      for i = 1, 101 do
        table.insert(dead, 1, { 'lk-eva:' .. i, score = 330000, beat = -1, wait = 1 })
      end
      fair.fill(world, dead)

      assert.reply({ 0, 0, 1, 1 }, renew({ cat }))
      assert.same({}, world:messages())
      assert.reply({ 0, about(30000), 0, 0, 1 }, renew({ cat }))

      assert_left({ holder = cat, lease = 30000 })
    end)

    it('tells sharded channels when asked to', function()
      helper.listen(world, fair.CHANNEL .. ':lk-dan')
      fair.fill(world, { { dan, score = 330000, beat = 50000 },
        { cat, score = 630000, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, renew({ cat }, 'SPUBLISH'))

      assert_left({ holder = dan, { cat, score = 80000, beat = 50000 } },
        fair.told('lk-dan', '4', 'SPUBLISH'))
    end)
  end)

  it('says -1 when the lease has no end', function()
    fair.fill(world, { holder = ann, lease = -1, { bob, score = 330000, beat = 50000 } })

    assert.reply({ 0, -1, 0, 0 }, renew({ bob }))

    assert_left({ holder = ann, lease = -1, { bob, score = 80000, beat = 50000 } })
  end)

  it('says that another client holds the lock', function()
    fair.fill(world, { holder = jim, { bob, score = 330000, beat = 50000 } })

    assert.reply({ 0, about(30000), 1, 0 }, renew({ bob }))

    assert_left({ holder = jim, { bob, score = 80000, beat = 50000 } })
  end)

  it('keeps places on a full server', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
    world:set_oom(true)

    assert.reply({ 0, about(30000), 0, 0 }, renew({ bob }))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 } })
  end)

  for place, key in ipairs(fair.KEYS) do
    it('writes nothing when a key is of another type: ' .. key, function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
      world:command('DEL', fair.KEYS[place])
      world:command('SET', fair.KEYS[place], 'value')
      local before = helper.dump(world)

      assert.refused('WRONGTYPE', 'wrong kind of value', renew({ bob }))

      assert.left(world, before)
    end)
  end

  it('that runs after the owners left does nothing', function()
    fair.fill(world, { { bob, score = 330000, beat = 20000 } })
    fair.leave(world, bob)

    assert.reply({ 0, 0, 1, 1, 1 }, renew({ bob }))

    assert_left({})
  end)

  it('that runs twice leaves what one does', function()
    fair.fill(world, { { bob, score = 330000, beat = 20000 }, { cat, score = 1, beat = 20000 } })
    renew({ bob, cat })
    local once = helper.dump(world)

    assert.reply({ 0, about(30000), 0, 0, 1 }, renew({ bob, cat }))

    assert.left(world, once)
  end)
end)
