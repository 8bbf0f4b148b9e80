-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local rw = require('support.rw')

describe('rw/write_leave', function()
  local ann, bob = 'lk-ann:1:write', 'lk-bob:1:write'
  local world

  before_each(function()
    world = helper.world()
  end)

  it('ends the waiting, and wakes the readers that wait for it', function()
    rw.wait(world, ann)

    assert.reply({ 1 }, rw.leave(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  for _, score in ipairs({ '+inf', '1e17', '1e15', '-inf' }) do
    it('takes nobody for a writer that waits until ' .. score, function()
      helper.fill(world, { [rw.WAITERS] = helper.zset({ { bob, score } }, 60000) })
      world:command('ZADD', rw.WAITERS, 1, ann)

      assert.reply({ 1 }, rw.leave(world, ann))

      assert.left(world, {}, rw.told('1'))
    end)
  end

  it('lets others wait until a fraction of a millisecond', function()
    local ends = world:now_ms() + 60000
    local until_then = ('%.1f'):format(ends + 0.5)
    helper.fill(world, { [rw.WAITERS] = helper.zset({ { bob, until_then } }, 30000) })
    world:command('ZADD', rw.WAITERS, 1, ann)

    assert.reply({ 1 }, rw.leave(world, ann))

    assert.reply(helper.about(60000), world:command('PTTL', rw.WAITERS))
  end)

  it('tells a sharded channel when asked to', function()
    rw.wait(world, ann)

    assert.reply({ 1 }, rw.leave(world, ann, 'SPUBLISH'))

    assert.left(world, {}, rw.told('1', 'SPUBLISH'))
  end)

  it('tells nobody as long as another writer waits', function()
    rw.wait(world, bob, 5000)
    rw.wait(world, ann, 60000)

    assert.reply({ 1 }, rw.leave(world, ann))

    assert.left(world, rw.beside_waiting({}, { bob, 5000 }))
  end)

  it('wakes the readers when those that are left wait no more', function()
    helper.fill(world, { [rw.WAITERS] = helper.zset({ { bob, '@-50000' }, { ann, '@+50000' } },
      50000) })

    assert.reply({ 1 }, rw.leave(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  it('tells once when the call runs twice', function()
    rw.wait(world, ann)
    rw.leave(world, ann)

    assert.reply({ 0 }, rw.leave(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)

  it('says that it did not wait, and leaves others', function()
    rw.wait(world, bob, 50000)

    assert.reply({ 0 }, rw.leave(world, ann))

    assert.left(world, rw.beside_waiting({}, { bob, 50000 }))
  end)

  it('ends the waiting on a full server', function()
    rw.wait(world, ann)
    world:set_oom(true)

    assert.reply({ 1 }, rw.leave(world, ann))

    assert.left(world, {}, rw.told('1'))
  end)
end)
