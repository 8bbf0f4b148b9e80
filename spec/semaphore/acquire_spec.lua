-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('semaphore/acquire', function()
  local record = recorded.key('lk-ann')
  local world

  before_each(function()
    world = helper.world()
  end)

  local function acquire(count, seq)
    return world:eval('semaphore/acquire', { 'job', record }, { count, 'lk-ann', seq or 1 })
  end

  it('takes as many as are asked for, and tells nobody', function()
    helper.fill(world, { job = string_('5') })

    assert.reply({ 1, 3 }, acquire(2))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) })
  end)

  it('takes the last ones', function()
    helper.fill(world, { job = string_('2') })

    assert.reply({ 1, 0 }, acquire(2))

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 0) })
  end)

  it('takes none where it cannot take all', function()
    helper.fill(world, { job = string_('2') })

    assert.reply({ 0, -1, 2 }, acquire(3))

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 0, -1, 2) })
  end)

  it('takes the greatest number there can be, and not of one less', function()
    helper.fill(world, { job = string_('2147483647') })

    assert.reply({ 1, 0 }, acquire('2147483647'))

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 0) })
    helper.fill(world, { job = string_('2147483646') })
    assert.reply({ 0, -1, 2147483646 }, acquire('2147483647', 2))
  end)

  it('takes none where more were taken away than were free', function()
    helper.fill(world, { job = string_('-2') })

    assert.reply({ 0, -1, -2 }, acquire(1))

    assert.left(world, { job = string_('-2'), [record] = recorded.record(1, 0, -1, -2) })
  end)

  it('takes none of a semaphore that is not set, and sets nothing', function()
    assert.reply({ 0, -1, 0 }, acquire(1))

    assert.left(world, { [record] = recorded.record(1, 0, -1, 0) })
  end)

  it('takes none of a semaphore whose life has ended', function()
    helper.fill(world, { job = string_('2', 30000) })
    world:advance(30001)

    assert.reply({ 0, -1, 0 }, acquire(1))
  end)

  it('keeps the life that the semaphore has', function()
    helper.fill(world, { job = string_('2', 90000) })

    assert.reply({ 1, 1 }, acquire(1))

    assert.left(world, { job = string_('1', 90000), [record] = recorded.record(1, 1, 1) })
  end)

  it('remembers a number of 15 digits', function()
    helper.fill(world, { job = string_('999999999999999') })

    assert.reply({ 1, 999999999999998 }, acquire(1))

    assert.left(world, { job = string_('999999999999998'),
      [record] = string_('1 1 999999999999998', 60000) })
    assert.reply({ 1, 999999999999998 }, acquire(1))
  end)

  it('takes again with the next seq', function()
    helper.fill(world, { job = string_('2') })
    acquire(1, 1)

    assert.reply({ 1, 0 }, acquire(1, 2))

    assert.left(world, { job = string_('0'), [record] = recorded.record(2, 1, 0) })
  end)

  it('that was refused takes nothing when a copy runs later', function()
    helper.fill(world, { job = string_('0') })
    acquire(1)
    world:command('INCR', 'job')

    assert.reply({ 0, -1, 0 }, acquire(1))

    assert.left(world, { job = string_('1'), [record] = recorded.record(1, 0, -1, 0) })
  end)

  it('takes nothing from a full server', function()
    helper.fill(world, { job = string_('2') })
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', acquire(1))

    assert.left(world, { job = string_('2') })
  end)

  local function arguments(caller, seq)
    return { 2, caller, seq }
  end

  for _, case in ipairs(recorded.cases('semaphore/acquire', { job = string_('5') }, arguments)) do
    it(case[1], case[2])
  end
end)
