-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('countdown/count_down', function()
  local record, channel = recorded.key('lk-ann'), 'redisson_countdownlatch__channel__{job}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function count_down(count, publish)
    return world:eval('countdown/count_down', { 'job', record },
      { count or 1, channel, publish or 'PUBLISH', 'lk-ann', 1 })
  end

  local function opened(verb)
    return { { verb = verb or 'PUBLISH', channel = channel, message = '0' } }
  end

  it('counts, and tells nobody while some is left', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, 2 }, count_down())

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, 1, 2) })
  end)

  it('counts by more than one', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, 1 }, count_down(2))

    assert.left(world, { job = string_('1'), [record] = recorded.record(1, 1, 1) })
  end)

  it('opens the latch at zero, and tells 0', function()
    helper.fill(world, { job = string_('1') })

    assert.reply({ 1, 0 }, count_down())

    assert.left(world, { [record] = recorded.record(1, 1, 0) }, opened())
  end)

  it('opens it by more than one, and tells a sharded channel when asked to', function()
    helper.fill(world, { job = string_('3') })

    assert.reply({ 1, 0 }, count_down(3, 'SPUBLISH'))

    assert.left(world, { [record] = recorded.record(1, 1, 0) }, opened('SPUBLISH'))
  end)

  it('counts by the greatest number there can be, also of more, as Redisson may set it', function()
    helper.fill(world, { job = string_('2147483647') })

    assert.reply({ 1, 0 }, count_down('2147483647'))

    assert.left(world, { [record] = recorded.record(1, 1, 0) }, opened())
    world:command('DEL', record)
    helper.fill(world, { job = string_('2147483650') })
    assert.reply({ 1, 3 }, count_down('2147483647'))
    assert.left(world, { job = string_('3'), [record] = recorded.record(1, 1, 3) })
  end)

  it('keeps the life that the latch has', function()
    helper.fill(world, { job = string_('3', 90000) })

    assert.reply({ 1, 2 }, count_down())

    assert.left(world, { job = string_('2', 90000), [record] = recorded.record(1, 1, 2) })
  end)

  it('counts nothing where less is left, and opens nothing', function()
    helper.fill(world, { job = string_('2') })

    assert.reply({ -1, 2 }, count_down(3))

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, -1, 2) })
  end)

  it('counts nothing on an open latch, and tells nobody', function()
    assert.reply({ -1, 0 }, count_down())

    assert.left(world, { [record] = recorded.record(1, -1, 0) })
  end)

  it('counts nothing on a latch that Redisson has set to 0', function()
    helper.fill(world, { job = string_('0') })

    assert.reply({ -1, 0 }, count_down())

    assert.left(world, { job = string_('0'), [record] = recorded.record(1, -1, 0) })
  end)

  it('that was refused counts nothing when a copy runs after the latch was set', function()
    count_down()
    helper.fill(world, { job = string_('2') })

    assert.reply({ -1, 0 }, count_down())

    assert.left(world, { job = string_('2'), [record] = recorded.record(1, -1, 0) })
  end)

  it('refuses a sharded channel that is of another slot than a name with a tag', function()
    helper.fill(world, { ['{a}:job'] = string_('1') })

    assert.refused('LKARG', 'publish', world:eval('countdown/count_down',
      { '{a}:job', 'latchkey_seq:{a}:job:lk-ann' },
      { 1, 'redisson_countdownlatch__channel__{{a}:job}', 'SPUBLISH', 'lk-ann', 1 }))

    assert.left(world, { ['{a}:job'] = string_('1') })
  end)

  it('opens the latch on a full server', function()
    helper.fill(world, { job = string_('1') })
    world:set_oom(true)

    assert.reply({ 1, 0 }, count_down())

    assert.left(world, { [record] = recorded.record(1, 1, 0) }, opened())
  end)

  local function arguments(caller, seq)
    return { 2, channel, 'PUBLISH', caller, seq }
  end

  local state = { job = string_('2') }
  for _, case in ipairs(recorded.cases('countdown/count_down', state, arguments)) do
    it(case[1], case[2])
  end

  it('takes a name with braces for a plain channel', function()
    local braced = 'redisson_countdownlatch__channel__{{a}b}'
    local braced_record = 'latchkey_seq:{a}b:lk-ann'
    helper.fill(world, { ['{a}b'] = string_('3') })

    assert.reply({ 1, 2 }, world:eval('countdown/count_down', { '{a}b', braced_record },
      { 1, braced, 'PUBLISH', 'lk-ann', 1 }))

    assert.left(world, { ['{a}b'] = string_('2'), [braced_record] = recorded.record(1, 1, 2) })
  end)
end)
