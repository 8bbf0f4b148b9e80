-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('semaphore/drain', function()
  local record = recorded.key('lk-ann')
  local world

  before_each(function()
    world = helper.world()
  end)

  local function drain()
    return world:eval('semaphore/drain', { 'job', record }, { 'lk-ann', 1 })
  end

  it('takes all that are free, and tells nobody', function()
    helper.fill(world, { job = string_('5') })

    assert.reply({ 1, 5 }, drain())

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 5) })
  end)

  it('takes great numbers by their digits', function()
    helper.fill(world, { job = string_('2000000001') })

    assert.reply({ 1, 2000000001 }, drain())

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 2000000001) })
  end)

  it('keeps the life that the semaphore has', function()
    helper.fill(world, { job = string_('5', 90000) })

    assert.reply({ 1, 5 }, drain())

    assert.left(world, { job = string_('0', 90000), [record] = recorded.record(1, 1, 5) })
  end)

  for _, value in ipairs({ '0', '-2' }) do
    it(('takes none of %s'):format(value), function()
      helper.fill(world, { job = string_(value) })

      assert.reply({ 1, 0 }, drain())

      assert.left(world, { job = string_(value), [record] = recorded.record(1, 1, 0) })
    end)
  end

  it('takes none of a semaphore that is not set, and sets nothing', function()
    assert.reply({ 1, 0 }, drain())

    assert.left(world, { [record] = recorded.record(1, 1, 0) })
  end)

  it('takes nothing from a full server', function()
    helper.fill(world, { job = string_('5') })
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', drain())

    assert.left(world, { job = string_('5') })
  end)

  local function arguments(caller, seq)
    return { caller, seq }
  end

  for _, case in ipairs(recorded.cases('semaphore/drain', { job = string_('5') }, arguments)) do
    it(case[1], case[2])
  end

  it('takes the last one', function()
    helper.fill(world, { job = string_('1') })

    assert.reply({ 1, 1 }, drain())

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 1) })
  end)
end)
