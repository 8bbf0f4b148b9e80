-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('rw/inspect', function()
  local ann, eve = 'lk-ann:1', 'lk-eve:1:write'
  local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('says that nobody holds the lock', function()
    assert.reply({ 0, 0 }, rw.inspect(world))

    assert.left(world, {})
  end)

  it('counts the writers that wait where they are more than nine', function()
    local entries = {}
    for i = 1, 12 do
      entries[i] = { ('lk-ann:%d:write'):format(i), '@+20000' }
    end
    helper.fill(world, { [rw.WAITERS] = helper.zset(entries) })

    assert.reply({ 0, 12 }, rw.inspect(world))
  end)

  it('names a reader, its hold count and the rest of its lease', function()
    local before = rw.keys('read', 90000, { [ann] = { 60000, count = 2 } })
    helper.fill(world, before)

    assert.reply({ 1, about(90000), 2, 0, 'read', ann, '2', about(60000) }, rw.inspect(world))

    assert.left(world, before)
  end)

  it('shows how long a Redisson reader has the hash, whatever became of its levels', function()
    helper.fill(world, rw.keys('read', 90000, { [redisson] = { 30000, 60000 } }))

    assert.reply({ 1, about(90000), 2, 0, 'read', redisson, '2', about(90000) },
      rw.inspect(world))

    assert.left(world, rw.keys('read', 90000, { [redisson] = { 30000, 60000 } }))
  end)

  it('shows the longest level of a Redisson reader that goes beyond that', function()
    helper.fill(world, rw.keys('read', 30000, { [redisson] = { 60000, 30000 } }))

    assert.reply({ 1, about(30000), 2, 0, 'read', redisson, '2', about(60000) },
      rw.inspect(world))

    assert.left(world, rw.keys('read', 30000, { [redisson] = { 60000, 30000 } }))
  end)

  it('gives a Redisson reader no more than Redisson gave it', function()
    helper.fill(world, rw.keys('read', 30000, { [redisson] = 1 }))
    rw.read(world, ann, 1, { lease = 90000 })

    local reply, shown = rw.inspect(world), {}

    for i = 6, reply.n, 3 do
      shown[reply[i]] = { reply[i + 1], n = 2, reply[i + 2] }
    end
    assert.reply({ '1', about(30000) }, shown[redisson])
    assert.reply({ '1', about(90000) }, shown[ann])
    assert.left(world, rw.beside_theirs(rw.keys('read', 90000, { [redisson] = 1,
      [ann] = { 90000 } }), 90000, 30000))
  end)

  it('shows when a reader\'s hold is over', function()
    helper.fill(world, rw.keys('read', 90000, { [ann] = 2 }))

    assert.reply({ 1, about(90000), 2, 0, 'read', ann, '2', -2 }, rw.inspect(world))

    assert.left(world, rw.keys('read', 90000, { [ann] = 2 }))
  end)

  it('names a writer', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 2 }))

    assert.reply({ 1, about(60000), 2, 0, 'write', eve, '2', about(60000) }, rw.inspect(world))

    assert.left(world, rw.keys('write', 60000, { [eve] = 2 }))
  end)

  it('names a writer and what it reads', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))

    local reply = rw.inspect(world)

    local shown = {}
    for i = 6, reply.n, 3 do
      shown[reply[i]] = { reply[i + 1], n = 2, reply[i + 2] }
    end
    assert.equal(11, reply.n)
    assert.reply({ '1', about(60000) }, shown[eve])
    assert.reply({ '1', about(30000) }, shown[ann])
    assert.left(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))
  end)

  it('says -1 for a writer that has no lease', function()
    helper.fill(world, rw.keys('write', nil, { [eve] = 1 }))

    assert.reply({ 1, -1, 2, 0, 'write', eve, '1', -1 }, rw.inspect(world))

    assert.left(world, rw.keys('write', nil, { [eve] = 1 }))
  end)

  it('counts the writers that wait, and no others', function()
    helper.fill(world, { [rw.WAITERS] = helper.zset({ { 'lk-joe:1:write', '@-50000' },
      { eve, '@+40000' }, { 'lk-bob:1:write', '@+50000' } }, 50000) })

    assert.reply({ 0, 2 }, rw.inspect(world))

    assert.left(world, rw.beside_waiting({}, { 'lk-joe:1:write', -50000 }, { eve, 40000 },
      { 'lk-bob:1:write', 50000 }))
  end)

  it('says that a hash without a mode is no read-write lock', function()
    local before = { job = helper.hash({ [ann] = '1' }, 30000) }
    helper.fill(world, before)

    assert.reply({ -1 }, rw.inspect(world))

    assert.left(world, before)
  end)

  it('only counts the fields above 100', function()
    local holds = {}
    for i = 1, 100 do
      holds['lk-bob:' .. i] = 1
    end
    helper.fill(world, rw.keys('read', 30000, holds))

    assert.reply({ 1, about(30000), 101, 0, 'read' }, rw.inspect(world))

    assert.left(world, rw.keys('read', 30000, holds))
  end)

  for count, left_ms in pairs({ [1000] = 60000, [1001] = 30000 }) do
    it(('says that Redisson has the lock for %d ms by %d levels'):format(left_ms, count), function()
      local keys = rw.keys('read', 30000, { [redisson] = count })
      keys[rw.level(redisson, count)] = helper.string('1', 60000)
      keys[rw.level(redisson, 0)] = helper.string('1', 90000)
      helper.fill(world, keys)

      assert.reply({ 1, about(30000), 2, 0, 'read', redisson, tostring(count), about(left_ms) },
        rw.inspect(world))

      assert.left(world, keys)
    end)
  end

  it('works on a full server and on a read-only replica', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    world:set_oom(true)
    world:set_readonly(true)

    assert.reply({ 1, about(30000), 2, 0, 'read', ann, '1', about(30000) }, rw.inspect(world))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
  end)

  it('takes a count that says nothing for none', function()
    local keys = rw.keys('read', 30000, { [redisson] = { 60000 } })
    keys.job.value[redisson] = 'x'
    helper.fill(world, keys)

    assert.reply({ 1, about(30000), 2, 0, 'read', redisson, 'x', about(30000) },
      rw.inspect(world))

    assert.left(world, keys)
  end)

  for readers, elements in pairs({ [99] = 5 + 3 * 99, [100] = 5 }) do
    it(('answers %d elements where there are %d readers'):format(elements, readers), function()
      rw.fill_readers(world, readers, 90000)

      assert.equal(elements, rw.inspect(world).n)
    end)
  end

  it('counts no writer whose heartbeat has just ended', function()
    local keys = rw.beside_waiting({}, { eve, -1 }, { 'lk-bob:1:write', 60000 })
    helper.fill(world, keys)

    assert.reply({ 0, 1 }, rw.inspect(world))

    assert.left(world, keys)
  end)
end)
