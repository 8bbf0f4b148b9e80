-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local permit = require('support.permit')

describe('permit/release', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function release(ids, publish)
    return world:eval('permit/release', permit.KEYS,
      { permit.CHANNEL, publish or 'PUBLISH', unpack(ids) })
  end

  it('gives the permits back, and tells how many are free', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 }, { 2, 30000 }, { 3, 30000 } }))

    assert.reply({ 1 }, release(permit.ids(1, 2)))

    assert.left(world, permit.keys(3, { { 3, 30000 } }), permit.told('3'))
  end)

  it('tells great numbers by their digits', function()
    helper.fill(world, permit.keys(1999999999, { { 1, 30000 } }))

    assert.reply({ 1 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(2000000000), permit.told('2000000000'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }))

    assert.reply({ 1 }, release({ permit.id(1) }, 'SPUBLISH'))

    assert.left(world, permit.keys(1), permit.told('1', 'SPUBLISH'))
  end)

  it('gives back what Redisson keeps for ever', function()
    helper.fill(world, permit.keys(0, { { 1, permit.NEVER } }))

    assert.reply({ 1 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(1), permit.told('1'))
  end)

  it('keeps the life that the permits have', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }, 90000))

    assert.reply({ 1 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(1, {}, 90000), permit.told('1'))
  end)

  it('gives back once when the call runs twice', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }))
    release({ permit.id(1) })

    assert.reply({ -1, 0 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(1), permit.told('1'))
  end)

  it('counts an id that is there twice once', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 }, { 2, 30000 } }))

    assert.reply({ -1, 1 }, release({ permit.id(1), permit.id(1) }))

    assert.left(world, permit.keys(1, { { 2, 30000 } }), permit.told('1'))
  end)

  it('gives back what is left where others were lost', function()
    helper.fill(world, permit.keys(0, { { 2, 30000 }, { 9, 30000 } }))

    assert.reply({ -1, 1 }, release(permit.ids(1, 3)))

    assert.left(world, permit.keys(1, { { 9, 30000 } }), permit.told('1'))
  end)

  it('says how many it gave back where they are more than nine', function()
    local held = {}
    for number = 1, 12 do
      held[number] = { number, 30000 }
    end
    helper.fill(world, permit.keys(0, held))

    assert.reply({ -1, 12 }, release(permit.ids(1, 13)))

    assert.left(world, permit.keys(12), permit.told('12'))
  end)

  it('frees what has ended but nobody has taken, and says that it was lost', function()
    helper.fill(world, permit.keys(0, { { 1, -1000 }, { 2, 30000 } }))

    assert.reply({ -1, 1 }, release(permit.ids(1, 2)))

    assert.left(world, permit.keys(2), permit.told('2'))
  end)

  it('finds nothing, and tells nobody', function()
    helper.fill(world, permit.keys(2))

    assert.reply({ -1, 0 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(2))
  end)

  for _, free in ipairs({ -1, 0 }) do
    it(('tells nobody while %d are free'):format(free), function()
      helper.fill(world, permit.keys(free - 1, { { 1, 30000 } }))

      assert.reply({ 1 }, release({ permit.id(1) }))

      assert.left(world, permit.keys(free))
    end)
  end

  it('makes no permits where the total is gone', function()
    helper.fill(world, permit.keys(nil, { { 1, 30000 }, { 2, 30000 } }))

    assert.reply({ 1 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(nil, { { 2, 30000 } }))
  end)

  it('refuses what is no number, and writes nothing', function()
    local before = permit.keys(nil, { { 1, 30000 } })
    before.job = helper.string('x')
    helper.fill(world, before)

    assert.refused('LKARG', 'must hold an integer', release({ permit.id(1) }))

    assert.left(world, before)
  end)

  it('refuses leases of another type, and writes nothing', function()
    local before = permit.keys(1)
    before[permit.KEYS[2]] = helper.hash({ x = '1' })
    helper.fill(world, before)

    assert.refused('WRONGTYPE', 'wrong kind', release({ permit.id(1) }))

    assert.left(world, before)
  end)

  it('refuses a short id anywhere, and gives nothing back', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }))

    assert.refused('LKARG', 'ids', release({ permit.id(1), 'short' }))

    assert.left(world, permit.keys(0, { { 1, 30000 } }))
  end)

  it('gives back on a full server', function()
    helper.fill(world, permit.keys(0, { { 1, 30000 } }))
    world:set_oom(true)

    assert.reply({ 1 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(1), permit.told('1'))
  end)

  it('counts a lease that ends now as ended', function()
    helper.fill(world, permit.keys(0, { { 1, 0 } }))

    assert.reply({ -1, 0 }, release({ permit.id(1) }))

    assert.left(world, permit.keys(1), permit.told('1'))
  end)
end)
