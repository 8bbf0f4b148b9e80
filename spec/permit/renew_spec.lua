-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local permit = require('support.permit')

describe('permit/renew', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function renew(ids, lease)
    return world:eval('permit/renew', { permit.KEYS[2] }, { lease or 60000, unpack(ids) })
  end

  it('extends the leases', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 }, { 2, 45000 } }))

    assert.reply({ 1 }, renew(permit.ids(1, 2)))

    assert.left(world, permit.keys(1, { { 1, 60000 }, { 2, 60000 } }))
  end)

  it('shortens no lease', function()
    local before = permit.keys(1, { { 1, 90000 }, { 2, permit.NEVER } })
    helper.fill(world, before)

    assert.reply({ 1 }, renew(permit.ids(1, 2)))

    assert.left(world, before)
  end)

  it('leaves the permits of others as they are', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 }, { 2, 30000 } }))

    assert.reply({ 1 }, renew({ permit.id(2) }))

    assert.left(world, permit.keys(1, { { 1, 30000 }, { 2, 60000 } }))
  end)

  it('says which are lost, and renews the others', function()
    helper.fill(world, permit.keys(1, { { 2, 30000 } }))

    assert.reply({ -1, 1, 3 }, renew(permit.ids(1, 3)))

    assert.left(world, permit.keys(1, { { 2, 60000 } }))
  end)

  it('does not bring back a lease that has ended', function()
    helper.fill(world, permit.keys(1, { { 1, -1000 } }))

    assert.reply({ -1, 1 }, renew({ permit.id(1) }))

    assert.left(world, permit.keys(1, { { 1, -1000 } }))
  end)

  it('that runs after the release finds nothing', function()
    helper.fill(world, permit.keys(1))

    assert.reply({ -1, 1 }, renew({ permit.id(1) }))

    assert.left(world, permit.keys(1))
  end)

  it('renews on a full server', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 } }))
    world:set_oom(true)

    assert.reply({ 1 }, renew({ permit.id(1) }))

    assert.left(world, permit.keys(1, { { 1, 60000 } }))
  end)

  it('refuses a short id anywhere, and renews none', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 } }))

    assert.refused('LKARG', 'ids', renew({ permit.id(1), 'short' }))

    assert.left(world, permit.keys(1, { { 1, 30000 } }))
  end)

  it('does not renew a lease that ends now', function()
    helper.fill(world, permit.keys(1, { { 1, 0 } }))

    assert.reply({ -1, 1 }, renew({ permit.id(1) }))

    assert.left(world, permit.keys(1, { { 1, 0 } }))
  end)
end)
