-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash = helper.hash

describe('lock/break', function()
  local ann, bob, channel = 'lk-ann:1', 'lk-bob:1', 'redisson_lock__channel:{job}'
  local told = { { verb = 'PUBLISH', channel = channel, message = '0' } }
  local world

  before_each(function()
    world = helper.world()
  end)

  local function break_(owner, publish)
    return world:eval('lock/break', { 'job' }, { owner, channel, publish or 'PUBLISH' })
  end

  it('frees the lock of the owner that is named, and tells the channel', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })

    assert.reply({ 1 }, break_(ann))

    assert.left(world, {}, told)
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })

    assert.reply({ 1 }, break_(ann, 'SPUBLISH'))

    assert.left(world, {}, { { verb = 'SPUBLISH', channel = channel, message = '0' } })
  end)

  it('frees a lock of any count, without a lease and with further fields', function()
    helper.fill(world, { job = hash({ [ann] = '7', note = 'gone' }) })

    assert.reply({ 1 }, break_(ann))

    assert.left(world, {}, told)
  end)

  it('says that nobody holds the lock, and tells nobody', function()
    assert.reply({ 0 }, break_(ann))

    assert.left(world, {})
  end)

  it('refuses when another owner holds the lock by now', function()
    helper.fill(world, { job = hash({ [bob] = '1' }, 30000) })

    assert.reply({ -1 }, break_(ann))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000) })
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    break_(ann)

    assert.reply({ 0 }, break_(ann))

    assert.left(world, {}, told)
  end)

  it('that runs late does nothing to a new hold of the same client', function()
    helper.fill(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })

    assert.reply({ -1 }, break_(ann))

    assert.left(world, { job = hash({ ['lk-ann:2'] = '1' }, 30000) })
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:set_oom(true)

    assert.reply({ 1 }, break_(ann))

    assert.left(world, {}, told)
  end)
end)
