-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, string_ = helper.about, helper.string

describe('countdown/inspect', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function inspect()
    return world:eval('countdown/inspect', { 'job' }, {})
  end

  it('says that the latch is open', function()
    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('says that a latch at 0 is open', function()
    helper.fill(world, { job = string_('0') })

    assert.reply({ 0 }, inspect())

    assert.left(world, { job = string_('0') })
  end)

  it('says how many are left, and when it opens by itself', function()
    helper.fill(world, { job = string_('3', 90000) })

    assert.reply({ 1, about(90000), 3 }, inspect())

    assert.left(world, { job = string_('3', 90000) })
  end)

  it('says how many are left where they are more than nine', function()
    helper.fill(world, { job = string_('23', 90000) })

    assert.reply({ 1, about(90000), 23 }, inspect())

    assert.left(world, { job = string_('23', 90000) })
  end)

  it('says -1 where it never opens by itself', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, -1, 3 }, inspect())

    assert.left(world, { job = string_('3') })
  end)

  it('says that it is open when its life has ended', function()
    helper.fill(world, { job = string_('3', 30000) })
    world:advance(30001)

    assert.reply({ 0 }, inspect())
  end)

  it('says that the key is no latch', function()
    helper.fill(world, { job = string_('lk-ann:1') })

    assert.reply({ -1 }, inspect())

    assert.left(world, { job = string_('lk-ann:1') })
  end)

  it('says that the last one is left', function()
    helper.fill(world, { job = string_('1', 90000) })

    assert.reply({ 1, about(90000), 1 }, inspect())

    assert.left(world, { job = string_('1', 90000) })
  end)
end)
