-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')

describe('rw/write_release', function()
  local ann, bob = 'lk-ann:1:write', 'lk-bob:1:write'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('frees the lock, and tells the channel', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 1 }))

    assert.reply({ 1, 0 }, rw.write_release(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 1 }))

    assert.reply({ 1, 0 }, rw.write_release(world, ann, 0, 30000, 'SPUBLISH'))

    assert.left(world, {}, rw.told('1', 'SPUBLISH'))
  end)

  it('gives back all levels at once', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 3 }))

    assert.reply({ 1, 0 }, rw.write_release(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 1 }))
    rw.write_release(world, ann)

    assert.reply({ -1 }, rw.write_release(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  describe('to a level', function()
    it('keeps the lock for the lease, and tells nobody', function()
      helper.fill(world, rw.keys('write', 30000, { [ann] = 3 }))

      assert.reply({ 1, 2 }, rw.write_release(world, ann, 2, 60000))

      assert.left(world, rw.keys('write', 60000, { [ann] = 2 }))
    end)

    it('does not shorten the lease', function()
      helper.fill(world, rw.keys('write', 60000, { [ann] = 2 }))

      assert.reply({ 1, 1 }, rw.write_release(world, ann, 1, 30000))

      assert.left(world, rw.keys('write', 60000, { [ann] = 1 }))
    end)

    it('changes nothing when the call runs twice', function()
      helper.fill(world, rw.keys('write', 30000, { [ann] = 2 }))
      rw.write_release(world, ann, 1)

      assert.reply({ 1, 1 }, rw.write_release(world, ann, 1))

      assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
    end)
  end)

  describe('by a writer that reads', function()
    it('goes on reading for the lease of that, and wakes all who wait', function()
      helper.fill(world, rw.keys('write', 90000,
        { [ann] = 1, ['lk-ann:2'] = { 30000, count = 2 } }))

      assert.reply({ 1, 0 }, rw.write_release(world, ann))

      assert.left(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000, count = 2 } }),
        rw.told('1'))
    end)

    it('goes on reading for days', function()
      helper.fill(world, rw.keys('write', 300000000, { [ann] = 1, ['lk-ann:2'] = { 200000001 } }))

      assert.reply({ 1, 0 }, rw.write_release(world, ann))

      assert.left(world, rw.keys('read', 200000001, { ['lk-ann:2'] = { 200000001 } }),
        rw.told('1'))
    end)

    it('frees the lock when that hold is over', function()
      helper.fill(world, rw.keys('write', 30000, { [ann] = 1, ['lk-ann:2'] = 1 }))

      assert.reply({ 1, 0 }, rw.write_release(world, ann))

      assert.left(world, {}, rw.told('1'))
    end)

    it('drops one of its holds that is over, and goes on with the other', function()
      helper.fill(world, rw.keys('write', 90000,
        { [ann] = 1, ['lk-ann:2'] = 1, ['lk-ann:3'] = { 30000 } }))

      assert.reply({ 1, 0 }, rw.write_release(world, ann))

      assert.left(world, rw.keys('read', 30000, { ['lk-ann:3'] = { 30000 } }), rw.told('1'))
    end)

    for others, is_looked_at in pairs({ [1998] = true, [2000] = false }) do
      it(('looks at %d readers: %s'):format(others, tostring(is_looked_at)), function()
        local keys = rw.fill_readers(world, others, 90000)
        helper.fill(world, { job = helper.hash({ mode = 'write', [ann] = '1' }, 90000) })

        assert.reply({ 1, 0 }, rw.write_release(world, ann))

        assert.left(world, is_looked_at and {} or keys, rw.told('1'))
      end)
    end

    it('leaves a lock without a lease as it is beyond them', function()
      local keys = rw.fill_readers(world, 2000, 90000)
      helper.fill(world, { job = helper.hash({ mode = 'write', [ann] = '1' }) })
      world:command('PERSIST', 'job')

      assert.reply({ 1, 0 }, rw.write_release(world, ann))

      keys.job.pttl = -1
      assert.left(world, keys, rw.told('1'))
    end)
  end)

  it('leaves writers that wait', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 1 }))
    rw.wait(world, bob, 50000)

    assert.reply({ 1, 0 }, rw.write_release(world, ann))

    assert.left(world, rw.beside_waiting({}, { bob, 50000 }), rw.told('1'))
  end)

  describe('says that nothing was held', function()
    it('when the lock is free', function()
      assert.reply({ -1 }, rw.write_release(world, ann))

      assert.left(world, {})
    end)

    it('when readers hold it', function()
      helper.fill(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } }))

      assert.reply({ -1 }, rw.write_release(world, ann))

      assert.left(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } }))
    end)

    it('when the hash is a lock of another kind', function()
      local before = { job = helper.hash({ [ann] = '1' }, 30000) }
      helper.fill(world, before)

      assert.reply({ -1 }, rw.write_release(world, ann))

      assert.left(world, before)
    end)

    it('to a call that runs late, and leaves a new hold of the same client', function()
      helper.fill(world, rw.keys('write', 30000, { ['lk-ann:3:write'] = 1 }))

      assert.reply({ -1 }, rw.write_release(world, ann))

      assert.left(world, rw.keys('write', 30000, { ['lk-ann:3:write'] = 1 }))
    end)
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 1 }))
    world:set_oom(true)

    assert.reply({ 1, 0 }, rw.write_release(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  -- A level with 0 ms left is still there, and the lock must be no sooner gone than it: a PEXPIRE
  -- of 0 would delete it.
  for reader_ms = 0, 2 do
    it(('lets a reader go on that has %d ms left'):format(reader_ms), function()
      world = helper.mock_world() -- the clock of a server cannot be stopped there
      helper.fill(world, rw.keys('write', 90000, { [ann] = 1, ['lk-ann:2'] = { 30000 } }))
      world:advance(30000 - reader_ms)

      assert.reply({ 1, 0 }, rw.write_release(world, ann))

      assert.left(world, { job = helper.hash({ mode = 'read', ['lk-ann:2'] = '1' },
        math.max(reader_ms, 1)),
        [rw.level('lk-ann:2', 1)] = helper.string('1', reader_ms) }, rw.told('1'))
    end)
  end
end)
