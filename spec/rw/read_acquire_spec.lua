-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('rw/read_acquire', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('takes a free lock for the lease', function()
    assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { lease = 30000 }))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
  end)

  it('forms the names of levels with the tag of a name that has one', function()
    assert.reply({ 1, 1, 0 }, world:eval('rw/read_acquire', { 'a{b}', 'latchkey_rw_wait:a{b}',
      'latchkey_rw_theirs:a{b}', 'latchkey_rw_whole:a{b}' }, { 30000, ann, 1, '' }))

    assert.left(world, { ['a{b}'] = helper.hash({ mode = 'read', [ann] = '1' }, 30000),
      ['a{b}:lk-ann:1:rwlock_timeout:1'] = helper.string('1', 30000) })
  end)

  it('reads beside other readers, and keeps the lock as long as the longest', function()
    rw.read(world, ann, 1, { lease = 90000 })

    assert.reply({ 1, 1, 0 }, rw.read(world, bob, 1, { lease = 30000 }))

    assert.left(world, rw.keys('read', 90000, { [ann] = { 90000 }, [bob] = { 30000 } }))
  end)

  it('keeps the lock longer for one who reads longer', function()
    rw.read(world, ann, 1, { lease = 30000 })

    assert.reply({ 1, 1, 0 }, rw.read(world, bob, 1, { lease = 90000 }))

    assert.left(world, rw.keys('read', 90000, { [ann] = { 30000 }, [bob] = { 90000 } }))
  end)

  it('refuses while another writes, and says how long that lease lasts', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

    assert.reply({ 0, about(30000) }, rw.read(world, ann))

    assert.left(world, rw.keys('write', 30000, { [eve] = 1 }))
  end)

  it('refuses one whose write hold is another than that of the writer', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

    assert.reply({ 0, about(30000) }, rw.read(world, ann, 1, { writer = 'lk-eve:2:write' }))

    assert.left(world, rw.keys('write', 30000, { [eve] = 1 }))
  end)

  it('says -1 when the writer has no lease', function()
    helper.fill(world, rw.keys('write', nil, { [eve] = 1 }))

    assert.reply({ 0, -1 }, rw.read(world, ann))

    assert.left(world, rw.keys('write', nil, { [eve] = 1 }))
  end)

  it('lets the writer read beside its own writing, within its longer lease', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1 }))

    assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { writer = eve, lease = 30000 }))

    assert.left(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))
  end)

  it('keeps a writer as long as it reads', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

    assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { writer = eve, lease = 60000 }))

    assert.left(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 60000 } }))
  end)

  it('takes the lock when the writer\'s lease has ended', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))
    world:advance(30001)

    assert.reply({ 1, 1, 0 }, rw.read(world, ann))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
  end)

  for _, fields in ipairs({ { [bob] = '1' }, { mode = 'intent', [bob] = '1' } }) do
    local mode = tostring(fields.mode)
    it(('takes a hash of mode %s for a lock of another kind'):format(mode), function()
      local before = { job = helper.hash(fields, 30000) }
      helper.fill(world, before)

      assert.reply({ 0, about(30000) }, rw.read(world, ann))

      assert.left(world, before)
    end)
  end

  describe('by a reader that holds the lock', function()
    before_each(function()
      rw.read(world, ann, 1, { lease = 30000 })
    end)

    it('counts on where Redisson does not look, and extends the lease', function()
      assert.reply({ 1, 2, 0 }, rw.read(world, ann, 2, { lease = 60000 }))

      assert.left(world, rw.keys('read', 60000, { [ann] = { 60000, count = 2 } }))
    end)

    it('extends the lock by its last millisecond, up to the greatest lease', function()
      world = helper.mock_world() -- a server's clock goes on
      helper.fill(world, rw.keys('read', 86399999, { ['lk-bob:1'] = { 86399999 } }))

      assert.reply({ 1, 1, 0 }, rw.read(world, 'lk-ann:1', 1, { lease = 86400000 }))

      assert.left(world, rw.keys('read', 86400000,
        { ['lk-bob:1'] = { 86399999 }, ['lk-ann:1'] = { 86400000 } }))
    end)

    it('shortens nothing with a shorter lease', function()
      assert.reply({ 1, 2, 0 }, rw.read(world, ann, 2, { lease = 5000 }))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }))
    end)

    it('counts once when the call runs twice', function()
      rw.read(world, ann, 2)

      assert.reply({ 1, 2, 0 }, rw.read(world, ann, 2))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }))
    end)

    it('hides no level when an older call runs late', function()
      rw.read(world, ann, 3)

      assert.reply({ 1, 3, 0 }, rw.read(world, ann, 1))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000, count = 3 } }))
    end)

    it('counts to 1000', function()
      assert.reply({ 1, 1000, 0 }, rw.read(world, ann, 1000))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000, count = 1000 } }))
    end)

    it('goes on beside writers that wait', function()
      rw.wait(world, eve)

      assert.reply({ 1, 2, 0 }, rw.read(world, ann, 2))

      assert.left(world, rw.beside_waiting(rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }),
        { eve, rw.HEARTBEAT }))
    end)
  end)

  describe('when the owner\'s hold is over, but others read', function()
    local before = rw.keys('read', 60000, { [ann] = 1, [bob] = { 60000 } })

    before_each(function()
      helper.fill(world, before)
    end)

    it('counts from the start', function()
      assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { lease = 30000 }))

      assert.left(world, rw.keys('read', 60000, { [ann] = { 30000 }, [bob] = { 60000 } }))
    end)

    it('takes no further level', function()
      assert.reply({ -1 }, rw.read(world, ann, 3))

      assert.left(world, before)
    end)

    it('waits for writers that wait', function()
      rw.wait(world, eve, 5000)

      assert.reply({ 0, about(5000) }, rw.read(world, ann))

      assert.left(world, rw.beside_waiting(before, { eve, 5000 }))
    end)
  end)

  describe('of a further level', function()
    it('takes nothing when the lock was lost and is free', function()
      assert.reply({ -1 }, rw.read(world, ann, 2))

      assert.left(world, {})
    end)

    it('takes nothing when the lock was lost to a writer', function()
      helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

      assert.reply({ -1 }, rw.read(world, ann, 2))

      assert.left(world, rw.keys('write', 30000, { [eve] = 1 }))
    end)

    it('takes nothing when only a level is left, and others read', function()
      local before = rw.keys('read', 30000, { [bob] = { 30000 } })
      before[rw.level(ann, 1)] = helper.string('1', 30000)
      helper.fill(world, before)

      assert.reply({ -1 }, rw.read(world, ann, 2))

      assert.left(world, before)
    end)

    it('takes nothing when only a level is left of a lock that was broken', function()
      helper.fill(world, { [rw.level(ann, 1)] = helper.string('1', 30000) })

      assert.reply({ -1 }, rw.read(world, ann, 2))

      assert.left(world, { [rw.level(ann, 1)] = helper.string('1', 30000) })
    end)
  end)

  describe('beside a writer that waits', function()
    it('leaves a free lock to the writer', function()
      rw.wait(world, eve, 5000)

      assert.reply({ 0, about(5000) }, rw.read(world, ann))

      assert.left(world, rw.beside_waiting({}, { eve, 5000 }))
    end)

    it('does not join other readers', function()
      rw.read(world, bob)
      rw.wait(world, eve, 5000)

      assert.reply({ 0, about(5000) }, rw.read(world, ann))

      assert.left(world, rw.beside_waiting(rw.keys('read', 30000, { [bob] = { 30000 } }),
        { eve, 5000 }))
    end)

    it('waits for the last of several', function()
      rw.wait(world, 'lk-joe:1:write', 5000)
      rw.wait(world, eve, 50000)

      assert.reply({ 0, about(50000) }, rw.read(world, ann))

      assert.left(world, rw.beside_waiting({}, { 'lk-joe:1:write', 5000 }, { eve, 50000 }))
    end)

    it('takes the lock when the heartbeat has ended', function()
      rw.wait(world, eve, 5000)
      world:advance(5001)

      assert.reply({ 1, 1, 0 }, rw.read(world, ann))

      assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    end)

    it('reads beside its own writing', function()
      helper.fill(world, rw.keys('write', 30000, { ['lk-ann:2:write'] = 1 }))
      rw.wait(world, eve, 5000)

      assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { writer = 'lk-ann:2:write' }))

      assert.left(world, rw.beside_waiting(
        rw.keys('write', 30000, { ['lk-ann:2:write'] = 1, [ann] = { 30000 } }), { eve, 5000 }))
    end)
  end)

  describe('says that readers of other clients may share the lock', function()
    local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'

    it('when one does', function()
      helper.fill(world, rw.keys('read', 90000, { [redisson] = { 90000 } }))

      assert.reply({ 1, 1, 1 }, rw.read(world, ann))

      assert.left(world, rw.keys('read', 90000, { [redisson] = { 90000 }, [ann] = { 30000 } }))
    end)

    it('and keeps when the lock ended for them if it prolongs that', function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1 }))

      assert.reply({ 1, 1, 1 }, rw.read(world, ann, 1, { lease = 60000 }))
      assert.left(world, rw.beside_theirs(rw.keys('read', 60001, { [redisson] = 1,
        [ann] = { 60000 } }), 60001, 30000))

      assert.reply({ 1, 2, 1 }, rw.read(world, ann, 2, { lease = 90000 }))
      assert.left(world, rw.beside_theirs(rw.keys('read', 90000, { [redisson] = 1,
        [ann] = { 90000, count = 2 } }), 90000, 30000))
    end)

    it('and leaves a lock without a lease as it is', function()
      helper.fill(world, rw.keys('read', nil, { [redisson] = 1 }))

      assert.reply({ 1, 1, 1 }, rw.read(world, ann))

      assert.left(world, rw.keys('read', nil, { [redisson] = 1, [ann] = { 30000 } }))
    end)

    for count, theirs_ms in pairs({ [100] = 45000, [101] = 30000 }) do
      it(('and keeps that they have it for %d ms by %d levels'):format(theirs_ms, count), function()
        local keys = rw.keys('read', 30000, { [redisson] = count })
        keys[rw.level(redisson, count)] = helper.string('1', 45000)
        helper.fill(world, keys)

        assert.reply({ 1, 1, 1 }, rw.read(world, ann, 1, { lease = 90000 }))

        keys = rw.keys('read', 90000, { [redisson] = count, [ann] = { 90000 } })
        keys[rw.level(redisson, count)] = helper.string('1', 45000)
        assert.left(world, rw.beside_theirs(keys, 90000, theirs_ms))
      end)
    end

    local function read_beside_fields(count)
      local holds = {}
      for i = 1, count - 1 do
        holds['lk-bob:' .. i] = 1
      end
      helper.fill(world, rw.keys('read', 90000, holds))
      local reply = rw.read(world, ann)

      holds[ann] = { 30000 }
      assert.left(world, rw.keys('read', 90000, holds))
      return reply
    end

    it('but not when 2000 fields are all of latchkey', function()
      assert.reply({ 1, 1, 0 }, read_beside_fields(2000))
    end)

    it('when there are more than 2000 fields', function()
      assert.reply({ 1, 1, 1 }, read_beside_fields(2001))
    end)
  end)

  it('that runs after the release leaves a stray that ends with its lease', function()
    rw.read(world, ann)
    rw.read_release(world, ann)
    world:messages()

    assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { lease = 30000 }))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    world:advance(30001)
    assert.left(world, {})
  end)

  it('counts no higher than a thousand', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 1001 } }))

    assert.reply({ 1, 1000, 0 }, rw.read(world, ann, 2))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000, count = 1000 } }))
  end)

  it('takes a count that says nothing for one', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 'x' } }))

    assert.reply({ 1, 1, 0 }, rw.read(world, ann))
    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

    world:command('SET', rw.level(ann, 1), 'x', 'KEEPTTL')
    assert.reply({ 1, 2, 0 }, rw.read(world, ann, 2))
    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }))
  end)
end)
