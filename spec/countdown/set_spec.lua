-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('countdown/set', function()
  local record, channel = recorded.key('lk-ann'), 'redisson_countdownlatch__channel__{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function set(count, ttl, publish)
    return world:eval('countdown/set', { 'job', record },
      { count, channel, publish or 'PUBLISH', 'lk-ann', 1, ttl })
  end

  it('sets what is to be counted, without a TTL, and tells 1', function()
    assert.reply({ 1, 3 }, set(3))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) },
      { { verb = 'PUBLISH', channel = channel, message = '1' } })
  end)

  it('tells a sharded channel when asked to', function()
    assert.reply({ 1, 3 }, set(3, nil, 'SPUBLISH'))

    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) },
      { { verb = 'SPUBLISH', channel = channel, message = '1' } })
  end)

  it('gives the latch a life when asked to', function()
    assert.reply({ 1, 3 }, set(3, 90000))

    assert.left(world, { job = string_('3', 90000), [record] = recorded.record(1, 1, 3) },
      { { verb = 'PUBLISH', channel = channel, message = '1' } })
  end)

  for _, value in ipairs({ '2', '0' }) do
    it(('leaves a latch with %s as it is'):format(value), function()
      helper.fill(world, { job = string_(value, 90000) })

      assert.reply({ 0, tonumber(value) }, set(3))

      assert.left(world, { job = string_(value, 90000),
        [record] = recorded.record(1, 0, value) })
    end)
  end

  it('sets it anew when its life has ended', function()
    helper.fill(world, { job = string_('2', 30000) })
    world:advance(30001)

    assert.reply({ 1, 3 }, set(3))
  end)

  it('that was refused does nothing when a copy runs after the latch is gone', function()
    helper.fill(world, { job = string_('2') })
    set(3)
    world:command('DEL', 'job')

    assert.reply({ 0, 2 }, set(3))

    assert.left(world, { [record] = recorded.record(1, 0, 2) })
  end)

  it('refuses a sharded channel that is of another slot than a name with a tag', function()
    assert.refused('LKARG', 'publish', world:eval('countdown/set',
      { '{a}:job', 'latchkey_seq:{a}:job:lk-ann' },
      { 3, 'redisson_countdownlatch__channel__{{a}:job}', 'SPUBLISH', 'lk-ann', 1 }))

    assert.left(world, {})
  end)

  it('sets nothing on a full server', function()
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', set(3))

    assert.left(world, {})
  end)

  local function arguments(caller, seq)
    return { 3, channel, 'PUBLISH', caller, seq }
  end

  for _, case in ipairs(recorded.cases('countdown/set', {}, arguments)) do
    it(case[1], case[2])
  end

  it('takes a name with braces for a plain channel', function()
    local braced = 'redisson_countdownlatch__channel__{{a}b}'
    local braced_record = 'latchkey_seq:{a}b:lk-ann'

    assert.reply({ 1, 3 }, world:eval('countdown/set', { '{a}b', braced_record },
      { 3, braced, 'PUBLISH', 'lk-ann', 1 }))

    assert.left(world, { ['{a}b'] = string_('3'), [braced_record] = recorded.record(1, 1, 3) },
      { { verb = 'PUBLISH', channel = braced, message = '1' } })
  end)
end)
