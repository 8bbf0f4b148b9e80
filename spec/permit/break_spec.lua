-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local permit = require('support.permit')

describe('permit/break', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function break_(ids, publish)
    return world:eval('permit/break', permit.KEYS,
      { permit.CHANNEL, publish or 'PUBLISH', unpack(ids) })
  end

  it('frees the permits, and tells how many are free', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 }, { 2, 30000 }, { 3, permit.NEVER } }))

    assert.reply({ 1, 2 }, break_({ permit.id(1), permit.id(3) }))

    assert.left(world, permit.keys(2, { { 2, 30000 } }), permit.told('2'))
  end)

  it('tells great numbers by their digits', function()
    helper.fill(world, permit.keys(1999999999, { { 1, 30000 } }))

    assert.reply({ 1, 1 }, break_({ permit.id(1) }))

    assert.left(world, permit.keys(2000000000), permit.told('2000000000'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }))

    assert.reply({ 1, 1 }, break_({ permit.id(1) }, 'SPUBLISH'))

    assert.left(world, permit.keys(1), permit.told('1', 'SPUBLISH'))
  end)

  it('says how many of the permits it found', function()
    helper.fill(world, permit.keys(0, { { 2, -1000 }, { 9, 30000 } }))

    assert.reply({ 1, 1 }, break_(permit.ids(1, 3)))

    assert.left(world, permit.keys(1, { { 9, 30000 } }), permit.told('1'))
  end)

  it('frees more than nine, and says how many', function()
    local held = {}
    for number = 1, 13 do
      held[number] = { number, 30000 }
    end
    helper.fill(world, permit.keys(0, held))

    assert.reply({ 1, 12 }, break_(permit.ids(1, 12)))

    assert.left(world, permit.keys(12, { { 13, 30000 } }), permit.told('12'))
  end)

  it('finds nothing when the call runs twice, or late', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 }, { 2, 30000 } }))
    break_({ permit.id(1) })

    assert.reply({ 0 }, break_({ permit.id(1) }))

    assert.left(world, permit.keys(1, { { 2, 30000 } }), permit.told('1'))
  end)

  it('tells nobody while none is free', function()
    helper.fill(world, permit.keys(-1, { { 1, 30000 } }))

    assert.reply({ 1, 1 }, break_({ permit.id(1) }))

    assert.left(world, permit.keys(0))
  end)

  it('makes no permits where the total is gone', function()
    helper.fill(world, permit.keys(nil, { { 1, 30000 } }))

    assert.reply({ 1, 1 }, break_({ permit.id(1) }))

    assert.left(world, {})
  end)

  it('refuses what is no number, and writes nothing', function()
    local before = permit.keys(nil, { { 1, 30000 } })
    before.job = helper.string('x')
    helper.fill(world, before)

    assert.refused('LKARG', 'must hold an integer', break_({ permit.id(1) }))

    assert.left(world, before)
  end)

  it('refuses leases of another type, and writes nothing', function()
    local before = permit.keys(1)
    before[permit.KEYS[2]] = helper.hash({ x = '1' })
    helper.fill(world, before)

    assert.refused('WRONGTYPE', 'wrong kind', break_({ permit.id(1) }))

    assert.left(world, before)
  end)

  it('frees on a full server', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }))
    world:set_oom(true)

    assert.reply({ 1, 1 }, break_({ permit.id(1) }))

    assert.left(world, permit.keys(1), permit.told('1'))
  end)
end)
