-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('lock/transfer', function()
  local ann, bob, cyd = 'lk-ann:1', 'lk-bob:1', 'lk-cyd:1'
  local channel = 'redisson_lock__channel:{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function transfer(owner, new_owner, lease)
    return world:eval('lock/transfer', { 'job' }, { lease or 30000, owner, new_owner })
  end

  it('gives the lock to the new owner for the lease, and tells nobody', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 10000) })

    assert.reply({ 1 }, transfer(ann, bob, 30000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('gives the new owner one level, however many the old one had', function()
    helper.fill(world, { job = hash({ [ann] = '3' }, 30000) })

    assert.reply({ 1 }, transfer(ann, bob))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('starts a lease of its own, also a shorter one', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 60000) })

    assert.reply({ 1 }, transfer(ann, bob, 30000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('gives a lease to a hold that had none', function()
    helper.fill(world, { job = hash({ [ann] = '1' }) })

    assert.reply({ 1 }, transfer(ann, bob, 30000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('leaves other fields as they are', function()
    helper.fill(world, { job = hash({ [ann] = '1', note = 'kept' }, 30000) })

    assert.reply({ 1 }, transfer(ann, bob))

    assert.left(world, { job = hash({ [bob] = '1', note = 'kept' }, 30000) })
  end)

  describe('that ran before', function()
    before_each(function()
      helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
      transfer(ann, bob, 30000)
    end)

    it('finds the new owner holding, and extends the lease', function()
      assert.reply({ 1 }, transfer(ann, bob, 60000))

      assert.left(world, { job = hash({ [bob] = '1' }, 60000) })
    end)

    it('finds the new owner holding, and extends the lease to the greatest there can be', function()
      assert.reply({ 1 }, transfer(ann, bob, 86400000))

      assert.left(world, { job = hash({ [bob] = '1' }, 86400000) })
    end)

    it('leaves the levels and the longer lease that the new owner took', function()
      world:eval('lock/acquire', { 'job' }, { 90000, bob, 2 })

      assert.reply({ 1 }, transfer(ann, bob, 30000))

      assert.left(world, { job = hash({ [bob] = '2' }, 90000) })
    end)

    it('finds nothing when the new owner has released', function()
      world:eval('lock/release', { 'job' }, { 30000, bob, 0, channel, 'PUBLISH' })
      world:messages()

      assert.reply({ -1 }, transfer(ann, bob))

      assert.left(world, {})
    end)

    it('does nothing when the new owner has handed the lock on', function()
      transfer(bob, cyd, 60000)

      assert.reply({ -1 }, transfer(ann, bob))

      assert.left(world, { job = hash({ [cyd] = '1' }, 60000) })
    end)

    it('leaves the old owner without the lock', function()
      assert.reply({ -1 }, world:eval('lock/release', { 'job' },
        { 30000, ann, 0, channel, 'PUBLISH' }))
      assert.reply({ 0, about(30000) }, world:eval('lock/acquire', { 'job' }, { 30000, ann, 1 }))
      assert.reply({ -1 }, world:eval('lock/acquire', { 'job' }, { 30000, ann, 2 }))

      assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
    end)
  end)

  it('takes nothing when the lease of the holder has ended', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:advance(30001)

    assert.reply({ -1 }, transfer(ann, bob))

    assert.left(world, {})
  end)

  it('takes nothing from a third owner', function()
    helper.fill(world, { job = hash({ [cyd] = '2' }, 30000) })

    assert.reply({ -1 }, transfer(ann, bob, 60000))

    assert.left(world, { job = hash({ [cyd] = '2' }, 30000) })
  end)

  it('that runs late takes nothing from a new hold of the same client', function()
    helper.fill(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })

    assert.reply({ -1 }, transfer(ann, bob, 60000))

    assert.left(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })
  end)

  it('refuses a transfer of a hold to itself', function()
    helper.fill(world, { job = hash({ [ann] = '2' }, 30000) })

    assert.refused('LKARG', 'new_owner', transfer(ann, ann))

    assert.left(world, { job = hash({ [ann] = '2' }, 30000) })
  end)

  it('keeps the lock held on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:set_oom(true)

    assert.reply({ 1 }, transfer(ann, bob))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)
end)
