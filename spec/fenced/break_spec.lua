-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash, string_ = helper.hash, helper.string

describe('fenced/break', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local counter, channel = 'redisson_lock_token:{job}', 'redisson_lock__channel:{job}'
  -- Above the clock, so that the next token is one more.
  local high = 4000000000000000
  local told = { { verb = 'PUBLISH', channel = channel, message = '0' } }
  local world

  before_each(function()
    world = helper.world()
  end)

  -- The counter after so many more tokens.
  local function drawn(count, life)
    return string_(('%.0f'):format(high + count), life)
  end

  local function break_(owner, publish)
    return world:eval('fenced/break', { 'job', counter }, { owner, channel, publish or 'PUBLISH' })
  end

  it('frees the lock of the owner that is named, draws a token, and tells the channel', function()
    helper.fill(world, { job = hash({ [ann] = '2' }, 30000), [counter] = drawn(0) })

    assert.reply({ 1, high + 1 }, break_(ann))

    assert.left(world, { [counter] = drawn(1) }, told)
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })

    assert.reply({ 1, high + 1 }, break_(ann, 'SPUBLISH'))

    assert.left(world, { [counter] = drawn(1) },
      { { verb = 'SPUBLISH', channel = channel, message = '0' } })
  end)

  it('leaves the life of the counter as it is', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000),
      [counter] = drawn(0, 600000) })

    assert.reply({ 1, high + 1 }, break_(ann))

    assert.left(world, { [counter] = drawn(1, 600000) }, told)
  end)

  -- The clock of the mock alone can be set.
  if not os.getenv('LATCHKEY_SPEC_URL') then
    it('draws what leaves room for later ones when the clock is past the year 2255', function()
      world:advance(9000000000001 - world:now_ms())
      helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })

      assert.reply({ 1, 9000000000000000 }, break_(ann))

      assert.left(world, { [counter] = string_('9000000000000000', 31536000000) }, told)
    end)
  end

  it('draws from the clock when the counter is gone, which comes back for a year', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    local from_ms = world:now_ms()

    local token = break_(ann)[2]

    assert.is_true(token >= from_ms * 1000 and token < (world:now_ms() + 1) * 1000)
    assert.left(world, { [counter] = string_(('%.0f'):format(token), 31536000000) }, told)
  end)

  it('lets the next holder draw above its own token', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })
    break_(ann)

    assert.reply({ 1, 1, high + 2 },
      world:eval('fenced/acquire', { 'job', counter }, { 30000, bob, 1 }))
  end)

  it('says that nobody holds the lock, draws nothing and tells nobody', function()
    helper.fill(world, { [counter] = drawn(0) })

    assert.reply({ 0 }, break_(ann))

    assert.left(world, { [counter] = drawn(0) })
  end)

  it('refuses when another owner holds the lock by now', function()
    local before = { job = hash({ [bob] = '1' }, 30000), [counter] = drawn(0) }
    helper.fill(world, before)

    assert.reply({ -1 }, break_(ann))

    assert.left(world, before)
  end)

  it('draws and tells once when the call runs twice', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })
    break_(ann)

    assert.reply({ 0 }, break_(ann))

    assert.left(world, { [counter] = drawn(1) }, told)
  end)

  it('breaks nothing when the counter holds no token', function()
    local before = { job = hash({ [ann] = '1' }, 30000), [counter] = string_('x') }
    helper.fill(world, before)

    assert.refused('LKARG', 'counter', break_(ann))

    assert.left(world, before)
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })
    world:set_oom(true)

    assert.reply({ 1, high + 1 }, break_(ann))

    assert.left(world, { [counter] = drawn(1) }, told)
  end)

  it('does nothing when the counter is beyond its end', function()
    local before = { job = hash({ [ann] = '1' }, 30000), [counter] = string_('9007199254740992') }
    helper.fill(world, before)

    assert.refused('LKARG', 'counter must', break_(ann))

    assert.left(world, before)
  end)

  it('breaks who has the last token there is, and draws that again', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000),
      [counter] = string_('9007199254740991') })

    assert.reply({ 1, 9007199254740991 }, break_(ann))

    assert.left(world, { [counter] = string_('9007199254740991') }, told)
  end)
end)
