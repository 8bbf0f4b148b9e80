-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local permit = require('support.permit')
local about = helper.about

describe('permit/inspect', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function inspect()
    return world:eval('permit/inspect', permit.KEYS, {})
  end

  it('says that no total is set', function()
    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('says how many are free where none is held', function()
    helper.fill(world, permit.keys(3, {}, 90000))

    assert.reply({ 1, about(90000), 3, 0 }, inspect())

    assert.left(world, permit.keys(3, {}, 90000))
  end)

  it('names the held ones with what is left of their leases, the first to end first', function()
    local before = permit.keys(-1, { { 4, -1000 }, { 2, 30000 }, { 1, 60000 },
      { 3, permit.NEVER } })
    helper.fill(world, before)

    assert.reply({ 1, -1, -1, 4, permit.id(4), 0, permit.id(2), about(30000), permit.id(1),
      about(60000), permit.id(3), -1 }, inspect())

    assert.left(world, before)
  end)

  it('names the first hundred of many', function()
    helper.fill(world, permit.keys(0))
    permit.fill_ended(world, 2000)

    local reply = inspect()

    assert.equal(4 + 2 * 100, reply.n)
    assert.same({ 1, -1, 0, 2000, permit.id(1), 0 }, { unpack(reply, 1, 6) })
  end)

  it('says that the key is none of permits', function()
    helper.fill(world, { job = helper.string('lk-ann:1') })

    assert.reply({ -1 }, inspect())

    assert.left(world, { job = helper.string('lk-ann:1') })
  end)
end)
