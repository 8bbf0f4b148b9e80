-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

describe('fair/wait_renew', function()
  local ann, bob, cat = 'lk-ann:1', 'lk-bob:2', 'lk-cat:3'
  local jim = '8ee15f1c-jim:1' -- of another client
  local world

  before_each(function()
    world = helper.world()
  end)

  local function wait_renew(...)
    return fair.wait_renew(world, ...)
  end

  local function assert_left(state, messages)
    assert.left(world, fair.keys(state), messages)
  end

  it('keeps the place, and says how long the lease lasts', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 } })
  end)

  it('keeps lease, wait, ticket and client as acquire gave them', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000, lease = 70000,
      wait = 9000 } })

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000, lease = 70000,
      wait = 9000 } })
  end)

  it('says -1 when the lease has no end', function()
    fair.fill(world, { holder = ann, lease = -1, { bob, score = 330000, beat = 50000 } })

    assert.reply({ 0, -1, 0, 0 }, wait_renew(bob))

    assert_left({ holder = ann, lease = -1, { bob, score = 80000, beat = 50000 } })
  end)

  -- A rule of a live server is about all keys of a command.
  if not helper.is_live then
    it('does not take a free lock for a user without PEXPIRE on it', function()
      fair.fill(world, { { bob, score = 330000, beat = 20000 } })
      world:set_denied('PEXPIRE', fair.KEYS[1])

      assert.reply({ 0, 50000, 1, 1 }, wait_renew(bob))

      assert_left({ { bob, score = 80000, beat = 50000 } })
    end)
  end

  it('keeps the place of a waiter that is late, if nobody has noticed', function()
    fair.fill(world, { holder = ann, { bob, score = -20000, beat = -20000 } })

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 } })
  end)

  it('keeps the records of those who wait beyond their scores', function()
    fair.fill(world, { holder = ann, { bob, score = -20000, beat = 20000 }, ttl = 20000 })

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 }, ttl = 130000 })
  end)

  it('keeps the record of one whose turn is days away', function()
    local state = { holder = ann }
    for i = 1, 12 do
      state[i] = { '8ee15f1c-joe:' .. i, score = 330000 }
    end
    state[13] = { bob, score = 330000, beat = 20000, wait = 86400000 }
    fair.fill(world, state)

    assert.reply({ 0, about(30000), 1, 0 }, wait_renew(bob))

    state[13].score, state[13].beat, state.ttl = 1036880000, 50000, 1036930000
    assert_left(state)
  end)

  it('has a later score by its wait for each waiter of another client before it', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 }, { cat, score = 630000, beat = 50000 },
      { '8ee15f1c-joe:2', score = 930000 }, { bob, score = -20000, beat = 20000, wait = 100000 },
      { '8ee15f1c-eva:3', score = 1530000 } })

    assert.reply({ 0, about(30000), 1, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { jim, score = 330000 }, { cat, score = 630000, beat = 50000 },
      { '8ee15f1c-joe:2', score = 930000 }, { bob, score = 280000, beat = 50000, wait = 100000 },
      { '8ee15f1c-eva:3', score = 1530000 } })
  end)

  for others, score in pairs({ [999] = 80000, [1000] = 330000 }) do
    it(('sees to its score behind %d others: %d'):format(others, score), function()
      fair.fill(world, { holder = ann })
      local owners = {}
      for i = 1, others do
        table.insert(owners, 'lk-dan:' .. i)
      end
      world:command('RPUSH', fair.KEYS[2], 'lk-first:1', unpack(owners, 2))
      world:command('ZADD', fair.KEYS[3], world:now_ms() + 330000, 'lk-first:1')
      for i = 1, others, 500 do
        local records = {}
        for n = i, math.min(i + 499, others) do
          table.insert(records, 'record ' .. n)
          table.insert(records, 'x')
        end
        world:command('HSET', fair.KEYS[4], unpack(records))
      end
      world:command('RPUSH', fair.KEYS[2], bob)
      world:command('ZADD', fair.KEYS[3], world:now_ms() + 330000, bob)
      world:command('HSET', fair.KEYS[4], bob,
        ('%.0f 30000 300000 2 lk-bob'):format(world:now_ms() + 20000))

      assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

      assert.reply(about(score), world:command('ZSCORE', fair.KEYS[3], bob) - world:now_ms())
    end)
  end

  it('keeps the place of a waiter whose record says nothing more', function()
    fair.fill(world, { holder = ann, { jim, score = 330000 }, { bob, score = 330000 } })
    world:command('HSET', fair.KEYS[4], bob, '1 x')

    assert.reply({ 0, about(30000), 1, 0 }, wait_renew(bob))

    assert.reply(about(80000), world:command('ZSCORE', fair.KEYS[3], bob) - world:now_ms())
  end)

  for _, wrong in ipairs({ '+inf', '1e17', '330000.5', '-inf' }) do
    it('mends a score that is no moment: ' .. wrong, function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
      world:command('ZADD', fair.KEYS[3], wrong, bob)

      assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

      assert_left({ holder = ann, { bob, score = 80000, beat = 50000 } })
    end)
  end

  describe('has the caller queue again', function()
    it('when it was dropped', function()
      fair.fill(world, { holder = ann })

      assert.reply({ -1 }, wait_renew(bob))

      assert_left({ holder = ann })
    end)

    it('when another client took its score, and leaves no place without one', function()
      fair.fill(world, { holder = ann, { bob, beat = 50000 } })

      assert.reply({ -1 }, wait_renew(bob))

      assert_left({ holder = ann })
    end)

    it('when its record was lost, and leaves no place without one', function()
      fair.fill(world, { holder = ann, { cat, score = 330000, beat = 50000 },
        { bob, score = 330000 }, { bob } })

      assert.reply({ -1 }, wait_renew(bob))

      assert_left({ holder = ann, { cat, score = 330000, beat = 50000 } })
    end)

    it('when the queue was lost, though others have queued since', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
      world:command('DEL', fair.KEYS[2])
      world:command('RPUSH', fair.KEYS[2], cat)

      assert.reply({ -1 }, wait_renew(bob))

      assert_left({ holder = ann, { cat } })
    end)

    it('when the queue was lost, and leaves nothing of it', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
      world:command('DEL', fair.KEYS[2])

      assert.reply({ -1 }, wait_renew(bob))

      assert_left({ holder = ann })
    end)

    it('when the queue has a thousand others, and lost its place', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })
      world:command('DEL', fair.KEYS[2])
      for n = 1, 1000 do
        world:command('RPUSH', fair.KEYS[2], 'lk-eva:' .. n)
      end

      assert.reply({ -1 }, wait_renew(bob))
    end)

    it('and takes no free lock for it', function()
      assert.reply({ -1 }, wait_renew(bob))

      assert_left({})
    end)
  end)

  describe('of a waiter that was granted the lock', function()
    it('finds it, and lets the lease count from this call', function()
      fair.fill(world, { holder = bob })

      assert.reply({ 1 }, wait_renew(bob, 60000))

      assert_left({ holder = bob, lease = 60000 })
    end)

    it('does not shorten the lease', function()
      fair.fill(world, { holder = bob, count = 2 })

      assert.reply({ 1 }, wait_renew(bob, 50))

      assert_left({ holder = bob, count = 2 })
    end)
  end)

  describe('of a lock that is free', function()
    it('takes it for the first, and tells nobody', function()
      fair.fill(world, { { bob, score = 330000, beat = 50000, lease = 60000 },
        { jim, score = 630000 } })

      assert.reply({ 1 }, wait_renew(bob))

      assert_left({ holder = bob, lease = 50000, { jim, score = 630000 } })
    end)

    it('takes it for the longest lease there can be', function()
      fair.fill(world, { { bob, score = 86480000, beat = 50000, lease = 86400000 } })

      assert.reply({ 1 }, wait_renew(bob, 86400000))

      assert_left({ holder = bob, lease = 86400000 })
    end)

    it('grants it to the first until its heartbeat ends, if another is, and tells it', function()
      fair.fill(world, { { bob, score = 330000, beat = 20000 },
        { cat, score = 630000, beat = 50000 } })

      assert.reply({ 0, about(20000), 0, 0 }, wait_renew(cat))

      assert_left({ holder = bob, lease = 20000, { cat, score = 80000, beat = 50000 } },
        fair.told('lk-bob', '2'))
    end)

    it('tells a waiter of another client to take it, and gives it nothing', function()
      fair.fill(world, { { jim, score = 330000 }, { cat, score = 630000, beat = 50000 } })

      assert.reply({ 0, about(330000), 1, 1 }, wait_renew(cat))

      assert_left({ { jim, score = 330000 }, { cat, score = 380000, beat = 50000 } },
        fair.told(jim))
    end)

    it('takes it when the waiters before it are gone', function()
      fair.fill(world, { { ann, score = 330000, beat = -1 }, { jim, score = -1 },
        { cat, score = 630000, beat = 50000 }, { bob, score = 930000, beat = 50000 } })

      assert.reply({ 1 }, wait_renew(cat))

      assert_left({ holder = cat, { bob, score = 930000, beat = 50000 } })
    end)

    it('drops at most a hundred, tells none of the dead, and is back at once', function()
      local dead = { { cat, score = 330000, beat = 50000 } }
      for i = 1, 101 do
        table.insert(dead, 1, { 'lk-dan:' .. i, score = 330000, beat = -1, wait = 1 })
      end
      fair.fill(world, dead)

      assert.reply({ 0, 0, 1, 1 }, wait_renew(cat))
      assert.same({}, world:messages())
      assert.reply({ 1 }, wait_renew(cat))

      assert_left({ holder = cat })
    end)

    it('tells sharded channels when asked to', function()
      helper.listen(world, fair.CHANNEL .. ':lk-bob')
      fair.fill(world, { { bob, score = 330000, beat = 50000 },
        { cat, score = 630000, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, wait_renew(cat, 30000, 'SPUBLISH'))

      assert_left({ holder = bob, { cat, score = 80000, beat = 50000 } },
        fair.told('lk-bob', '2', 'SPUBLISH'))
    end)
  end)

  it('drops who is gone while the lock is held', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = -1 },
      { cat, score = 630000, beat = 50000 } })

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(cat))

    assert_left({ holder = ann, { cat, score = 80000, beat = 50000 } })
  end)

  it('says that another client holds the lock', function()
    fair.fill(world, { holder = jim, { bob, score = 330000, beat = 50000 } })

    assert.reply({ 0, about(30000), 1, 0 }, wait_renew(bob))

    assert_left({ holder = jim, { bob, score = 80000, beat = 50000 } })
  end)

  it('says that another client waits', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 },
      { jim, score = 630000 } })

    assert.reply({ 0, about(30000), 1, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 }, { jim, score = 630000 } })
  end)

  it('keeps the place on a full server', function()
    fair.fill(world, { holder = ann, { bob, score = 330000, beat = 20000 } })
    world:set_oom(true)

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(bob))

    assert_left({ holder = ann, { bob, score = 80000, beat = 50000 } })
  end)

  it('writes nothing when the queue is of another type', function()
    fair.fill(world, { { bob, score = 330000, beat = 20000 } })
    world:command('DEL', fair.KEYS[2])
    world:command('SET', fair.KEYS[2], 'value')
    local before = helper.dump(world)

    assert.refused('WRONGTYPE', 'wrong kind of value', wait_renew(bob))

    assert.left(world, before)
  end)

  it('that runs after the owner left does nothing', function()
    fair.fill(world, { { bob, score = 330000, beat = 20000 } })
    fair.leave(world, bob)

    assert.reply({ -1 }, wait_renew(bob))

    assert_left({})
  end)

  it('needs no channel of its own while all who wait are latchkey\'s', function()
    local state = { holder = ann, { bob, score = 330000, beat = 50000 },
      { cat, score = 630000, beat = 20000 } }
    fair.fill(world, state)

    assert.reply({ 0, about(30000), 0, 0 }, wait_renew(cat))

    state[2].beat, state[2].score = 50000, 80000
    assert_left(state)
  end)

  it('takes the free lock for as long as this call says, where that is longer', function()
    fair.fill(world, { { bob, score = 330000, beat = 20000, lease = 30000 } })

    assert.reply({ 1 }, wait_renew(bob, 70000))

    assert_left({ holder = bob, lease = 70000 })
  end)
end)
