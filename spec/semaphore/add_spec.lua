-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('semaphore/add', function()
  local record, channel = recorded.key('lk-ann'), 'redisson_sc:{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function add(count, change, publish)
    return world:eval('semaphore/add', { 'job', record },
      { count, change, channel, publish or 'PUBLISH', 'lk-ann', 1 })
  end

  local function told(message, verb)
    return { { verb = verb or 'PUBLISH', channel = channel, message = message } }
  end

  it('raises how many are free, and tells it', function()
    helper.fill(world, { job = string_('1') })

    assert.reply({ 1, 3 }, add(2, 'RAISE'))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) }, told('3'))
  end)

  it('raises by the greatest number there can be', function()
    helper.fill(world, { job = string_('-1') })

    assert.reply({ 1, 2147483646 }, add('2147483647', 'RAISE'))

    assert.left(world, { job = string_('2147483646'),
      [record] = recorded.record(1, 1, 2147483646) }, told('2147483646'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = string_('1') })

    assert.reply({ 1, 3 }, add(2, 'RAISE', 'SPUBLISH'))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) },
      told('3', 'SPUBLISH'))
  end)

  it('tells nobody when none is free after raising', function()
    helper.fill(world, { job = string_('-2') })

    assert.reply({ 1, 0 }, add(2, 'RAISE'))

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 0) })
  end)

  it('lowers how many are free, and tells nobody', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, 1 }, add(2, 'LOWER'))

    assert.left(world, { job = string_('1'), [record] = recorded.record(1, 1, 1) })
  end)

  it('lowers below zero while others hold some', function()
    helper.fill(world, { job = string_('1') })

    assert.reply({ 1, -1 }, add(2, 'LOWER'))

    assert.left(world, { job = string_('-1'), [record] = recorded.record(1, 1, -1) })
  end)

  it('keeps the life that the semaphore has', function()
    helper.fill(world, { job = string_('1', 90000) })

    assert.reply({ 1, 3 }, add(2, 'RAISE'))

    assert.left(world, { job = string_('3', 90000), [record] = recorded.record(1, 1, 3) },
      told('3'))
  end)

  it('makes a semaphore where none is set', function()
    assert.reply({ 1, 2 }, add(2, 'RAISE'))

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 1, 2) }, told('2'))
  end)

  for _, case in ipairs({ { 'RAISE', '2147483646' }, { 'LOWER', '-2147483647' } }) do
    it(('does not %s %s beyond what clients of Redisson can count'):format(case[1]:lower(),
      case[2]), function()
      helper.fill(world, { job = string_(case[2]) })

      assert.reply({ -1, tonumber(case[2]) }, add(2, case[1]))

      assert.left(world, { job = string_(case[2]), [record] = recorded.record(1, -1, case[2]) })
    end)

    it(('does %s %s up to what they can count'):format(case[1]:lower(), case[2]), function()
      helper.fill(world, { job = string_(case[2]) })

      assert.equal(1, add(1, case[1])[1])
    end)
  end

  it('adds on a full server: waiters wait for it', function()
    helper.fill(world, { job = string_('1') })
    world:set_oom(true)

    assert.reply({ 1, 2 }, add(1, 'RAISE'))

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 1, 2) }, told('2'))
  end)

  local function arguments(caller, seq)
    return { 2, 'RAISE', channel, 'PUBLISH', caller, seq }
  end

  for _, case in ipairs(recorded.cases('semaphore/add', { job = string_('1') }, arguments)) do
    it(case[1], case[2])
  end

  it('tells of a single one that is added, and is the only one', function()
    helper.fill(world, { job = string_('0') })

    assert.reply({ 1, 1 }, add(1, 'RAISE'))

    assert.left(world, { job = string_('1'), [record] = recorded.record(1, 1, 1) }, told('1'))
  end)
end)
