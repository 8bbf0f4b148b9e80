-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('rw/write_acquire', function()
  local ann, bob, eve = 'lk-ann:1:write', 'lk-bob:1', 'lk-eve:1:write'
  local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('takes a free lock for the lease', function()
    assert.reply({ 1, 1 }, rw.write(world, ann, 1, { lease = 30000 }))

    assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
  end)

  it('refuses another writer and says how long the lease lasts', function()
    rw.write(world, eve, 1, { lease = 30000 })

    assert.reply({ 0, about(30000) }, rw.write(world, ann))

    assert.left(world, rw.keys('write', 30000, { [eve] = 1 }))
  end)

  it('says -1 when the other writer has no lease', function()
    helper.fill(world, rw.keys('write', nil, { [eve] = 1 }))

    assert.reply({ 0, -1 }, rw.write(world, ann))

    assert.left(world, rw.keys('write', nil, { [eve] = 1 }))
  end)

  it('takes the lock when the lease of the writer has ended', function()
    rw.write(world, eve, 1, { lease = 30000 })
    world:advance(30001)

    assert.reply({ 1, 1 }, rw.write(world, ann))

    assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
  end)

  it('takes a hash without a mode for a lock of another kind', function()
    local before = { job = helper.hash({ [bob] = '1' }, 30000) }
    helper.fill(world, before)

    assert.reply({ 0, about(30000) }, rw.write(world, ann))

    assert.left(world, before)
  end)

  it('takes scores of 14 nines and more for no moment until which somebody waits', function()
    helper.fill(world, { [rw.WAITERS] = helper.zset({ { ann, '@+50000' } }, 60000) })
    world:command('ZADD', rw.WAITERS, '99999999999999', eve)
    world:command('ZADD', rw.WAITERS, '99999999999998', bob)

    assert.reply({ 1, 1 }, rw.write(world, ann))

    assert.same({ bob, n = 1 }, world:command('ZRANGE', rw.WAITERS, 0, -1))
  end)

  it('takes a lock for which somebody waits until no moment', function()
    helper.fill(world, { [rw.WAITERS] = helper.zset({ { bob, '+inf' } }, 60000) })
    world:command('ZADD', rw.WAITERS, 1e17, ann)

    assert.reply({ 1, 1 }, rw.write(world, ann))

    assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
  end)

  describe('while others read', function()
    it('refuses and says how long the longest of their leases lasts', function()
      local before = rw.keys('read', 90000,
        { [bob] = { 30000, count = 2 }, ['lk-joe:1'] = { 60000 } })
      helper.fill(world, before)

      assert.reply({ 0, about(60000) }, rw.write(world, ann))

      assert.left(world, before)
    end)

    it('refuses as long as a Redisson reader has the hash, whatever its levels', function()
      local before = rw.keys('read', 30000, { [redisson] = 2 })
      helper.fill(world, before)

      assert.reply({ 0, about(30000) }, rw.write(world, ann))
      assert.left(world, before)

      world:advance(30001)
      assert.reply({ 1, 1 }, rw.write(world, ann))
      assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
    end)

    it('refuses as long as any level of a Redisson reader is there', function()
      local before = rw.keys('read', 30000, { [redisson] = { 15000, 60000 } })
      helper.fill(world, before)

      assert.reply({ 0, about(60000) }, rw.write(world, ann))

      assert.left(world, before)
    end)

    for first, second in pairs({ [15000] = 60000, [60000] = 15000 }) do
      it(('refuses as long as any of two Redisson readers: %d and %d'):format(first, second),
        function()
          local before = rw.keys('read', 10000, { [redisson] = { first },
            [redisson:gsub('.$', '2')] = { second } })
          helper.fill(world, before)

          assert.reply({ 0, about(60000) }, rw.write(world, ann))

          assert.left(world, before)
        end)
    end

    it('refuses for a Redisson reader no longer than Redisson has the hash', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1 }))
      rw.read(world, 'lk-joe:1', 1, { lease = 15000 })
      rw.read(world, 'lk-joe:1', 1, { lease = 60000 })
      world:command('HDEL', 'job', 'lk-joe:1')
      world:command('DEL', rw.level('lk-joe:1', 1))

      assert.reply({ 0, about(30000) }, rw.write(world, ann))
      world:advance(30000)
      if not helper.is_live then
        assert.reply({ 0, about(0) }, rw.write(world, ann))
      end
      world:advance(1)

      assert.reply({ 1, 1 }, rw.write(world, ann))
      assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
    end)

    it('says -1 when the lock has no lease, which Redisson reads', function()
      local before = rw.keys('read', nil, { [bob] = { 30000 }, [redisson] = 1 })
      helper.fill(world, before)

      assert.reply({ 0, -1 }, rw.write(world, ann))

      assert.left(world, before)
    end)

    it('drops those whose holds are over', function()
      helper.fill(world, rw.keys('read', 90000, { [bob] = { 60000 }, ['lk-joe:1'] = 1 }))

      assert.reply({ 0, about(60000) }, rw.write(world, ann))

      assert.left(world, rw.keys('read', 90000, { [bob] = { 60000 } }))
    end)

    for levels, left_ms in pairs({ [1998] = 90000, [1999] = 60000 }) do
      it(('looks at 2000 fields and levels: %d'):format(levels), function()
        local before = rw.keys('read', 60000, { [redisson] = levels })
        before[rw.level(redisson, levels)] = helper.string('1', 90000)
        helper.fill(world, before)

        assert.reply({ 0, about(left_ms) }, rw.write(world, ann))

        assert.left(world, before)
      end)
    end

    for levels, left_ms in pairs({ [1997] = 90000, [1998] = 60000 }) do
      it(('takes no levels off for a count below 0: %d'):format(levels), function()
        helper.fill(world, rw.keys('read', 60000, { ['java:2'] = -5 }))
        world:command('HSET', 'job', redisson, levels)
        world:command('SET', rw.level(redisson, levels), 1, 'PX', 90000)

        assert.reply({ 0, about(left_ms) }, rw.write(world, ann))
      end)
    end

    it('looks at 2000 fields', function()
      rw.fill_readers(world, 1998, 90000)
      world:command('HSET', 'job', redisson, 0)

      assert.reply({ 0, about(90000) }, rw.write(world, ann))
    end)

    it('removes 1000 at a time of those whose holds are over', function()
      rw.fill_readers(world, 1200, 90000)
      helper.fill(world, rw.keys('read', 90000, { [bob] = { 60000 } }))

      assert.reply({ 0, about(60000) }, rw.write(world, ann))

      assert.equal(1202 - 1000, world:command('HLEN', 'job'))
    end)

    it('believes the hash beyond them, also where latchkey has set its end', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 2000 }))
      rw.read(world, bob, 1, { lease = 90000 })
      world:command('HDEL', 'job', bob)
      world:command('DEL', rw.level(bob, 1))

      assert.reply({ 0, about(90000) }, rw.write(world, ann))
    end)

    it('looks at none of them beyond 2000 fields and levels', function()
      helper.fill(world, rw.keys('read', 90000, { [redisson] = 2000 }))

      assert.reply({ 0, about(90000) }, rw.write(world, ann))

      assert.left(world, rw.keys('read', 90000, { [redisson] = 2000 }))
    end)
  end)

  it('takes a lock whose readers\' holds are all over', function()
    helper.fill(world, rw.keys('read', 90000, { [bob] = 1, ['lk-joe:1'] = 1 }))

    assert.reply({ 1, 1 }, rw.write(world, ann, 1, { lease = 30000 }))

    assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
  end)

  describe('by a reader', function()
    it('is refused at once', function()
      local before = rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } })
      helper.fill(world, before)

      assert.reply({ -2 }, rw.write(world, ann, 1, { reader = 'lk-ann:2' }))

      assert.left(world, before)
    end)

    it('is refused at once beside other readers, too', function()
      local before = rw.keys('read', 60000, { ['lk-ann:2'] = { 30000 }, [bob] = { 60000 } })
      helper.fill(world, before)

      assert.reply({ -2 }, rw.write(world, ann, 1, { reader = 'lk-ann:2' }))

      assert.left(world, before)
    end)

    it('waits for others when the own hold is over', function()
      helper.fill(world, rw.keys('read', 30000, { ['lk-ann:2'] = 1, [bob] = { 30000 } }))

      assert.reply({ 0, about(30000) }, rw.write(world, ann, 1, { reader = 'lk-ann:2' }))

      assert.left(world, rw.keys('read', 30000, { [bob] = { 30000 } }))
    end)

    it('waits for others when only a level is left of the own hold', function()
      local before = rw.keys('read', 30000, { [bob] = { 30000 } })
      before[rw.level('lk-ann:2', 1)] = helper.string('1', 30000)
      helper.fill(world, before)

      assert.reply({ 0, about(30000) }, rw.write(world, ann, 1, { reader = 'lk-ann:2' }))

      assert.left(world, before)
    end)

    it('waits for another writer that has taken the lock', function()
      helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

      assert.reply({ 0, about(30000) }, rw.write(world, ann, 1, { reader = 'lk-ann:2' }))

      assert.left(world, rw.keys('write', 30000, { [eve] = 1 }))
    end)
  end)

  it('takes its field among readers for no hold', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = 1, [bob] = { 30000 } }))

    assert.reply({ 0, about(30000) }, rw.write(world, ann))

    assert.left(world, rw.keys('read', 30000, { [bob] = { 30000 } }))
  end)

  describe('by the writer that holds the lock', function()
    before_each(function()
      rw.write(world, ann, 1, { lease = 30000 })
    end)

    it('sets the hold count', function()
      assert.reply({ 1, 2 }, rw.write(world, ann, 2))

      assert.left(world, rw.keys('write', 30000, { [ann] = 2 }))
    end)

    it('counts once when the call runs twice', function()
      rw.write(world, ann, 2)

      assert.reply({ 1, 2 }, rw.write(world, ann, 2))

      assert.left(world, rw.keys('write', 30000, { [ann] = 2 }))
    end)

    it('extends the lease to a longer one, and does not add it', function()
      assert.reply({ 1, 2 }, rw.write(world, ann, 2, { lease = 60000 }))

      assert.left(world, rw.keys('write', 60000, { [ann] = 2 }))
    end)

    it('does not shorten the lease to a shorter one', function()
      assert.reply({ 1, 2 }, rw.write(world, ann, 2, { lease = 50 }))

      assert.left(world, rw.keys('write', 30000, { [ann] = 2 }))
    end)

    it('goes on when it reads, too', function()
      rw.read(world, 'lk-ann:2', 1, { writer = ann })

      assert.reply({ 1, 2 }, rw.write(world, ann, 2, { reader = 'lk-ann:2' }))

      assert.left(world, rw.keys('write', 30000, { [ann] = 2, ['lk-ann:2'] = { 30000 } }))
    end)
  end)

  describe('of a further level', function()
    it('takes nothing when the lock was lost and is free', function()
      assert.reply({ -1 }, rw.write(world, ann, 2))

      assert.left(world, {})
    end)

    it('takes nothing when the lock was lost to readers', function()
      helper.fill(world, rw.keys('read', 30000, { [bob] = { 30000 } }))

      assert.reply({ -1 }, rw.write(world, ann, 2))

      assert.left(world, rw.keys('read', 30000, { [bob] = { 30000 } }))
    end)
  end)

  describe('by a writer that waits', function()
    it('ends the waiting', function()
      rw.wait(world, ann)

      assert.reply({ 1, 1 }, rw.write(world, ann))

      assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
    end)

    it('leaves the waiting of others, as long as theirs goes on', function()
      rw.wait(world, eve, 5000)
      rw.wait(world, ann, 60000)

      assert.reply({ 1, 1 }, rw.write(world, ann))

      assert.left(world, rw.beside_waiting(rw.keys('write', 30000, { [ann] = 1 }), { eve, 5000 }))
    end)

    it('goes on while others hold the lock', function()
      rw.read(world, bob)
      rw.wait(world, ann, 50000)

      assert.reply({ 0, about(30000) }, rw.write(world, ann))

      assert.left(world, rw.beside_waiting(rw.keys('read', 30000, { [bob] = { 30000 } }),
        { ann, 50000 }))
    end)
  end)

  it('does not wait for a writer that waits', function()
    rw.wait(world, eve, 50000)

    assert.reply({ 1, 1 }, rw.write(world, ann))

    assert.left(world, rw.beside_waiting(rw.keys('write', 30000, { [ann] = 1 }), { eve, 50000 }))
  end)

  it('writes nothing where something else stands in the place of those that wait', function()
    helper.fill(world, { [rw.WAITERS] = helper.string('text', 30000) })

    assert.refused('WRONGTYPE', 'wrong kind', rw.write(world, ann))

    assert.left(world, { [rw.WAITERS] = helper.string('text', 30000) })
  end)

  it('that runs after the release leaves a stray that ends with its lease', function()
    rw.write(world, ann)
    rw.write_release(world, ann)
    world:messages()

    assert.reply({ 1, 1 }, rw.write(world, ann, 1, { lease = 30000 }))

    assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
    world:advance(30001)
    assert.left(world, {})
  end)
end)
