-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('rw/read_renew', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('extends all levels of the owner, and the lock with them', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, 15000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.keys('read', 60000, { [ann] = { 60000, 60000 } }))
  end)

  it('shortens nothing', function()
    helper.fill(world, rw.keys('read', 90000, { [ann] = { 60000, 15000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 30000))

    assert.left(world, rw.keys('read', 90000, { [ann] = { 60000, 30000 } }))
  end)

  it('leaves the levels of other readers to end', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 }, [bob] = { 15000 } }))

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    assert.left(world, rw.keys('read', 60000, { [ann] = { 60000 }, [bob] = { 15000 } }))
  end)

  it('does not bring back a level that has ended', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, 15000 } }))
    world:advance(15001)

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    local keys = rw.keys('read', 60000, { [ann] = { 60000, 60000 } })
    keys[rw.level(ann, 2)] = nil
    assert.left(world, keys)
  end)

  it('extends a lock that a Redisson reader has cut to its watchdog, and says so', function()
    local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 90000 }, [redisson] = { 30000 } }))

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 90000))

    assert.left(world, rw.keys('read', 90000, { [ann] = { 90000 }, [redisson] = { 30000 } }))
  end)

  it('says that Redisson readers may be among more than 100 fields', function()
    local holds = { [ann] = { 30000 } }
    for i = 1, 99 do
      holds['lk-bob:' .. i] = 1
    end
    helper.fill(world, rw.keys('read', 30000, holds))

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 30000))

    assert.left(world, rw.keys('read', 30000, holds))
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
    helper.fill(world, rw.keys('read', 30000, { [ann] = 2, [bob] = { 30000 } }))

    assert.reply({ -1, about(30000) }, rw.read_renew(world, ann))

    assert.left(world, rw.keys('read', 30000, { [ann] = 2, [bob] = { 30000 } }))
  end)

  it('refuses when only a level is left of a lock that was broken', function()
    helper.fill(world, { [rw.level(ann, 1)] = helper.string('1', 30000) })

    assert.reply({ -1, -2 }, rw.read_renew(world, ann))

    assert.left(world, { [rw.level(ann, 1)] = helper.string('1', 30000) })
  end)

  it('touches at most 1000 levels', function()
    helper.fill(world, { job = helper.hash({ mode = 'read', [ann] = '1001' }, 30000),
      [rw.level(ann, 1)] = helper.string('1', 30000),
      [rw.level(ann, 1000)] = helper.string('1', 30000),
      [rw.level(ann, 1001)] = helper.string('1', 30000) })

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    assert.left(world, { job = helper.hash({ mode = 'read', [ann] = '1001' }, 60000),
      [rw.level(ann, 1)] = helper.string('1', 60000),
      [rw.level(ann, 1000)] = helper.string('1', 60000),
      [rw.level(ann, 1001)] = helper.string('1', 30000) })
  end)

  it('extends one level of a hold whose count says nothing', function()
    local keys = rw.keys('read', 90000, { [ann] = { 30000, 30000 } })
    keys.job.value[ann] = 'x'
    keys[rw.level(ann, 0)] = helper.string('1', 30000)
    helper.fill(world, keys)

    assert.reply({ 1, 0 }, rw.read_renew(world, ann, 60000))

    keys[rw.level(ann, 1)] = helper.string('1', 60000)
    assert.left(world, keys)
  end)

  for others, is_shared in pairs({ [98] = 0, [99] = 1 }) do
    it(('answers %d beside %d others'):format(is_shared, others), function()
      rw.fill_readers(world, others, 90000, 'lk-reader:')
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 30000 } }))

      assert.reply({ 1, is_shared }, rw.read_renew(world, ann, 60000))
    end)
  end
end)
