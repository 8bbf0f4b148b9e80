-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, string_ = helper.about, helper.string

describe('semaphore/inspect', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function inspect()
    return world:eval('semaphore/inspect', { 'job' }, {})
  end

  it('says that the semaphore is not set', function()
    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('says how many are free, and what is left of its life', function()
    helper.fill(world, { job = string_('3', 90000) })

    assert.reply({ 1, about(90000), 3 }, inspect())

    assert.left(world, { job = string_('3', 90000) })
  end)

  it('says -1 for a life without end, and how many too many were taken away', function()
    helper.fill(world, { job = string_('-2') })

    assert.reply({ 1, -1, -2 }, inspect())

    assert.left(world, { job = string_('-2') })
  end)

  it('says that the key is no semaphore', function()
    helper.fill(world, { job = string_('lk-ann:1', 90000) })

    assert.reply({ -1 }, inspect())

    assert.left(world, { job = string_('lk-ann:1', 90000) })
  end)
end)
