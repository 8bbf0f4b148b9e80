-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')

describe('rw/break', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('frees the lock of a reader with all its levels, and tells the channel', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, 30000 } }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('frees the lock of a writer, and wakes all who wait', function()
    helper.fill(world, rw.keys('write', nil, { [eve] = 7 }))

    assert.reply({ 1 }, rw.break_(world, eve))

    assert.left(world, {}, rw.told('1'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

    assert.reply({ 1 }, rw.break_(world, eve, 'SPUBLISH'))

    assert.left(world, {}, rw.told('1', 'SPUBLISH'))
  end)

  it('breaks one of several readers, and tells nobody', function()
    helper.fill(world, rw.keys('read', 90000, { [redisson] = { 90000, 30000 }, [bob] = { 60000 } }))

    assert.reply({ 1 }, rw.break_(world, redisson))

    assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 } }))
  end)

  it('drops other readers whose holds are over', function()
    helper.fill(world, rw.keys('read', 90000,
      { [ann] = { 90000 }, [bob] = { 60000 }, [redisson] = 3 }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 } }))
  end)

  it('breaks a reader whose hold is over', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = 2 }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('breaks the reading of a writer, which goes on writing for its lease', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('write', 60000, { [eve] = 1 }))
  end)

  it('breaks the writing of a writer, which goes on reading', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))

    assert.reply({ 1 }, rw.break_(world, eve))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }), rw.told('1'))
  end)

  it('leaves the lock to readers of more than 2000 fields and levels', function()
    helper.fill(world, rw.keys('read', nil, { [ann] = { 30000 }, [redisson] = 2000 }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', nil, { [redisson] = 2000 }))
  end)

  it('says that nobody holds the lock, and tells nobody', function()
    assert.reply({ 0 }, rw.break_(world, ann))

    assert.left(world, {})
  end)

  it('refuses when others hold the lock by now', function()
    helper.fill(world, rw.keys('read', 30000, { [bob] = { 30000 } }))

    assert.reply({ -1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', 30000, { [bob] = { 30000 } }))
  end)

  it('refuses a lock of another kind', function()
    local before = { job = helper.hash({ [ann] = '1' }, 30000) }
    helper.fill(world, before)

    assert.reply({ -1 }, rw.break_(world, ann))

    assert.left(world, before)
  end)

  it('takes the mode for nobody\'s name', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

    assert.refused('LKARG', 'owner', rw.break_(world, 'mode'))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    rw.break_(world, ann)

    assert.reply({ 0 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    world:set_oom(true)

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)
end)
