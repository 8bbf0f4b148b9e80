-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

describe('fair/acquire', function()
  local ann, bob, cat = 'lk-ann:1', 'lk-bob:2', 'lk-cat:3'
  local jim, joe = '8ee15f1c-jim:1', '8ee15f1c-joe:2' -- of other clients
  local world

  before_each(function()
    world = helper.world()
  end)

  local function acquire(...)
    return fair.acquire(world, ...)
  end

  local function assert_left(state, messages)
    assert.left(world, fair.keys(state), messages)
  end

  it('takes a free lock for the lease, and leaves no trace of a queue', function()
    assert.reply({ 1, 1 }, acquire(ann, 1, { lease = 60000 }))

    assert_left({ holder = ann, lease = 60000 })
  end)

  it('takes a lock whose lease has ended', function()
    acquire(ann)
    world:advance(30001)

    assert.reply({ 1, 1 }, acquire(bob, 1, { lease = 60000 }))

    assert_left({ holder = bob, lease = 60000 })
  end)

  describe('of a lock that another holds', function()
    it('queues, with a score that is past 30 s after its heartbeat', function()
      fair.fill(world, { holder = ann })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(bob))

      assert_left({ holder = ann, { bob, score = 80000, beat = 50000 }, ttl = 130000 })
    end)

    it('keeps all digits of its ticket', function()
      fair.fill(world, { holder = ann })

      assert.reply({ 0, about(30000), 0, 0 }, acquire('lk-cat:123'))

      assert_left({ holder = ann, { 'lk-cat:123', score = 80000, beat = 50000 }, ttl = 130000 })
    end)

    it('queues behind others of latchkey with no later score', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(cat, 1, { wait = 100000 }))

      assert_left({ holder = ann, { bob, score = 330000, beat = 50000 },
        { cat, score = 80000, beat = 50000, wait = 100000 } })
    end)

    it('queues from now where the last waiter is overdue', function()
      fair.fill(world, { holder = ann, { bob, score = -70000, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(cat))

      assert_left({ holder = ann, { bob, score = -70000, beat = 50000 },
        { cat, score = 80000, beat = 50000 } })
    end)

    it('queues from now where the lease has no end, and says -1', function()
      helper.fill(world, { job = helper.hash({ [ann] = '1' }) })

      assert.reply({ 0, -1, 0, 0 }, acquire(bob))

      assert_left({ holder = ann, lease = -1, { bob, score = 80000, beat = 50000 },
        ttl = 130000 })
    end)

    it('has a later score by its wait for each waiter of another client', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 }, { cat } })

      assert.reply({ 0, about(30000), 1, 0 }, acquire('lk-dan:4'))

      assert_left({ holder = ann, { bob, score = 330000, beat = 50000 }, { cat },
        { 'lk-dan:4', score = 380000, beat = 50000 } })
    end)

    it('keeps the records longer for a later score, and never shorter', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 }, ttl = 90000 })

      acquire(cat)
      assert_left({ holder = ann, { bob, score = 330000, beat = 50000 },
        { cat, score = 80000, beat = 50000 }, ttl = 130000 })

      acquire(bob)
      acquire(cat)
      assert_left({ holder = ann, { bob, score = 330000, beat = 50000 },
        { cat, score = 80000, beat = 50000 }, ttl = 380000 })
    end)

    it('keeps its place when it is sent again, and counts as a heartbeat', function()
      fair.fill(world, { holder = ann, { bob, score = 310000, beat = 20000 },
        { cat, score = 610000, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(bob, 1, { lease = 60000 }))

      assert_left({ holder = ann, { bob, score = 310000, beat = 50000, lease = 60000 },
        { cat, score = 610000, beat = 50000 } })
    end)

    it('keeps its place when its record was lost', function()
      fair.fill(world, { holder = ann, { bob, score = 310000 } })

      assert.reply({ 0, about(30000), 1, 0 }, acquire(bob))

      assert_left({ holder = ann, { bob, score = 310000, beat = 50000 }, ttl = 360000 })
    end)

    it('counts as a heartbeat also where its score is past', function()
      fair.fill(world, { holder = ann, { bob, score = -70000, beat = 20000 }, ttl = 20000 })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(bob))

      assert_left({ holder = ann, { bob, score = -70000, beat = 50000 }, ttl = 50000 })
    end)

    it('has a record also where its score is past and all records were lost', function()
      fair.fill(world, { holder = ann, { jim, score = 90000 }, { bob, score = -70000 } })

      assert.reply({ 0, about(30000), 1, 0 }, acquire(bob))

      assert_left({ holder = ann, { jim, score = 90000 },
        { bob, score = -70000, beat = 50000 }, ttl = 50000 })
    end)

    it('has a record that outlives its score, whatever its wait', function()
      fair.fill(world, { holder = ann, lease = -1 })

      assert.reply({ 0, -1, 0, 0 }, acquire(bob, 1, { wait = 20000 }))

      assert_left({ holder = ann, lease = -1,
        { bob, score = 80000, beat = 50000, wait = 20000 }, ttl = 130000 })
    end)

    it('queues anew when the queue was lost and others have queued since', function()
      fair.fill(world, { holder = ann, { bob, score = 310000, beat = 50000 } })
      world:command('DEL', fair.KEYS[2])
      fair.acquire(world, cat, 1, { heartbeat = 60000 })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(bob))

      assert_left({ holder = ann, { cat, score = 90000, beat = 60000 },
        { bob, score = 80000, beat = 50000 }, ttl = 150000 })
    end)

    it('has a score again where that was lost', function()
      fair.fill(world, { holder = ann, { cat, score = 330000, beat = 50000 },
        { bob, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(bob))

      assert.reply(about(80000), world:command('ZSCORE', fair.KEYS[3], bob) - world:now_ms())
    end)

    it('drops the records of those whom another client has dropped, where nobody waits', function()
      fair.fill(world, { holder = ann, { bob, beat = 20000 }, ttl = 600000 })
      world:command('DEL', fair.KEYS[2])

      assert.reply({ 0, about(30000), 1, 0 }, acquire(cat))

      assert_left({ holder = ann, { cat, score = 80000, beat = 50000 }, ttl = 130000 })
    end)

    it('queues anew when the queue was lost', function()
      fair.fill(world, { holder = ann, { bob, score = 310000, beat = 50000 } })
      world:command('DEL', fair.KEYS[2])

      assert.reply({ 0, about(30000), 1, 0 }, acquire(bob))

      assert_left({ holder = ann, { bob, score = 80000, beat = 50000 }, ttl = 130000 })
    end)

    for _, score in ipairs({ '+inf', '1e17', '330000.5', '-inf' }) do
      it('queues behind one whose score is no moment, and is back with it: ' .. score, function()
        fair.fill(world, { holder = ann, { jim, score = 330000 }, { bob, score = 330000 } })
        world:command('ZADD', fair.KEYS[3], score, bob)

        assert.reply({ 0, about(30000), 1, 0 }, acquire(cat))
        assert.reply({ 0, about(30000), 1, 0 }, acquire(bob))

        assert.same({ jim, bob, cat, n = 3 }, world:command('LRANGE', fair.KEYS[2], 0, -1))
      end)
    end

    it('does not queue without a heartbeat', function()
      fair.fill(world, { holder = ann })

      assert.reply({ 0, about(30000), 0, 0 }, fair.try(world, bob))

      assert_left({ holder = ann })
    end)

    for _, case in ipairs({ { 9999, { 0, about(30000), 1, 0 } }, { 10000, { -2 } } }) do
      it(('behind %d others'):format(case[1]), function()
        fair.fill(world, { holder = ann })
        for first = 1, case[1], 1000 do
          local owners = {}
          for i = first, math.min(first + 999, case[1]) do
            table.insert(owners, jim .. i)
          end
          world:command('RPUSH', fair.KEYS[2], unpack(owners))
        end
        world:command('ZADD', fair.KEYS[3], world:now_ms() + 300000, jim .. 1)

        assert.reply(case[2], acquire(bob))

        assert.equal(10000, world:command('LLEN', fair.KEYS[2]))
        assert.reply({ 0, about(30000), 1, 0 }, fair.try(world, bob))
        assert.reply({ 0, about(30000), 1, 0 }, acquire(jim .. 1))
      end)
    end
  end)

  describe('of a free lock that others wait for', function()
    it('waits behind a waiter that is alive', function()
      fair.fill(world, { { bob, score = 330000, beat = 40000 } })

      assert.reply({ 0, about(40000), 1, 1 }, acquire(ann))

      assert_left({ { bob, score = 330000, beat = 40000 }, { ann, score = 80000, beat = 50000 } })
    end)

    it('waits behind a waiter of another client for the longest wait there can be', function()
      fair.fill(world, { { jim, score = 200000 } })

      assert.reply({ 0, about(200000), 1, 1 }, fair.acquire(world, ann, 1, { wait = 86400000 }))

      assert_left({ { jim, score = 200000 },
        { ann, score = 86480000, beat = 50000, wait = 86400000 }, ttl = 86530000 }, fair.told(jim))
    end)

    it('waits behind a waiter of another client as long as that has, and tells it', function()
      fair.fill(world, { { jim, score = 200000 } })

      assert.reply({ 0, about(200000), 1, 1 }, acquire(ann))

      assert_left({ { jim, score = 200000 }, { ann, score = 380000, beat = 50000 },
        ttl = 430000 }, fair.told(jim))
    end)

    it('tells a sharded channel when asked to', function()
      helper.listen(world, fair.CHANNEL .. ':' .. jim)
      fair.fill(world, { { jim, score = 200000 } })

      assert.reply({ 0, about(200000), 1, 1 },
        acquire(ann, 1, { heartbeat = 0, publish = 'SPUBLISH' }))

      assert_left({ { jim, score = 200000 } }, fair.told(jim, '0', 'SPUBLISH'))
    end)

    it('takes it when it is first', function()
      fair.fill(world, { { ann, score = 330000, beat = 50000 }, { jim, score = 630000 },
        { bob, score = 930000, beat = 50000 } })

      assert.reply({ 1, 1 }, acquire(ann))

      assert_left({ holder = ann, { jim, score = 630000 },
        { bob, score = 930000, beat = 50000 } })
    end)

    it('takes it as the first without a record', function()
      fair.fill(world, { { ann, score = 330000 }, { jim, score = 630000 } })

      assert.reply({ 1, 1 }, acquire(ann))

      assert_left({ holder = ann, { jim, score = 630000 } })
    end)

    it('tried only, is taken by the first alone', function()
      fair.fill(world, { { ann, score = 330000, beat = 50000 } })

      assert.reply({ 0, about(50000), 1, 1 }, fair.try(world, bob))
      assert.reply({ 1, 1 }, fair.try(world, ann))

      assert_left({ holder = ann })
    end)
  end)

  describe('drops from the front', function()
    it('a waiter without a heartbeat, as if it had left', function()
      fair.fill(world, { { bob, score = 330000, beat = 20000 }, { jim, score = 630000 } })
      world:advance(20001)

      assert.reply({ 0, about(609999), 1, 1 }, acquire(ann))

      assert_left({ { jim, score = 609999 }, { ann, score = 380000, beat = 50000 },
        ttl = 430000 }, fair.told(jim))
    end)

    it('a waiter of another client at its own score', function()
      fair.fill(world, { { jim, score = 20000 }, { joe, score = 320000 } })
      world:advance(20000)

      assert.reply({ 0, about(300000), 1, 1 }, fair.try(world, ann))

      assert_left({ { joe, score = 300000 } }, fair.told(joe))
    end)

    it('no waiter of another client before its score', function()
      fair.fill(world, { { jim, score = 20000 } })
      world:advance(5000)

      assert.reply({ 0, about(15000), 1, 1 }, fair.try(world, ann))

      assert_left({ { jim, score = 15000 } }, fair.told(jim))
    end)

    it('no waiter that is alive, though its score is past', function()
      fair.fill(world, { { bob, score = -20000, beat = 20000 } })

      assert.reply({ 0, about(20000), 1, 1 }, fair.try(world, ann))

      assert_left({ { bob, score = -20000, beat = 20000 } })
    end)

    it('a dead waiter whose score is past, and leaves those behind their time', function()
      fair.fill(world, { { bob, score = -20000, beat = -20000 }, { jim, score = 280000 } })

      assert.reply({ 0, about(280000), 1, 1 }, fair.try(world, ann))

      assert_left({ { jim, score = 280000 } }, fair.told(jim))
    end)

    for _, score in ipairs({ '+inf', '1e17', '1000000000000000', '330000.5', '-inf' }) do
      it('a waiter whose score is no moment: ' .. score, function()
        fair.fill(world, { { jim, score = 330000 }, { bob, score = 330000, beat = 50000 },
          { cat, score = 330000, beat = 50000 } })
        world:command('ZADD', fair.KEYS[3], score, jim)
        world:command('ZADD', fair.KEYS[3], score, bob)

        assert.reply({ 0, about(50000), 1, 1 }, fair.try(world, ann))

        assert_left({ { cat, score = 330000, beat = 50000 } })
      end)
    end

    it('no waiter whose score has 15 digits', function()
      fair.fill(world, { { jim, score = 330000 } })
      world:command('ZADD', fair.KEYS[3], '999999999999999', jim)

      assert.equal(0, fair.try(world, ann)[1])

      assert.same({ jim, n = 1 }, world:command('LRANGE', fair.KEYS[2], 0, -1))
    end)

    it('waiters without a score, known or not', function()
      fair.fill(world, { { bob, beat = 50000 }, { jim }, { cat, score = 330000, beat = 50000 } })

      assert.reply({ 0, about(50000), 1, 1 }, fair.try(world, ann))

      assert_left({ { cat, score = 330000, beat = 50000 } })
    end)

    it('all of them, and takes the lock', function()
      fair.fill(world, { { bob, score = 330000, beat = -1 }, { jim, score = -1 }, { joe } })

      assert.reply({ 1, 1 }, fair.try(world, ann))

      assert_left({ holder = ann })
    end)

    it('itself when its heartbeat is overdue, and queues at the end', function()
      fair.fill(world, { holder = cat, { ann, score = 330000, beat = -1 },
        { bob, score = 630000, beat = 50000 } })

      assert.reply({ 0, about(30000), 0, 0 }, acquire(ann))

      assert_left({ holder = cat, { bob, score = 630000, beat = 50000 },
        { ann, score = 80000, beat = 50000 } })
    end)

    it('a hundred at a time', function()
      local dead = { { jim, score = 330000 } }
      for i = 1, 150 do
        table.insert(dead, 1, { 'lk-dan:' .. i, score = 330000, beat = -1, wait = 1 })
      end
      fair.fill(world, dead)

      assert.reply({ 0, 0, 1, 1 }, fair.try(world, ann))
      assert.equal(51, world:command('LLEN', fair.KEYS[2]))
      assert.reply({ 0, about(330000), 1, 1 }, fair.try(world, ann))

      assert_left({ { jim, score = 330000 } }, fair.told(jim))
    end)
  end)

  describe('says that other clients are about', function()
    it('when one holds the lock', function()
      fair.fill(world, { holder = jim })

      assert.reply({ 0, about(30000), 1, 0 }, acquire(ann))

      assert_left({ holder = jim, { ann, score = 80000, beat = 50000 }, ttl = 130000 })
    end)

    it('when one waits', function()
      fair.fill(world, { holder = bob, { jim, score = 330000 } })

      assert.reply({ 0, about(30000), 1, 0 }, fair.try(world, ann))

      assert_left({ holder = bob, { jim, score = 330000 } })
    end)

    it('when the lock is a hash of several fields', function()
      local before = { job = helper.hash({ mode = 'read', [bob] = '1' }, 30000) }
      helper.fill(world, before)

      assert.reply({ 0, about(30000), 1, 0 }, fair.try(world, ann))

      assert.left(world, before)
    end)
  end)

  describe('by the holder', function()
    it('sets the hold count, and it counts once when it runs twice', function()
      fair.fill(world, { holder = ann, { bob, score = 330000, beat = 50000 } })

      assert.reply({ 1, 2 }, acquire(ann, 2))
      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert_left({ holder = ann, count = 2, { bob, score = 330000, beat = 50000 } })
    end)

    it('that was granted the lock meanwhile, finds it', function()
      fair.fill(world, { holder = ann })

      assert.reply({ 1, 1 }, acquire(ann, 1, { lease = 60000 }))

      assert_left({ holder = ann, lease = 60000 })
    end)

    it('does not shorten the lease', function()
      fair.fill(world, { holder = ann })

      assert.reply({ 1, 2 }, acquire(ann, 2, { lease = 50 }))

      assert_left({ holder = ann, count = 2 })
    end)

    it('does not end a hold that has no lease', function()
      helper.fill(world, { job = helper.hash({ [ann] = '1' }) })

      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert_left({ holder = ann, count = 2, lease = -1 })
    end)
  end)

  describe('of a further level', function()
    it('takes nothing when the lock was lost and is free', function()
      assert.reply({ -1 }, acquire(ann, 2))

      assert_left({})
    end)

    it('queues nowhere when the lock was lost to another', function()
      fair.fill(world, { holder = bob })

      assert.reply({ -1 }, acquire(ann, 2))

      assert_left({ holder = bob })
    end)
  end)

  it('that runs after the owner left is a stray that goes when no heartbeat comes', function()
    fair.fill(world, { holder = bob, lease = 300000 })
    acquire(ann)
    fair.leave(world, ann)

    acquire(ann)
    world:advance(50001)
    assert.reply({ 0, about(249999), 0, 0 }, acquire(cat))

    assert_left({ holder = bob, lease = 249999, { cat, score = 80000, beat = 50000 },
      ttl = 130000 })
  end)

  for place = 2, 4 do
    it(('writes nothing when key %d alone is of another type'):format(place), function()
      fair.fill(world, { holder = bob, { cat, score = 330000, beat = 50000 } })
      world:command('DEL', fair.KEYS[place])
      world:command('SET', fair.KEYS[place], 'value')
      local before = helper.dump(world)

      assert.refused('WRONGTYPE', 'wrong kind of value', acquire(ann))

      assert.left(world, before)
    end)
  end
end)
