-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')

describe('rw/read_release', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('frees the lock of the last reader, and tells the channel', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

    assert.reply({ 1, 0 }, rw.read_release(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

    assert.reply({ 1, 0 }, rw.read_release(world, ann, 0, 30000, 'SPUBLISH'))

    assert.left(world, {}, rw.told('0', 'SPUBLISH'))
  end)

  it('gives back all levels at once', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 3 } }))

    assert.reply({ 1, 0 }, rw.read_release(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    rw.read_release(world, ann)

    assert.reply({ -1 }, rw.read_release(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  describe('to a level', function()
    it('counts down to it, and keeps the lock for the lease', function()
      helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 3 } }))

      assert.reply({ 1, 2 }, rw.read_release(world, ann, 2, 60000))

      assert.left(world, rw.keys('read', 60000, { [ann] = { 60000, count = 2 } }))
    end)

    it('keeps the lock for the greatest lease, and counts to the greatest level', function()
      world = helper.mock_world() -- a server's clock goes on
      helper.fill(world, rw.keys('read', 86399999, { [ann] = { 30000, count = 1001 } }))

      assert.reply({ 1, 1000 }, rw.read_release(world, ann, 1000, 86400000))

      assert.left(world, rw.keys('read', 86400000, { [ann] = { 86400000, count = 1000 } }))
    end)

    it('shortens nothing with a shorter lease', function()
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 60000, count = 2 } }))

      assert.reply({ 1, 1 }, rw.read_release(world, ann, 1, 30000))

      assert.left(world, rw.keys('read', 90000, { [ann] = { 60000 } }))
    end)

    it('prolongs nothing for a Redisson reader', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1, [ann] = { 30000, count = 2 } }))

      assert.reply({ 1, 1 }, rw.read_release(world, ann, 1, 60000))

      assert.left(world, rw.beside_theirs(rw.keys('read', 60001, { [redisson] = 1,
        [ann] = { 60000 } }), 60001, 30000))
    end)

    it('hands on the end of a lock that lives for days by its digits', function()
      helper.fill(world, rw.keys('read', 300000000, { [ann] = { 200000000 }, [bob] = { 30000 } }))

      assert.reply({ 1, 0 }, rw.read_release(world, bob))

      assert.left(world, rw.keys('read', 200000000, { [ann] = { 200000000 } }))
    end)

    it('leaves a lock without a lease as it is', function()
      helper.fill(world, rw.keys('read', nil, { [ann] = { 30000, count = 2 } }))

      assert.reply({ 1, 1 }, rw.read_release(world, ann, 1, 60000))

      assert.left(world, rw.keys('read', nil, { [ann] = { 60000 } }))
    end)

    it('changes nothing when the call runs twice', function()
      helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }))
      rw.read_release(world, ann, 1)

      assert.reply({ 1, 1 }, rw.read_release(world, ann, 1))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    end)

    it('adds none that the owner does not have', function()
      helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

      assert.reply({ 1, 1 }, rw.read_release(world, ann, 3))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    end)
  end)

  describe('beside other readers', function()
    it('keeps the lock for the longest of them, and tells nobody', function()
      helper.fill(world, rw.keys('read', 90000,
        { [ann] = { 90000 }, [bob] = { 60000 }, ['lk-joe:1'] = { 45000 } }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 }, ['lk-joe:1'] = { 45000 } }))
    end)

    it('keeps the lock for a Redisson reader, whatever became of its levels', function()
      helper.fill(world, rw.keys('read', 60000, { [ann] = { 30000 }, [redisson] = 3 }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 60000, { [redisson] = 3 }))
    end)

    it('keeps the lock for any level of a Redisson reader that is longer', function()
      helper.fill(world, rw.keys('read', 30000,
        { [ann] = { 90000 }, [redisson] = { 15000, 60000, 30000 } }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 60000, { [redisson] = { 15000, 60000, 30000 } }))
    end)

    it('keeps the lock for a Redisson reader no longer than Redisson had it', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1 }))
      rw.read(world, ann, 1, { lease = 90000 })

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.beside_theirs(rw.keys('read', 30000, { [redisson] = 1 }), 90000, 30000))
    end)

    it('keeps that where others read longer', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1, [bob] = { 60000 } }))
      rw.read(world, ann, 1, { lease = 90000 })

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.beside_theirs(rw.keys('read', 60001,
        { [redisson] = 1, [bob] = { 60000 } }), 60001, 30000))
    end)

    it('drops a Redisson reader when Redisson had the lock no longer', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1, [bob] = { 60000 } }))
      rw.read(world, ann, 1, { lease = 90000 })
      world:advance(30001)

      assert.reply({ 1, 0 }, rw.read_release(world, ann))
      assert.left(world, rw.beside_theirs(rw.keys('read', 29999, { [bob] = { 29999 } }), 29999, -2))

      assert.reply({ 1, 0 }, rw.read_release(world, bob))
      assert.left(world, {}, rw.told('0'))
    end)

    it('keeps a lock without a lease for a Redisson reader', function()
      helper.fill(world, rw.keys('read', nil, { [ann] = { 60000 }, [bob] = { 30000 },
        [redisson] = 1 }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', nil, { [bob] = { 30000 }, [redisson] = 1 }))
    end)

    it('extends a lock that a Redisson reader has cut to its watchdog', function()
      helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 }, [bob] = { 90000 } }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 90000, { [bob] = { 90000 } }))
    end)

    it('drops those whose holds are over', function()
      helper.fill(world, rw.keys('read', 90000,
        { [ann] = { 90000 }, [bob] = { 60000 }, ['lk-joe:1'] = 1 }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 } }))
    end)

    it('frees the lock when all their holds are over', function()
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 90000 }, [bob] = 1 }))

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, {}, rw.told('0'))
    end)

    it('leaves a lock its lease when one of them has a level without end', function()
      local level = { [rw.level(bob, 1)] = helper.string('1') }
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 90000 }, [bob] = 1, ['lk-joe:1'] = 1 }))
      helper.fill(world, level)

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      level.job = helper.hash({ mode = 'read', [bob] = '1' }, 90000)
      assert.left(world, level)
    end)

    for levels, longest_ms in pairs({ [1997] = 90000, [1998] = 60000 }) do
      it(('looks at 2000 fields and levels: %d'):format(levels), function()
        local keys = rw.keys('read', 60000, { [ann] = { 30000 }, [redisson] = levels })
        keys[rw.level(redisson, levels)] = helper.string('1', 90000)
        helper.fill(world, keys)

        assert.reply({ 1, 0 }, rw.read_release(world, ann))

        local left = rw.keys('read', longest_ms, { [redisson] = levels })
        left[rw.level(redisson, levels)] = helper.string('1', 90000)
        assert.left(world, left)
      end)
    end

    it('leaves the lock as it is when they have more than 2000 fields and levels', function()
      local keys = { job = helper.hash({ mode = 'read', [ann] = '1', [bob] = '1',
        [redisson] = '2000' }, 90000), [rw.level(ann, 1)] = helper.string('1', 90000),
        [rw.level(bob, 1)] = helper.string('1', 60000) }
      helper.fill(world, keys)

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, { job = helper.hash({ mode = 'read', [bob] = '1', [redisson] = '2000' },
        90000), [rw.level(bob, 1)] = helper.string('1', 60000) })
    end)

    it('takes a field that is no count for a reader of another client', function()
      helper.fill(world, rw.keys('read', 60000, { [ann] = { 30000 } }))
      helper.fill(world, { job = helper.hash({ note = 'nan' }, 60000) })

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, { job = helper.hash({ mode = 'read', note = 'nan' }, 60000) })
    end)
  end)

  it('looks at no reader among more than 2000 fields', function()
    local holds = { [ann] = { 90000 } }
    for i = 1, 2000 do
      holds['lk-bob:' .. i] = 1
    end
    local keys = rw.keys('read', 90000, holds)
    helper.fill(world, keys)

    assert.reply({ 1, 0 }, rw.read_release(world, ann))

    keys.job.value[ann], keys[rw.level(ann, 1)] = nil, nil
    assert.left(world, keys)
  end)

  it('never shortens the lease of the writer that reads, and tells nobody', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 1000, count = 2 } }))

    assert.reply({ 1, 1 }, rw.read_release(world, ann, 1, 1000))
    assert.left(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 1000 } }))

    assert.reply({ 1, 0 }, rw.read_release(world, ann))
    assert.left(world, rw.keys('write', 60000, { [eve] = 1 }))
  end)

  describe('says that nothing was held', function()
    it('when the lock is free', function()
      assert.reply({ -1 }, rw.read_release(world, ann))

      assert.left(world, {})
    end)

    it('when others hold it', function()
      helper.fill(world, rw.keys('read', 30000, { [bob] = { 30000 } }))

      assert.reply({ -1 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 30000, { [bob] = { 30000 } }))
    end)

    it('when the hold is over, and drops what is left of it', function()
      helper.fill(world, rw.keys('read', 60000, { [ann] = 1, [bob] = { 60000 } }))

      assert.reply({ -1 }, rw.read_release(world, ann, 1))

      assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 } }))
    end)

    it('when the hold is over, and frees a lock that nobody else has', function()
      helper.fill(world, rw.keys('read', 60000, { [ann] = 1 }))

      assert.reply({ -1 }, rw.read_release(world, ann))

      assert.left(world, {}, rw.told('0'))
    end)

    it('when the hash is a lock of another kind', function()
      local before = { job = helper.hash({ [ann] = '1' }, 30000) }
      helper.fill(world, before)

      assert.reply({ -1 }, rw.read_release(world, ann))

      assert.left(world, before)
    end)

    it('to a call that runs late, and leaves a new hold of the same client', function()
      helper.fill(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } }))

      assert.reply({ -1 }, rw.read_release(world, ann))

      assert.left(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } }))
    end)
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    world:set_oom(true)

    assert.reply({ 1, 0 }, rw.read_release(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('releases a hold whose count says nothing: it has one level', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 'x' } }))

    assert.reply({ 1, 1 }, rw.read_release(world, ann, 2))
    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

    assert.reply({ 1, 0 }, rw.read_release(world, ann))
    assert.left(world, {}, rw.told('0'))
  end)

  it('finds nothing in the hash of another kind', function()
    local before = { job = helper.hash({ [ann] = '1' }, 30000) }
    helper.fill(world, before)

    assert.reply({ -1 }, rw.read_release(world, ann))

    assert.left(world, before)
  end)

  it('leaves others alone where the caller holds nothing', function()
    local keys = rw.keys('read', 90000, { [bob] = 2, [redisson] = { 30000 } })
    helper.fill(world, keys)

    assert.reply({ -1 }, rw.read_release(world, ann))

    assert.left(world, keys)
  end)

  it('looks at the first level alone', function()
    local keys = rw.keys('read', 90000, { [ann] = { 40000, count = 2 } })
    keys[rw.level(ann, 0)] = helper.string('1', 40000)
    keys[rw.level(ann, 2)] = helper.string('1', 40000)
    helper.fill(world, keys)

    assert.reply({ 1, 1 }, rw.read_release(world, ann, 1, 60000))

    keys[rw.level(ann, 1)] = helper.string('1', 60000)
    assert.left(world, keys)
  end)

  -- A level with 0 ms left is still there, and the lock must be no sooner gone than it: a PEXPIRE
  -- of 0 would delete it.
  for reader_ms = 0, 2 do
    it(('lets a reader go on that has %d ms left'):format(reader_ms), function()
      world = helper.mock_world() -- the clock of a server cannot be stopped there
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 90000 }, [bob] = { 30000 } }))
      world:advance(30000 - reader_ms)

      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.left(world, { job = helper.hash({ mode = 'read', [bob] = '1' },
        math.max(reader_ms, 1)),
        [rw.level(bob, 1)] = helper.string('1', reader_ms) })
    end)
  end
end)
