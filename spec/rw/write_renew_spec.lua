-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('rw/write_renew', function()
  local ann, bob = 'lk-ann:1:write', 'lk-bob:1:write'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('extends the lease', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 2 }))

    assert.reply({ 1 }, rw.write_renew(world, ann, 60000))

    assert.left(world, rw.keys('write', 60000, { [ann] = 2 }))
  end)

  it('does not shorten the lease', function()
    helper.fill(world, rw.keys('write', 60000, { [ann] = 1 }))

    assert.reply({ 1 }, rw.write_renew(world, ann, 30000))

    assert.left(world, rw.keys('write', 60000, { [ann] = 1 }))
  end)

  it('leaves what the same caller reads to end', function()
    helper.fill(world, rw.keys('write', 30000, { [ann] = 1, ['lk-ann:2'] = { 15000 } }))

    assert.reply({ 1 }, rw.write_renew(world, ann, 60000))

    assert.left(world, rw.keys('write', 60000, { [ann] = 1, ['lk-ann:2'] = { 15000 } }))
  end)

  it('refuses when nobody holds the lock', function()
    assert.reply({ -1, -2 }, rw.write_renew(world, ann))

    assert.left(world, {})
  end)

  it('refuses when another writer holds the lock', function()
    helper.fill(world, rw.keys('write', 30000, { [bob] = 1 }))

    assert.reply({ -1, about(30000) }, rw.write_renew(world, ann))

    assert.left(world, rw.keys('write', 30000, { [bob] = 1 }))
  end)

  it('refuses when readers hold the lock', function()
    helper.fill(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } }))

    assert.reply({ -1, about(30000) }, rw.write_renew(world, ann))

    assert.left(world, rw.keys('read', 30000, { ['lk-ann:2'] = { 30000 } }))
  end)
end)
