-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('semaphore/release', function()
  local record, channel = recorded.key('lk-ann'), 'redisson_sc:{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function release(count, bound, publish)
    return world:eval('semaphore/release', { 'job', record },
      { count, channel, publish or 'PUBLISH', 'lk-ann', 1, bound })
  end

  local function told(message, verb)
    return { { verb = verb or 'PUBLISH', channel = channel, message = message } }
  end

  it('gives back as many as are said, and tells how many are free', function()
    helper.fill(world, { job = string_('1') })

    assert.reply({ 1, 3 }, release(2))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) }, told('3'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = string_('0') })

    assert.reply({ 1, 1 }, release(1, nil, 'SPUBLISH'))

    assert.left(world, { job = string_('1'), [record] = recorded.record(1, 1, 1) },
      told('1', 'SPUBLISH'))
  end)

  for _, free in ipairs({ -1, 0 }) do
    it(('tells nobody while %d are free'):format(free), function()
      helper.fill(world, { job = string_(free - 1 .. '') })

      assert.reply({ 1, free }, release(1))

      assert.left(world, { job = string_(free .. ''), [record] = recorded.record(1, 1, free) })
    end)
  end

  it('makes a semaphore where none is set', function()
    assert.reply({ 1, 2 }, release(2))

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 1, 2) }, told('2'))
  end)

  it('keeps the life that the semaphore has', function()
    helper.fill(world, { job = string_('2', 90000) })

    assert.reply({ 1, 3 }, release(1))

    assert.left(world, { job = string_('3', 90000), [record] = recorded.record(1, 1, 3) },
      told('3'))
  end)

  it('gives back up to the bound', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, 5 }, release(2, 5))

    assert.left(world, { job = string_('5'), [record] = recorded.record(1, 1, 5) }, told('5'))
  end)

  it('gives nothing back beyond the bound', function()
    helper.fill(world, { job = string_('4') })

    assert.reply({ -1, 4 }, release(2, 5))

    assert.left(world, { job = string_('4'), [record] = recorded.record(1, -1, 4) })
  end)

  it('gives nothing back beyond what clients of Redisson can count', function()
    helper.fill(world, { job = string_('2147483646') })

    assert.reply({ -1, 2147483646 }, release(2))

    assert.left(world, { job = string_('2147483646'),
      [record] = recorded.record(1, -1, '2147483646') })
  end)

  it('gives back the greatest number there can be', function()
    helper.fill(world, { job = string_('-1') })

    assert.reply({ 1, 2147483646 }, release('2147483647'))

    assert.left(world, { job = string_('2147483646'),
      [record] = recorded.record(1, 1, 2147483646) }, told('2147483646'))
  end)

  it('that was refused gives nothing back when a copy runs later', function()
    helper.fill(world, { job = string_('5') })
    release(1, 5)
    world:command('DECR', 'job')

    assert.reply({ -1, 5 }, release(1, 5))

    assert.left(world, { job = string_('4'), [record] = recorded.record(1, -1, 5) })
  end)

  it('gives back on a full server', function()
    helper.fill(world, { job = string_('1') })
    world:set_oom(true)

    assert.reply({ 1, 2 }, release(1))

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 1, 2) }, told('2'))
  end)

  local function arguments(caller, seq)
    return { 2, channel, 'PUBLISH', caller, seq }
  end

  for _, case in ipairs(recorded.cases('semaphore/release', { job = string_('1') }, arguments)) do
    it(case[1], case[2])
  end

  it('fills a semaphore to the brim where there is no bound', function()
    helper.fill(world, { job = string_('2147483646') })

    assert.reply({ 1, 2147483647 }, release(1))

    assert.left(world, { job = string_('2147483647'),
      [record] = recorded.record(1, 1, 2147483647) }, told('2147483647'))
  end)
end)
