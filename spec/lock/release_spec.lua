-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash = helper.hash

describe('lock/release', function()
  local ann, bob, channel = 'lk-ann:1', 'lk-bob:1', 'redisson_lock__channel:{job}'
  local told = { { verb = 'PUBLISH', channel = channel, message = '0' } }
  local world

  before_each(function()
    world = helper.world()
  end)

  local function release(owner, hold, lease, publish)
    return world:eval('lock/release', { 'job' },
      { lease or 30000, owner, hold, channel, publish or 'PUBLISH' })
  end

  it('frees the lock with the last level and tells the channel', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told)
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })

    assert.reply({ 1, 0 }, release(ann, 0, 30000, 'SPUBLISH'))

    assert.left(world, {}, { { verb = 'SPUBLISH', channel = channel, message = '0' } })
  end)

  it('frees the lock whatever its count says', function()
    helper.fill(world, { job = hash({ [ann] = '5' }, 30000) })

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told)
  end)

  it('frees the lock with all its fields', function()
    helper.fill(world, { job = hash({ [ann] = '1', note = 'gone' }, 30000) })

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told)
  end)

  it('frees a lock that has no lease', function()
    helper.fill(world, { job = hash({ [ann] = '1' }) })

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told)
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    release(ann, 0)

    assert.reply({ -1 }, release(ann, 0))

    assert.left(world, {}, told)
  end)

  it('finds nothing when nobody holds the lock', function()
    assert.reply({ -1 }, release(ann, 0))

    assert.left(world, {})
  end)

  it('finds nothing when the lease has ended', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:advance(30001)

    assert.reply({ -1 }, release(ann, 0))

    assert.left(world, {})
  end)

  it('does nothing to the lock of another owner', function()
    helper.fill(world, { job = hash({ [bob] = '1' }, 30000) })

    assert.reply({ -1 }, release(ann, 0))
    assert.reply({ -1 }, release(ann, 1, 60000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('that runs late does nothing to a new hold of the same client', function()
    helper.fill(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })

    assert.reply({ -1 }, release(ann, 0))

    assert.left(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })
  end)

  describe('of one level of several', function()
    it('sets the count that remains and tells nobody', function()
      helper.fill(world, { job = hash({ [ann] = '3' }, 30000) })

      assert.reply({ 1, 2 }, release(ann, 2))

      assert.left(world, { job = hash({ [ann] = '2' }, 30000) })
    end)

    it('counts once when the call runs twice', function()
      helper.fill(world, { job = hash({ [ann] = '3' }, 30000) })
      release(ann, 2)

      assert.reply({ 1, 2 }, release(ann, 2))

      assert.left(world, { job = hash({ [ann] = '2' }, 30000) })
    end)

    it('extends the lease to the one given', function()
      helper.fill(world, { job = hash({ [ann] = '2' }, 30000) })

      assert.reply({ 1, 1 }, release(ann, 1, 60000))

      assert.left(world, { job = hash({ [ann] = '1' }, 60000) })
    end)

    it('does not shorten the lease', function()
      helper.fill(world, { job = hash({ [ann] = '2' }, 60000) })

      assert.reply({ 1, 1 }, release(ann, 1, 50))

      assert.left(world, { job = hash({ [ann] = '1' }, 60000) })
    end)

    it('leaves other fields as they are', function()
      helper.fill(world, { job = hash({ [ann] = '2', note = 'kept' }, 30000) })

      assert.reply({ 1, 1 }, release(ann, 1))

      assert.left(world, { job = hash({ [ann] = '1', note = 'kept' }, 30000) })
    end)

    it('finds nothing when the lock was lost', function()
      assert.reply({ -1 }, release(ann, 1))

      assert.left(world, {})
    end)
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:set_oom(true)

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told)
  end)
end)
