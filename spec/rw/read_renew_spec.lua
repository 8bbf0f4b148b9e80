-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('rw/read_renew', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('extends the lease of the owner, and the lock with it, whatever its hold count', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.keys('read', 60000, { [ann] = { 60000, count = 2 } }))
  end)

  it('extends a lock by its last millisecond, up to the greatest lease', function()
    world = helper.mock_world() -- a server's clock goes on
    helper.fill(world, rw.keys('read', 86399999, { [ann] = { 30000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 86400000))

    assert.left(world, rw.keys('read', 86400000, { [ann] = { 86400000 } }))
  end)

  it('shortens nothing', function()
    helper.fill(world, rw.keys('read', 90000, { [ann] = { 60000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 30000))

    assert.left(world, rw.keys('read', 90000, { [ann] = { 60000 } }))
  end)

  it('leaves the levels of other readers to end', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 }, [bob] = { 15000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.keys('read', 60000, { [ann] = { 60000 }, [bob] = { 15000 } }))
  end)

  it('extends a lock that a Redisson reader has cut to its watchdog, and says so', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 90000 }, [redisson] = { 30000 } }))

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 90000))

    assert.left(world, rw.beside_theirs(rw.keys('read', 90000,
      { [ann] = { 90000 }, [redisson] = { 30000 } }), 90000, 30000))
  end)

  it('prolongs nothing for a Redisson reader, however often it comes', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 60000 }, [redisson] = 1 }))
    rw.read_renew(world, ann, 60000)
    world:advance(10000)

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.beside_theirs(rw.keys('read', 60000,
      { [ann] = { 60000 }, [redisson] = 1 }), 60000, 20000))
    world:advance(20001)
    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 60000))
    assert.left(world, rw.beside_theirs(rw.keys('read', 60000,
      { [ann] = { 60000 }, [redisson] = 1 }), 60000, -2))
  end)

  it('gives a Redisson reader what its own renewal gave it', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 60000 }, [redisson] = 1 }))
    rw.read_renew(world, ann, 90000)
    world:command('PEXPIRE', 'job', 40000)

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.beside_theirs(rw.keys('read', 70001,
      { [ann] = { 90000 }, [redisson] = 1 }), 70001, 40000))
  end)

  it('leaves a lock without a lease as it is', function()
    local before = rw.keys('read', nil, { [ann] = { 60000 }, [redisson] = 1 })
    helper.fill(world, before)

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 60000))

    assert.left(world, before)
  end)

  it('says that Redisson readers may be among more than 2000 fields', function()
    local holds = { [ann] = { 30000 } }
    for i = 1, 2000 do
      holds['lk-bob:' .. i] = 1
    end
    helper.fill(world, rw.keys('read', 90000, holds))

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 30000))

    assert.left(world, rw.keys('read', 90000, holds))
  end)

  it('extends the reading of a writer, and with it the writing', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1, [ann] = { 30000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 60000 } }))
  end)

  it('refuses when nobody holds the lock', function()
    assert.reply({ -1, -2 }, rw.read_renew(world, ann))

    assert.left(world, {})
  end)

  it('refuses when a writer holds the lock', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

    assert.reply({ -1, about(30000) }, rw.read_renew(world, ann))

    assert.left(world, rw.keys('write', 30000, { [eve] = 1 }))
  end)

  it('refuses when the hold is over, whatever its field says', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = 1, [bob] = { 30000 } }))

    assert.reply({ -1, about(30000) }, rw.read_renew(world, ann))

    assert.left(world, rw.keys('read', 30000, { [ann] = 1, [bob] = { 30000 } }))
  end)

  it('refuses when only a level is left of a lock that was broken', function()
    helper.fill(world, { [rw.level(ann, 1)] = helper.string('1', 30000) })

    assert.reply({ -1, -2 }, rw.read_renew(world, ann))

    assert.left(world, { [rw.level(ann, 1)] = helper.string('1', 30000) })
  end)

  for count, theirs_ms in pairs({ [100] = 45000, [101] = 30000 }) do
    it(('keeps that Redisson has the lock for %d ms by %d levels'):format(theirs_ms, count),
      function()
        local keys = rw.keys('read', 30000, { [ann] = { 30000 }, [redisson] = count })
        keys[rw.level(redisson, count)] = helper.string('1', 45000)
        helper.fill(world, keys)

        assert.reply({ 1, 1 }, rw.read_renew(world, ann, 90000))

        keys = rw.keys('read', 90000, { [ann] = { 90000 }, [redisson] = count })
        keys[rw.level(redisson, count)] = helper.string('1', 45000)
        assert.left(world, rw.beside_theirs(keys, 90000, theirs_ms))
      end)
  end

  it('looks at the first level alone', function()
    local keys = rw.keys('read', 90000, { [ann] = { 30000 } })
    keys[rw.level(ann, 0)] = helper.string('1', 30000)
    keys[rw.level(ann, 2)] = helper.string('1', 30000)
    helper.fill(world, keys)

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    keys[rw.level(ann, 1)] = helper.string('1', 60000)
    assert.left(world, keys)
  end)

  for others, is_shared in pairs({ [1998] = 0, [1999] = 1 }) do
    it(('answers %d beside %d others'):format(is_shared, others), function()
      rw.fill_readers(world, others, 90000)
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 30000 } }))

      assert.reply({ 1, is_shared }, rw.read_renew(world, ann, 60000))
    end)
  end
end)
