-- SPDX-License-Identifier: Apache-2.0
-- Several locks between latchkey, which takes them in one step, and Redisson's MultiLock, which
-- takes one after the other.
local Redisson = require('interop.player.lock')
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('several locks of one slot', function()
  local ann, jim = 'lk-ann:1', '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'
  local names = { '{job}:a', '{job}:b', '{job}:c' }
  local world, multi

  before_each(function()
    world, multi = helper.world(), {}
    for i, name in ipairs(names) do
      multi[i] = Redisson:new(world, { name = name, owner = jim })
    end
  end)

  local function channels()
    local list = {}
    for i, lock in ipairs(multi) do
      list[i] = lock:channel()
    end
    return list
  end

  local function acquire(owner, hold, lease)
    return world:eval('lock/acquire_all', names, { lease or 30000, owner, hold or 1 })
  end

  local function release(owner, hold)
    return world:eval('lock/release_all', names,
      { 30000, owner, hold or 0, 'PUBLISH', unpack(channels()) })
  end

  local function left(world_)
    return { keys = helper.dump(world_), messages = world_:messages() }
  end

  it('leave what a MultiLock leaves, level by level, and tell what it tells', function()
    local steps = {}
    for _, lease in ipairs({ 30000, 60000 }) do
      for _, lock in ipairs(multi) do
        assert.is_nil(lock:lock(lease))
      end
      table.insert(steps, left(world))
    end
    for _ = 1, 2 do
      for _, lock in ipairs(multi) do
        lock:give_back()
      end
      table.insert(steps, left(world))
    end

    world = helper.world()
    for i, call in ipairs({ function() return acquire(jim, 1, 30000) end,
      function() return acquire(jim, 2, 60000) end, function() return release(jim, 1) end,
      function() return release(jim, 0) end }) do
      assert.equal(1, call()[1])
      assert.left(world, steps[i].keys, steps[i].messages)
    end
  end)

  it('are taken when the one is free that Redisson held', function()
    multi[2]:lock(60000)
    assert.reply({ 0, about(60000), 2 }, acquire(ann))
    assert.left(world, { [names[2]] = hash({ [jim] = '1' }, 60000) })

    multi[2]:give_back()
    assert.left(world, {}, { { verb = 'PUBLISH', channel = channels()[2], message = '0' } })

    assert.reply({ 1, 1 }, acquire(ann))
  end)

  it('keep a MultiLock out, each of them, and wake it', function()
    acquire(ann, 1, 60000)

    for _, lock in ipairs(multi) do
      assert.reply(about(60000), lock:lock(30000))
      assert.is_nil(lock:give_back())
    end
    release(ann)

    assert.left(world, {}, {
      { verb = 'PUBLISH', channel = channels()[1], message = '0' },
      { verb = 'PUBLISH', channel = channels()[2], message = '0' },
      { verb = 'PUBLISH', channel = channels()[3], message = '0' },
    })
    for _, lock in ipairs(multi) do
      assert.is_nil(lock:lock(30000))
    end
  end)

  it('block nobody who has taken some of them in another order', function()
    multi[3]:lock(60000)
    assert.reply({ 0, about(60000), 3 }, acquire(ann))

    assert.is_nil(multi[2]:lock(60000))
    assert.is_nil(multi[1]:lock(60000))

    assert.left(world, { [names[1]] = hash({ [jim] = '1' }, 60000),
      [names[2]] = hash({ [jim] = '1' }, 60000), [names[3]] = hash({ [jim] = '1' }, 60000) })
  end)

  it('are given back but for the one that Redisson has by now', function()
    acquire(ann, 1, 30000)
    world:command('DEL', names[2])
    multi[2]:lock(60000)

    assert.reply({ -1, 2 }, release(ann))

    assert.left(world, { [names[2]] = hash({ [jim] = '1' }, 60000) }, {
      { verb = 'PUBLISH', channel = channels()[1], message = '0' },
      { verb = 'PUBLISH', channel = channels()[3], message = '0' },
    })
  end)

  it('are renewed one by one: the one that was lost, or cannot be, delays no other', function()
    acquire(ann, 1, 30000)
    multi[1]:force_unlock()
    world:command('SET', names[2], 'something else')
    world:messages()

    assert.reply({ -1, -2 }, world:eval('lock/renew', { names[1] }, { 60000, ann }))
    assert.refused('WRONGTYPE', 'wrong kind',
      world:eval('lock/renew', { names[2] }, { 60000, ann }))
    assert.reply({ 1 }, world:eval('lock/renew', { names[3] }, { 60000, ann }))

    assert.left(world, { [names[2]] = helper.string('something else'),
      [names[3]] = hash({ [ann] = '1' }, 60000) })
  end)
end)
