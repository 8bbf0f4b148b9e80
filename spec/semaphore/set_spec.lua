-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('semaphore/set', function()
  local record, channel = recorded.key('lk-ann'), 'redisson_sc:{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function set(count, ttl, publish)
    return world:eval('semaphore/set', { 'job', record },
      { count, channel, publish or 'PUBLISH', 'lk-ann', 1, ttl })
  end

  it('sets how many are free, without a TTL, and tells the channel', function()
    assert.reply({ 1, 3 }, set(3))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) },
      { { verb = 'PUBLISH', channel = channel, message = '3' } })
  end)

  it('tells a sharded channel when asked to', function()
    assert.reply({ 1, 3 }, set(3, nil, 'SPUBLISH'))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) },
      { { verb = 'SPUBLISH', channel = channel, message = '3' } })
  end)

  it('gives the semaphore a life when asked to', function()
    assert.reply({ 1, 3 }, set(3, 90000))

    assert.left(world, { job = string_('3', 90000), [record] = recorded.record(1, 1, 3) },
      { { verb = 'PUBLISH', channel = channel, message = '3' } })
  end)

  it('tells nobody that none is free', function()
    assert.reply({ 1, 0 }, set(0))

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, 1, 0) })
  end)

  for _, value in ipairs({ '2', '0', '-2' }) do
    it(('leaves a semaphore with %s as it is'):format(value), function()
      helper.fill(world, { job = string_(value, 90000) })

      assert.reply({ 0, tonumber(value) }, set(3))

      assert.left(world, { job = string_(value, 90000),
        [record] = recorded.record(1, 0, tonumber(value)) })
    end)
  end

  it('sets it anew when its life has ended', function()
    helper.fill(world, { job = string_('2', 30000) })
    world:advance(30001)

    assert.reply({ 1, 3 }, set(3))
  end)

  it('that was refused does nothing when a copy runs after the semaphore is gone', function()
    helper.fill(world, { job = string_('2') })
    set(3)
    world:command('DEL', 'job')

    assert.reply({ 0, 2 }, set(3))

    assert.left(world, { [record] = recorded.record(1, 0, 2) })
  end)

  it('sets nothing on a full server', function()
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', set(3))

    assert.left(world, {})
  end)

  local function arguments(caller, seq)
    return { 3, channel, 'PUBLISH', caller, seq }
  end

  for _, case in ipairs(recorded.cases('semaphore/set', {}, arguments)) do
    it(case[1], case[2])
  end
end)
