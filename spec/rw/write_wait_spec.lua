-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')

describe('rw/write_wait', function()
  local ann, bob = 'lk-ann:1:write', 'lk-bob:1:write'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('waits until the heartbeat ends', function()
    assert.reply({ 1 }, rw.wait(world, ann, 5000))

    assert.left(world, rw.beside_waiting({}, { ann, 5000 }))
    world:advance(5001)
    assert.left(world, {})
  end)

  it('waits on with the next heartbeat', function()
    rw.wait(world, ann, 30000)
    world:advance(20000)

    assert.reply({ 1 }, rw.wait(world, ann, 30000))

    assert.left(world, rw.beside_waiting({}, { ann, 30000 }))
  end)

  for _, score in ipairs({ '+inf', '1e17', '1e15', '-inf' }) do
    it('waits, and takes nobody for a writer that waits until ' .. score, function()
      helper.fill(world, { [rw.WAITERS] = helper.zset({ { bob, score } }, 60000) })
      world:command('ZADD', rw.WAITERS, score, ann)

      assert.reply({ 1 }, rw.wait(world, ann, 5000))

      assert.left(world, rw.beside_waiting({}, { ann, 5000 }))
    end)
  end

  it('does not wait less with a shorter one', function()
    rw.wait(world, ann, 50000)

    assert.reply({ 1 }, rw.wait(world, ann, 5000))

    assert.left(world, rw.beside_waiting({}, { ann, 50000 }))
  end)

  it('waits beside others, whatever their heartbeats', function()
    rw.wait(world, bob, 50000)

    assert.reply({ 1 }, rw.wait(world, ann, 5000))

    assert.left(world, rw.beside_waiting({}, { ann, 5000 }, { bob, 50000 }))
  end)

  it('does not wait for a lock that it has', function()
    rw.write(world, ann)

    assert.reply({ -1 }, rw.wait(world, ann))

    assert.left(world, rw.keys('write', 30000, { [ann] = 1 }))
  end)

  it('leaves a lock that others have as it is', function()
    rw.read(world, 'lk-bob:2')

    assert.reply({ 1 }, rw.wait(world, ann, 5000))

    assert.left(world, rw.beside_waiting(rw.keys('read', 30000, { ['lk-bob:2'] = { 30000 } }),
      { ann, 5000 }))
  end)

  it('drops up to ten writers whose heartbeats have ended', function()
    local entries = {}
    for i = 1, 12 do
      entries[i] = { ('lk-joe:%d:write'):format(i), '@' .. i - 50000 }
    end
    helper.fill(world, { [rw.WAITERS] = helper.zset(entries, 60000) })

    assert.reply({ 1 }, rw.wait(world, ann, 30000))

    assert.left(world, { [rw.WAITERS] = helper.zset({ entries[11], entries[12],
      { ann, '@+30000' } }, 30000) })
  end)

  it('that runs after the release leaves a stray that ends with its heartbeat', function()
    rw.write(world, ann)
    rw.write_release(world, ann)
    world:messages()

    assert.reply({ 1 }, rw.wait(world, ann, 5000))

    assert.left(world, rw.beside_waiting({}, { ann, 5000 }))
    world:advance(5001)
    assert.left(world, {})
  end)

  for dead, left in pairs({ [1] = 0, [10] = 0, [11] = 1 }) do
    it(('drops of %d that died all but %d'):format(dead, left), function()
      local waiters, gone = {}, {}
      world:advance(45000) -- a moment whose last digits count
      for number = 1, dead do
        waiters[number] = { ('lk-dead:%02d:write'):format(number), number - 20000 }
        gone[number] = number > dead - left and waiters[number] or nil
      end
      waiters[dead + 1] = { bob, 30000 }
      helper.fill(world, rw.beside_waiting({}, unpack(waiters)))

      assert.reply({ 1 }, rw.wait(world, ann, 40000))

      local remaining = { gone[dead], { bob, 30000 }, { ann, 40000 } }
      if left == 0 then
        remaining = { { bob, 30000 }, { ann, 40000 } }
      end
      assert.left(world, rw.beside_waiting({}, unpack(remaining)))
    end)
  end
end)
