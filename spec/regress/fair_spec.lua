-- SPDX-License-Identifier: Apache-2.0
-- What was wrong with fair locks once.
local Redisson = require('interop.player.fair')
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

describe('a fair lock', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  -- It queued the caller, and then failed: an entry that nobody had asked for again.
  it('queues nobody where the records are of another type', function()
    fair.fill(world, { holder = 'c0ffee-1:1' })
    helper.fill(world, { [fair.KEYS[4]] = helper.string('value', 60000) })
    local before = helper.dump(world)

    assert.refused('WRONGTYPE', 'wrong kind', fair.acquire(world, 'lk-ann:1'))

    assert.left(world, before)
  end)

  -- The lease of acquire was granted, the one of this call was promised.
  it('that is free is held for at least the lease of the heartbeat that found it', function()
    fair.fill(world, { { 'lk-ann:1', score = 300000, beat = 50000, lease = 1000 } })

    assert.reply({ 1 }, fair.wait_renew(world, 'lk-ann:1', 30000))

    assert.left(world, fair.keys({ holder = 'lk-ann:1', lease = 30000 }))
    assert.reply({ 0, about(30000), 0, 0 }, fair.acquire(world, 'lk-bob:1'))
  end)

  -- Who was given the lock just after its death kept it from the others for all of its lease.
  it('that is given to a dead waiter is the next one\'s a heartbeat later', function()
    local beat = { heartbeat = 5000 }
    fair.acquire(world, 'lk-ann:1')
    fair.acquire(world, 'lk-bob:1', 1, beat)
    fair.acquire(world, 'lk-cat:1', 1, beat)
    world:advance(1000)
    fair.acquire(world, 'lk-cat:1', 1, beat)

    assert.reply({ 1, 0 }, fair.release(world, 'lk-ann:1'))
    assert.reply({ 0, about(4000), 0, 0 }, fair.acquire(world, 'lk-cat:1', 1, beat))
    world:advance(4001)

    assert.reply({ 1 }, fair.wait_renew(world, 'lk-cat:1'))
  end)

  -- Its record was left, so that one waiter of Redisson fewer was counted: the next one's score was
  -- five minutes too early, and it lost its place as soon as Redisson had the lock before it.
  it('keeps the place of a waiter behind one that Redisson dropped and that gave up', function()
    local jim = Redisson:new(world, { owner = 'c0ffee-1:1' })
    local kim = Redisson:new(world, { owner = 'c0ffee-2:1' })
    jim:lock()
    fair.acquire(world, 'lk-ann:1')
    world:command('ZADD', fair.KEYS[3], world:now_ms() - 1, 'lk-ann:1') -- a clock is ahead
    kim:lock()
    assert.reply({ -1 }, fair.leave(world, 'lk-ann:1'))
    fair.acquire(world, 'lk-bob:1')

    jim:unlock(1)
    assert.is_nil(kim:lock())
    kim:unlock(2)

    assert.reply({ 1 }, fair.wait_renew(world, 'lk-bob:1'))
  end)

  -- Its place in the queue was left without a score, which no client of Redisson ever passes.
  it('is taken by Redisson behind a waiter whose record was lost', function()
    local jim = Redisson:new(world, { owner = 'c0ffee-1:1' })
    local kim = Redisson:new(world, { owner = 'c0ffee-2:1' })
    jim:lock()
    fair.acquire(world, 'lk-ann:1')
    kim:lock()
    world:command('DEL', fair.KEYS[4])
    assert.reply({ -1 }, fair.wait_renew(world, 'lk-ann:1'))

    jim:unlock(1)

    assert.is_nil(kim:lock())
  end)

  it('that is given to a live waiter is held for its lease once it looks or renews', function()
    for _, call in ipairs({ 'wait_renew', 'acquire' }) do
      world = helper.world()
      fair.acquire(world, 'lk-ann:1')
      fair.acquire(world, 'lk-bob:1', 1, { heartbeat = 5000 })
      fair.release(world, 'lk-ann:1')

      assert.equal(1, fair[call](world, 'lk-bob:1')[1])

      assert.left(world, fair.keys({ holder = 'lk-bob:1', lease = 30000 }),
        fair.told('lk-bob', '1'))
    end
  end)
end)
