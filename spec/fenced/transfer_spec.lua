-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash, string_ = helper.hash, helper.string

describe('fenced/transfer', function()
  local ann, bob, cyd = 'lk-ann:1', 'lk-bob:1', 'lk-cyd:1'
  local counter = 'redisson_lock_token:{job}'
  -- Above the clock, so that the next token is one more.
  local high = 4000000000000000
  local world

  before_each(function()
    world = helper.world()
  end)

  -- The counter after so many more tokens.
  local function drawn(count, life)
    return string_(('%.0f'):format(high + count), life)
  end

  local function transfer(owner, new_owner, lease, token_ttl)
    return world:eval('fenced/transfer', { 'job', counter },
      { lease or 30000, owner, new_owner, token_ttl })
  end

  it('gives the new owner one level, the lease and a higher token, and tells nobody', function()
    helper.fill(world, { job = hash({ [ann] = '3' }, 60000), [counter] = drawn(0) })

    assert.reply({ 1, high + 1 }, transfer(ann, bob, 30000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000), [counter] = drawn(1) })
  end)

  it('gives nothing where the counter may not be written, however often it is sent', function()
    helper.fill(world, { job = hash({ [ann] = '3' }, 60000), [counter] = drawn(0) })
    world:set_denied('SET')

    for _ = 1, 2 do
      local reply, err = transfer(ann, bob, 30000)
      assert.is_nil(reply)
      assert.truthy(err.message:lower():find('user', 1, true), err.message)
    end

    world:set_denied()
    assert.left(world, { job = hash({ [ann] = '3' }, 60000), [counter] = drawn(0) })
  end)

  it('draws a token from the clock when the counter is gone', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    local from_ms = world:now_ms()

    local reply = transfer(ann, bob)

    local token = reply[2]
    assert.is_true(token >= from_ms * 1000 and token < (world:now_ms() + 1) * 1000)
    assert.left(world, { job = hash({ [bob] = '1' }, 30000),
      [counter] = string_(('%.0f'):format(token)) })
  end)

  -- The clock of the mock alone can be set.
  if not os.getenv('LATCHKEY_SPEC_URL') then
    it('draws what leaves room for later ones when the clock is past the year 2255', function()
      world:advance(9000000000001 - world:now_ms())
      helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })

      assert.reply({ 1, 9000000000000000 }, transfer(ann, bob))
      assert.reply({ 1, 9000000000000001 }, transfer(bob, cyd))
    end)
  end

  it('gives the counter the life that is asked for', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })

    assert.reply({ 1, high + 1 }, transfer(ann, bob, 30000, 600000))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000),
      [counter] = drawn(1, 600000) })
  end)

  it('leaves other fields as they are', function()
    helper.fill(world, { job = hash({ [ann] = '1', note = 'kept' }, 30000),
      [counter] = drawn(0) })

    assert.reply({ 1, high + 1 }, transfer(ann, bob))

    assert.left(world, { job = hash({ [bob] = '1', note = 'kept' }, 30000),
      [counter] = drawn(1) })
  end)

  describe('that ran before', function()
    before_each(function()
      helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })
      transfer(ann, bob)
    end)

    it('keeps the token and extends the lease', function()
      assert.reply({ 1, high + 1 }, transfer(ann, bob, 60000))

      assert.left(world, { job = hash({ [bob] = '1' }, 60000), [counter] = drawn(1) })
    end)

    it('keeps the token and extends the lease to the greatest there can be', function()
      assert.reply({ 1, high + 1 }, transfer(ann, bob, 86400000))

      assert.left(world, { job = hash({ [bob] = '1' }, 86400000), [counter] = drawn(1) })
    end)

    it('leaves the levels and the longer lease that the new owner took', function()
      world:eval('fenced/acquire', { 'job', counter }, { 90000, bob, 2 })

      assert.reply({ 1, high + 1 }, transfer(ann, bob, 30000))

      assert.left(world, { job = hash({ [bob] = '2' }, 90000), [counter] = drawn(1) })
    end)

    it('draws a new token when the counter is gone', function()
      world:command('DEL', counter)
      local from_ms = world:now_ms()

      local token = transfer(ann, bob)[2]

      assert.is_true(token >= from_ms * 1000)
      assert.left(world, { job = hash({ [bob] = '1' }, 30000),
        [counter] = string_(('%.0f'):format(token)) })
    end)

    it('does nothing when the new owner has handed the lock on', function()
      transfer(bob, cyd, 60000)

      assert.reply({ -1 }, transfer(ann, bob))

      assert.left(world, { job = hash({ [cyd] = '1' }, 60000),
        [counter] = drawn(2) })
    end)
  end)

  it('takes and draws nothing when nobody holds the lock', function()
    helper.fill(world, { [counter] = drawn(0) })

    assert.reply({ -1 }, transfer(ann, bob))

    assert.left(world, { [counter] = drawn(0) })
  end)

  it('takes and draws nothing when a third owner holds it', function()
    local before = { job = hash({ [cyd] = '1' }, 30000), [counter] = drawn(0) }
    helper.fill(world, before)

    assert.reply({ -1 }, transfer(ann, bob))

    assert.left(world, before)
  end)

  it('changes nothing when the counter holds no token', function()
    local before = { job = hash({ [ann] = '1' }, 30000), [counter] = string_('x') }
    helper.fill(world, before)

    assert.refused('LKARG', 'counter', transfer(ann, bob, 60000))

    assert.left(world, before)
  end)

  it('refuses a transfer of a hold to itself', function()
    local before = { job = hash({ [ann] = '2' }, 30000), [counter] = drawn(0) }
    helper.fill(world, before)

    assert.refused('LKARG', 'new_owner', transfer(ann, ann))

    assert.left(world, before)
  end)

  it('keeps the lock held on a full server', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000), [counter] = drawn(0) })
    world:set_oom(true)

    assert.reply({ 1, high + 1 }, transfer(ann, bob))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000), [counter] = drawn(1) })
  end)

  it('does nothing when the counter is beyond its end', function()
    local before = { job = hash({ [ann] = '1' }, 30000), [counter] = string_('9007199254740992') }
    helper.fill(world, before)

    assert.refused('LKARG', 'counter must', transfer(ann, bob))

    assert.left(world, before)
  end)

  it('hands on the last token there is', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000),
      [counter] = string_('9007199254740991') })

    assert.reply({ 1, 9007199254740991 }, transfer(ann, bob))

    assert.left(world, { job = hash({ [bob] = '1' }, 30000),
      [counter] = string_('9007199254740991') })
  end)
end)
