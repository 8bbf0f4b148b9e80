-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('countdown/reset', function()
  local record, channel = recorded.key('lk-ann'), 'redisson_countdownlatch__channel__{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function reset(publish)
    return world:eval('countdown/reset', { 'job', record },
      { channel, publish or 'PUBLISH', 'lk-ann', 1 })
  end

  local function opened(verb)
    return { { verb = verb or 'PUBLISH', channel = channel, message = '0' } }
  end

  it('removes the latch whatever is left, and tells 0 to all who wait', function()
    helper.fill(world, { job = string_('3', 90000) })

    assert.reply({ 1, 3 }, reset())

    assert.left(world, { [record] = recorded.record(1, 1, 3) }, opened())
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, 3 }, reset('SPUBLISH'))

    assert.left(world, { [record] = recorded.record(1, 1, 3) }, opened('SPUBLISH'))
  end)

  it('removes a latch that Redisson has set to 0', function()
    helper.fill(world, { job = string_('0') })

    assert.reply({ 1, 0 }, reset())

    assert.left(world, { [record] = recorded.record(1, 1, 0) }, opened())
  end)

  it('finds none, and tells nobody', function()
    assert.reply({ 0 }, reset())

    assert.left(world, { [record] = recorded.record(1, 0) })
  end)

  it('that found none removes nothing when a copy runs after the latch was set', function()
    reset()
    helper.fill(world, { job = string_('2') })

    assert.reply({ 0 }, reset())

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 0) })
  end)

  it('refuses a sharded channel that is of another slot than a name with a tag', function()
    helper.fill(world, { ['{a}:job'] = string_('1') })

    assert.refused('LKARG', 'publish', world:eval('countdown/reset',
      { '{a}:job', 'latchkey_seq:{a}:job:lk-ann' },
      { 'redisson_countdownlatch__channel__{{a}:job}', 'SPUBLISH', 'lk-ann', 1 }))

    assert.left(world, { ['{a}:job'] = string_('1') })
  end)

  it('removes the latch on a full server', function()
    helper.fill(world, { job = string_('3') })
    world:set_oom(true)

    assert.reply({ 1, 3 }, reset())

    assert.left(world, { [record] = recorded.record(1, 1, 3) }, opened())
  end)

  local function arguments(caller, seq)
    return { channel, 'PUBLISH', caller, seq }
  end

  for _, case in ipairs(recorded.cases('countdown/reset', { job = string_('2') }, arguments)) do
    it(case[1], case[2])
  end

  it('takes a name with braces for a plain channel', function()
    local braced = 'redisson_countdownlatch__channel__{{a}b}'
    local braced_record = 'latchkey_seq:{a}b:lk-ann'
    helper.fill(world, { ['{a}b'] = string_('3') })

    assert.reply({ 1, 3 }, world:eval('countdown/reset', { '{a}b', braced_record },
      { braced, 'PUBLISH', 'lk-ann', 1 }))

    assert.left(world, { [braced_record] = recorded.record(1, 1, 3) },
      { { verb = 'PUBLISH', channel = braced, message = '0' } })
  end)
end)
