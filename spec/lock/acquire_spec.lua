-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('lock/acquire', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function acquire(owner, hold, lease)
    return world:eval('lock/acquire', { 'job' }, { lease or 30000, owner, hold })
  end

  it('takes a free lock for the lease', function()
    assert.reply({ 1, 1 }, acquire(ann, 1, 30000))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000) })
  end)

  for _, lease in ipairs({ 50, 86400000 }) do
    it(('takes a lease of %d ms'):format(lease), function()
      assert.reply({ 1, 1 }, acquire(ann, 1, lease))

      assert.left(world, { job = hash({ [ann] = '1' }, lease) })
    end)
  end

  it('refuses another owner and says how long the lease lasts', function()
    acquire(ann, 1, 30000)

    assert.reply({ 0, about(30000) }, acquire(bob, 1))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000) })
  end)

  it('says -1 when the lock of another owner has no lease', function()
    local before = { job = hash({ [bob] = '1' }) }
    helper.fill(world, before)

    assert.reply({ 0, -1 }, acquire(ann, 1))

    assert.left(world, before)
  end)

  it('refuses a hash whose fields are no owner, and leaves them', function()
    local before = { job = hash({ mode = 'read', [bob] = '2' }, 30000) }
    helper.fill(world, before)

    assert.reply({ 0, about(30000) }, acquire(ann, 1))

    assert.left(world, before)
  end)

  it('takes the lock when the lease of its holder has ended', function()
    acquire(ann, 1, 30000)
    world:advance(30001)

    assert.reply({ 1, 1 }, acquire(bob, 1, 60000))

    assert.left(world, { job = hash({ [bob] = '1' }, 60000) })
  end)

  it('keeps the locks of different names apart', function()
    acquire(ann, 1, 30000)

    assert.reply({ 1, 1 }, world:eval('lock/acquire', { 'other' }, { 60000, bob, 1 }))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000), other = hash({ [bob] = '1' }, 60000) })
  end)

  describe('by the holder', function()
    before_each(function()
      acquire(ann, 1, 30000)
    end)

    it('sets the hold count', function()
      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, { job = hash({ [ann] = '2' }, 30000) })
    end)

    it('counts once when the call runs twice', function()
      acquire(ann, 2)

      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, { job = hash({ [ann] = '2' }, 30000) })
    end)

    it('sets an older count when an older call runs late, and the next call mends it', function()
      acquire(ann, 2)

      assert.reply({ 1, 1 }, acquire(ann, 1))
      assert.reply({ 1, 3 }, acquire(ann, 3))

      assert.left(world, { job = hash({ [ann] = '3' }, 30000) })
    end)

    it('extends the lease to a longer one', function()
      assert.reply({ 1, 2 }, acquire(ann, 2, 90000))

      assert.left(world, { job = hash({ [ann] = '2' }, 90000) })
    end)

    it('does not shorten the lease to a shorter one', function()
      assert.reply({ 1, 2 }, acquire(ann, 2, 50))

      assert.left(world, { job = hash({ [ann] = '2' }, 30000) })
    end)

    it('leaves other fields as they are', function()
      world:command('HSET', 'job', 'note', 'kept')

      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, { job = hash({ [ann] = '2', note = 'kept' }, 30000) })
    end)
  end)

  it('does not end a hold that has no lease', function()
    helper.fill(world, { job = hash({ [ann] = '1' }) })

    assert.reply({ 1, 2 }, acquire(ann, 2, 30000))

    assert.left(world, { job = hash({ [ann] = '2' }) })
  end)

  describe('of a further level', function()
    it('takes nothing when the lock was lost and is free', function()
      acquire(ann, 1, 30000)
      world:advance(30001)

      assert.reply({ -1 }, acquire(ann, 2))

      assert.left(world, {})
    end)

    it('takes nothing when the lock was lost to another owner', function()
      acquire(bob, 1, 30000)

      assert.reply({ -1 }, acquire(ann, 2))

      assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
    end)
  end)

  it('that runs after the release leaves a stray that ends with its lease', function()
    acquire(ann, 1)
    world:eval('lock/release', { 'job' }, { 30000, ann, 0, 'redisson_lock__channel:{job}',
      'PUBLISH' })
    world:messages()

    assert.reply({ 1, 1 }, acquire(ann, 1, 30000))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000) })
    world:advance(30001)
    assert.left(world, {})
  end)

  it('takes nothing from a full server', function()
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', acquire(ann, 1, 30000))

    assert.left(world, {})
  end)
end)
