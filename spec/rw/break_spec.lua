-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')

describe('rw/break', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local redisson = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('frees the lock of a reader, whatever its hold count, and tells the channel', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000, count = 2 } }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('frees the lock of a writer, and wakes all who wait', function()
    helper.fill(world, rw.keys('write', nil, { [eve] = 7 }))

    assert.reply({ 1 }, rw.break_(world, eve))

    assert.left(world, {}, rw.told('1'))
  end)

  it('tells a sharded channel when asked to', function()
    helper.fill(world, rw.keys('write', 30000, { [eve] = 1 }))

    assert.reply({ 1 }, rw.break_(world, eve, 'SPUBLISH'))

    assert.left(world, {}, rw.told('1', 'SPUBLISH'))
  end)

  it('breaks one of several readers, and tells nobody', function()
    helper.fill(world, rw.keys('read', 90000, { [redisson] = { 90000, 30000 }, [bob] = { 60000 } }))

    assert.reply({ 1 }, rw.break_(world, redisson))

    assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 } }))
  end)

  it('keeps the lock for one of Redisson, whatever became of its levels', function()
    helper.fill(world, rw.keys('read', 60000, { [redisson] = 2, [ann] = { 30000 } }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', 60000, { [redisson] = 2 }))
  end)

  it('keeps the lock for the others, and for Redisson\'s no longer than it had it', function()
    helper.fill(world, rw.keys('read', 30000, { [redisson] = 1 }))
    rw.read(world, ann, 1, { lease = 90000 })
    rw.read(world, bob, 1, { lease = 60000 })

    assert.reply({ 1 }, rw.break_(world, ann))
    assert.left(world, rw.beside_theirs(rw.keys('read', 60001, { [redisson] = 1,
      [bob] = { 60000 } }), 60001, 30000))

    assert.reply({ 1 }, rw.break_(world, bob))
    assert.left(world, rw.beside_theirs(rw.keys('read', 30000, { [redisson] = 1 }), 60001, 30000))
  end)

  it('drops other readers whose holds are over', function()
    helper.fill(world, rw.keys('read', 90000,
      { [ann] = { 90000 }, [bob] = { 60000 }, ['lk-joe:1'] = 1 }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', 60000, { [bob] = { 60000 } }))
  end)

  it('leaves no note where Redisson\'s readers were over, too', function()
    helper.fill(world, rw.keys('read', 30000, { [redisson] = 1 }))
    rw.read(world, ann, 1, { lease = 90000 })
    world:advance(30001)

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('breaks a reader whose hold is over', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = 2 }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('breaks the reading of a writer, which goes on writing for its lease', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('write', 60000, { [eve] = 1 }))
  end)

  it('breaks the writing of a writer, which goes on reading', function()
    helper.fill(world, rw.keys('write', 60000, { [eve] = 1, [ann] = { 30000 } }))

    assert.reply({ 1 }, rw.break_(world, eve))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }), rw.told('1'))
  end)

  it('leaves the lock to readers of more than 2000 fields and levels', function()
    helper.fill(world, rw.keys('read', nil, { [ann] = { 30000 }, [redisson] = 2000 }))

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', nil, { [redisson] = 2000 }))
  end)

  it('says that nobody holds the lock, and tells nobody', function()
    assert.reply({ 0 }, rw.break_(world, ann))

    assert.left(world, {})
  end)

  it('refuses when others hold the lock by now', function()
    helper.fill(world, rw.keys('read', 30000, { [bob] = { 30000 } }))

    assert.reply({ -1 }, rw.break_(world, ann))

    assert.left(world, rw.keys('read', 30000, { [bob] = { 30000 } }))
  end)

  it('refuses a lock of another kind', function()
    local before = { job = helper.hash({ [ann] = '1' }, 30000) }
    helper.fill(world, before)

    assert.reply({ -1 }, rw.break_(world, ann))

    assert.left(world, before)
  end)

  it('takes the mode for nobody\'s name', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))

    assert.refused('LKARG', 'owner', rw.break_(world, 'mode'))

    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
  end)

  it('tells once when the call runs twice', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    rw.break_(world, ann)

    assert.reply({ 0 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  it('frees the lock on a full server', function()
    helper.fill(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    world:set_oom(true)

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, {}, rw.told('0'))
  end)

  for _, name in ipairs({ 'a{b}', '{b}a' }) do
    it('finds the levels of a lock with braces in its name: ' .. name, function()
      local level = name .. ':' .. ann .. ':rwlock_timeout:1'
      local channel = 'redisson_rwlock:' .. name
      helper.fill(world, { [name] = helper.hash({ mode = 'read', [ann] = '1' }, 30000),
        [level] = helper.string('1', 30000) })

      assert.reply({ 1 }, world:eval('rw/break', { name, 'latchkey_rw_theirs:' .. name,
        'latchkey_rw_whole:' .. name }, { ann, channel, 'PUBLISH' }))

      assert.left(world, {}, { { verb = 'PUBLISH', channel = channel, message = '0' } })
    end)
  end

  -- Redisson's readers have as many levels as their count says, latchkey's have one. Fields and
  -- levels are looked at: 2000 in all.
  for _, case in ipairs({ { 1998, true }, { 1999, false } }) do
    it(('%s at %d levels of a reader'):format(case[2] and 'looks' or 'does not look', case[1]),
      function()
        local keys = rw.keys('read', 60000, { [ann] = { 30000 }, [redisson] = case[1] })
        keys[rw.level(redisson, case[1])] = helper.string('1', 90000)
        helper.fill(world, keys)

        assert.reply({ 1 }, rw.break_(world, ann))

        local left = rw.keys('read', case[2] and 90000 or 60000, { [redisson] = case[1] })
        left[rw.level(redisson, case[1])] = helper.string('1', 90000)
        assert.left(world, left)
      end)
  end

  for _, case in ipairs({ { 1999, true }, { 2000, false } }) do
    it(('%s beside %d fields of readers'):format(case[2] and 'looks' or 'does not look', case[1]),
      function()
        local others = rw.fill_readers(world, case[1], 60000)
        helper.fill(world, rw.keys('read', 60000, { [ann] = { 30000 } }))

        assert.reply({ 1 }, rw.break_(world, ann))

        assert.left(world, case[2] and {} or others, case[2] and rw.told('0') or {})
      end)
  end

  it('looks at the first level of a reader of latchkey, and at no level that cannot be', function()
    local keys = rw.keys('read', 90000, { [ann] = { 30000 }, [bob] = 1 })
    keys[rw.level(bob, 0)] = helper.string('1', 60000)
    keys[rw.level(bob, 2)] = helper.string('1', 60000)
    helper.fill(world, keys)

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, { [rw.level(bob, 0)] = helper.string('1', 60000),
      [rw.level(bob, 2)] = helper.string('1', 60000) }, rw.told('0'))
  end)

  it('looks at no second level of a reader of latchkey', function()
    local keys = rw.keys('read', 90000, { [ann] = { 30000 }, [bob] = { 60000 } })
    keys[rw.level(bob, 2)] = helper.string('1', 80000)
    helper.fill(world, keys)

    assert.reply({ 1 }, rw.break_(world, ann))

    local left = rw.keys('read', 60000, { [bob] = { 60000 } })
    left[rw.level(bob, 2)] = helper.string('1', 80000)
    assert.left(world, left)
  end)

  it('breaks a reader whose count says nothing: it has one level', function()
    local keys = rw.keys('read', 30000, { [ann] = { 30000 } })
    keys.job.value[ann] = 'x'
    keys[rw.level(ann, 2)] = helper.string('1', 30000)
    keys[rw.level(ann, 0)] = helper.string('1', 30000)
    helper.fill(world, keys)

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, { [rw.level(ann, 0)] = helper.string('1', 30000),
      [rw.level(ann, 2)] = helper.string('1', 30000) }, rw.told('0'))
  end)

  it('breaks at most a thousand levels', function()
    local keys = { job = helper.hash({ mode = 'read', [redisson] = '1001' }, 30000) }
    for _, number in ipairs({ 1, 999, 1000, 1001 }) do
      keys[rw.level(redisson, number)] = helper.string('1', 30000)
    end
    helper.fill(world, keys)

    assert.reply({ 1 }, rw.break_(world, redisson))

    assert.left(world, { [rw.level(redisson, 1001)] = helper.string('1', 30000) }, rw.told('0'))
  end)

  it('drops a reader of Redisson whose time is over, with its last level the last of 2000',
    function()
      helper.fill(world, rw.keys('read', 30000, { [redisson] = 1996 }))
      rw.read(world, bob, 1, { lease = 90000 })
      rw.read(world, ann, 1, { lease = 60000 })
      world:advance(30001)

      assert.reply({ 1 }, rw.break_(world, ann))

      local left = rw.keys('read', 59999, { [bob] = { 59999 } })
      assert.left(world, rw.beside_theirs(left, 59999, -2))
    end)

  it('drops readers of Redisson whose time is over that are called like the mode', function()
    helper.fill(world, rw.keys('read', 30000,
      { m = 1, ['mode:2'] = 1, ['mode\0 '] = 1, ['mode '] = 1 }))
    rw.read(world, bob, 1, { lease = 90000 })
    rw.read(world, ann, 1, { lease = 60000 })
    world:advance(30001)

    assert.reply({ 1 }, rw.break_(world, ann))

    assert.left(world, rw.beside_theirs(rw.keys('read', 59999, { [bob] = { 59999 } }), 59999, -2))
  end)

  -- A level with 0 ms left is still there, and the lock must be no sooner gone than it: a PEXPIRE
  -- of 0 would delete it.
  for reader_ms = 0, 2 do
    it(('lets a reader go on that has %d ms left'):format(reader_ms), function()
      world = helper.mock_world() -- the clock of a server cannot be stopped there
      helper.fill(world, rw.keys('read', 90000, { [ann] = { 90000 }, [bob] = { 30000 } }))
      world:advance(30000 - reader_ms)

      assert.reply({ 1 }, rw.break_(world, ann))

      assert.left(world, { job = helper.hash({ mode = 'read', [bob] = '1' },
        math.max(reader_ms, 1)),
        [rw.level(bob, 1)] = helper.string('1', reader_ms) })
    end)
  end
end)
