-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local text = helper.string

describe('mutex/break', function()
  local ann, bob, channel = 'lk-ann:1', 'lk-bob:1', 'latchkey_mutex:{job}'
  local told = { { verb = 'PUBLISH', channel = channel, message = '0' } }
  local world

  before_each(function()
    world = helper.world()
  end)

  local function break_(owner, publish)
    return world:eval('mutex/break', { 'job' }, { owner, channel, publish or 'PUBLISH' })
  end

  it('frees the lock of the owner that is named, and tells the channel', function()
    helper.fill(world, { job = text(ann, 30000) })

    assert.reply({ 1 }, break_(ann))

    assert.left(world, {}, told)
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = text(ann, 30000) })

    assert.reply({ 1 }, break_(ann, 'SPUBLISH'))

    assert.left(world, {}, { { verb = 'SPUBLISH', channel = channel, message = '0' } })
  end)

  it('frees a lock that has no lease', function()
    helper.fill(world, { job = text(ann) })

    assert.reply({ 1 }, break_(ann))

    assert.left(world, {}, told)
  end)

  it('says that nobody holds the lock, and tells nobody', function()
    assert.reply({ 0 }, break_(ann))

    assert.left(world, {})
  end)

  it('refuses when another owner holds the lock by now', function()
    helper.fill(world, { job = text(bob, 30000) })

    assert.reply({ -1 }, break_(ann))

    assert.left(world, { job = text(bob, 30000) })
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, { job = text(ann, 30000) })
    break_(ann)

    assert.reply({ 0 }, break_(ann))

    assert.left(world, {}, told)
  end)

  it('that runs late does nothing to a new hold of the same client', function()
    helper.fill(world, { job = text('lk-ann:2', 30000) })

    assert.reply({ -1 }, break_(ann))

    assert.left(world, { job = text('lk-ann:2', 30000) })
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, { job = text(ann, 30000) })
    world:set_oom(true)

    assert.reply({ 1 }, break_(ann))

    assert.left(world, {}, told)
  end)
end)
