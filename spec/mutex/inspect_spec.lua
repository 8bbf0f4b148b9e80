-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, text = helper.about, helper.string

describe('mutex/inspect', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function inspect()
    return world:eval('mutex/inspect', { 'job' }, {})
  end

  it('says that nobody holds the lock', function()
    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('names the owner and the rest of its lease', function()
    helper.fill(world, { job = text('lk-ann:1', 30000) })

    assert.reply({ 1, about(30000), 'lk-ann:1' }, inspect())

    assert.left(world, { job = text('lk-ann:1', 30000) })
  end)

  it('says -1 for a lock that has no lease', function()
    helper.fill(world, { job = text('lk-ann:1') })

    assert.reply({ 1, -1, 'lk-ann:1' }, inspect())

    assert.left(world, { job = text('lk-ann:1') })
  end)

  it('gives the bytes of the owner as they are', function()
    helper.fill(world, { job = text('\0\1\r\n\255', 30000) })

    assert.reply({ 1, about(30000), '\0\1\r\n\255' }, inspect())

    assert.left(world, { job = text('\0\1\r\n\255', 30000) })
  end)

  it('says that a lock is free when its lease has ended', function()
    helper.fill(world, { job = text('lk-ann:1', 30000) })
    world:advance(30001)

    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('works on a full server and on a read-only replica', function()
    helper.fill(world, { job = text('lk-ann:1', 30000) })
    world:set_oom(true)
    world:set_readonly(true)

    assert.reply({ 1, about(30000), 'lk-ann:1' }, inspect())

    assert.left(world, { job = text('lk-ann:1', 30000) })
  end)
end)
