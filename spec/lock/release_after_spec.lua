-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('lock/release_after', function()
  local ann, later, bob = 'lk-ann:1', 'lk-ann:1:kept', 'lk-bob:1'
  local channel = 'redisson_lock__channel:{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function release_after(owner, rest, publish)
    return world:eval('lock/release_after', { 'job' },
      { rest or 20000, owner, owner .. ':kept', channel, publish or 'PUBLISH' })
  end

  local function told(publish)
    return { { verb = publish or 'PUBLISH', channel = channel, message = '0' } }
  end

  it('keeps the lock for the rest under the other name, and tells those who wait', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })

    assert.reply({ 1 }, release_after(ann))

    assert.left(world, { job = hash({ [later] = '1' }, 20000) }, told())
  end)

  it('makes a lease longer as well', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })

    assert.reply({ 1 }, release_after(ann, 90000))

    assert.left(world, { job = hash({ [later] = '1' }, 90000) }, told())
  end)

  it('gives back all levels, and leaves other fields', function()
    helper.fill(world, { job = hash({ [ann] = '3', note = 'kept' }) })

    assert.reply({ 1 }, release_after(ann))

    assert.left(world, { job = hash({ [later] = '1', note = 'kept' }, 20000) }, told())
  end)

  it('leaves one level to the other name, whatever it had', function()
    helper.fill(world, { job = hash({ [ann] = '1', [later] = '3' }, 50000) })

    assert.reply({ 1 }, release_after(ann))

    assert.left(world, { job = hash({ [later] = '1' }, 20000) }, told())
  end)

  it('answers a copy alike, and makes the rest no longer', function()
    helper.fill(world, { job = hash({ [later] = '1' }, 8000) })

    assert.reply({ 1 }, release_after(ann, 60000))

    assert.left(world, { job = hash({ [later] = '1' }, 8000) })
  end)

  it('frees the lock when the rest is over', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })
    release_after(ann)
    world:messages()

    world:advance(20001)

    assert.left(world, {})
    assert.reply({ 1, 1 }, world:eval('lock/acquire', { 'job' }, { 30000, bob, 1 }))
  end)

  it('refuses whoever does not hold the lock', function()
    helper.fill(world, { job = hash({ [bob] = '1' }, 50000) })

    assert.reply({ -1 }, release_after(ann))

    assert.left(world, { job = hash({ [bob] = '1' }, 50000) })
  end)

  it('says that the lock was lost', function()
    assert.reply({ -1 }, release_after(ann))

    assert.left(world, {})
  end)

  it('takes the lock from a renewal that is still on its way', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })
    release_after(ann)
    world:messages()

    assert.reply({ -1, about(20000) }, world:eval('lock/renew', { 'job' }, { 60000, ann }))

    assert.left(world, { job = hash({ [later] = '1' }, 20000) })
  end)

  it('tells by a sharded channel where it is to', function()
    helper.listen(world, channel)
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })

    assert.reply({ 1 }, release_after(ann, 20000, 'SPUBLISH'))

    assert.left(world, { job = hash({ [later] = '1' }, 20000) }, told('SPUBLISH'))
  end)

  it('refuses the same name twice', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })

    assert.refused('LKARG', 'new_owner', world:eval('lock/release_after', { 'job' },
      { 20000, ann, ann, channel, 'PUBLISH' }))

    assert.left(world, { job = hash({ [ann] = '1' }, 50000) })
  end)

  it('gives back on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 50000) })
    world:set_oom(true)

    assert.reply({ 1 }, release_after(ann))

    assert.left(world, { job = hash({ [later] = '1' }, 20000) }, told())
  end)
end)
