-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('fair/renew', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function renew(owner, lease)
    return world:eval('fair/renew', { 'job' }, { lease, owner })
  end

  it('extends the lease of the holder', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:advance(15000)

    assert.reply({ 1 }, renew(ann, 30000))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000) })
  end)

  it('never shortens the lease', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 60000) })

    assert.reply({ 1 }, renew(ann, 30000))

    assert.left(world, { job = hash({ [ann] = '1' }, 60000) })
  end)

  it('leaves the hold count and other fields as they are', function()
    helper.fill(world, { job = hash({ [ann] = '3', note = 'kept' }, 30000) })

    assert.reply({ 1 }, renew(ann, 60000))

    assert.left(world, { job = hash({ [ann] = '3', note = 'kept' }, 60000) })
  end)

  it('does not end a hold that has no lease', function()
    helper.fill(world, { job = hash({ [ann] = '1' }) })

    assert.reply({ 1 }, renew(ann, 30000))

    assert.left(world, { job = hash({ [ann] = '1' }) })
  end)

  it('says that the lease has ended', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:advance(30001)

    assert.reply({ -1, -2 }, renew(ann, 30000))

    assert.left(world, {})
  end)

  it('says how long the lease of another holder lasts, and does not extend it', function()
    helper.fill(world, { job = hash({ [bob] = '1' }, 30000) })

    assert.reply({ -1, about(30000) }, renew(ann, 60000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('says -1 when the lock of another holder has no lease', function()
    helper.fill(world, { job = hash({ [bob] = '1' }) })

    assert.reply({ -1, -1 }, renew(ann, 60000))

    assert.left(world, { job = hash({ [bob] = '1' }) })
  end)

  it('that runs late does nothing to a new hold of the same client', function()
    helper.fill(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })

    assert.reply({ -1, about(30000) }, renew(ann, 60000))

    assert.left(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })
  end)

  it('keeps the lock on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:set_oom(true)

    assert.reply({ 1 }, renew(ann, 60000))

    assert.left(world, { job = hash({ [ann] = '1' }, 60000) })
  end)
end)
