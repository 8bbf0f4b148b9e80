-- SPDX-License-Identifier: Apache-2.0
-- latchkey and Redisson on one read-write lock: each reads what the other writes.
local Redisson = require('interop.player.rw')
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('a read-write lock shared with Redisson', function()
  local ann, bob, eve = 'lk-ann:1', 'lk-bob:1', 'lk-eve:1:write'
  local world, java, java_owner

  before_each(function()
    world = helper.world()
    java = Redisson:new(world)
    java_owner = java.owner
  end)

  describe('that latchkey reads', function()
    before_each(function()
      rw.read(world, ann, 1, { lease = 60000 })
    end)

    it('is read by Redisson, too, and free when both have released it', function()
      assert.is_nil(java:read_lock(30000))
      assert.reply({ 1, 0 }, rw.read_release(world, ann))
      assert.left(world, rw.keys('read', 60000, { [java_owner] = { 30000 } }))

      assert.equal(1, java:give_back('read_unlock'))

      assert.left(world, {}, rw.told('0'))
    end)

    it('is left by Redisson for as long as latchkey reads', function()
      java:read_lock(90000)

      assert.equal(0, java:give_back('read_unlock'))

      assert.left(world, rw.keys('read', 60000, { [ann] = { 60000 } }))
    end)

    it('is not written by Redisson, which learns when to look again', function()
      assert.reply(about(60000), java:write_lock(30000))

      assert.left(world, rw.keys('read', 60000, { [ann] = { 60000 } }))
    end)

    it('wakes a Redisson writer when it is released', function()
      java:write_lock(30000)

      rw.read_release(world, ann)

      assert.left(world, {}, rw.told('0'))
      assert.is_nil(java:write_lock(30000))
    end)

    it('is lost when Redisson unlocks it by force, and its levels count no more', function()
      java:read_force_unlock()

      assert.reply({ -1, -2 }, rw.read_renew(world, ann))
      assert.reply({ -1 }, rw.read_release(world, ann))
      assert.reply({ 1, 1 }, rw.write(world, eve))

      local keys = rw.keys('write', 30000, { [eve] = 1 })
      keys[rw.level(ann, 1)] = helper.string('1', 60000)
      assert.left(world, keys, rw.told('0'))
    end)

    it('is cut to the watchdog by Redisson\'s renewal, and extended by latchkey\'s', function()
      java:read_lock()
      java:read_renew()
      assert.left(world, rw.keys('read', 30000, { [ann] = { 60000 }, [java_owner] = { 30000 } }))

      assert.reply({ 1, 1 }, rw.read_renew(world, ann, 60000))

      assert.left(world, rw.beside_theirs(rw.keys('read', 60001,
        { [ann] = { 60000 }, [java_owner] = { 30000 } }), 60001, 30000))
    end)

    it('ends with the watchdog of a Redisson reader that cut it and died', function()
      java:read_lock()
      java:read_renew()

      world:advance(30001)

      assert.reply({ -1, -2 }, rw.read_renew(world, ann, 60000))
      assert.left(world, { [rw.level(ann, 1)] = helper.string('1', 29999) })
    end)
  end)

  describe('that Redisson reads', function()
    before_each(function()
      java:read_lock(60000)
    end)

    it('is read by latchkey, too, which learns of the other', function()
      assert.reply({ 1, 1, 1 }, rw.read(world, ann, 1, { lease = 30000 }))

      assert.left(world, rw.keys('read', 60000, { [java_owner] = { 60000 }, [ann] = { 30000 } }))
    end)

    it('is not written by latchkey, which learns when to look again', function()
      assert.reply({ 0, about(60000) }, rw.write(world, eve))

      assert.left(world, rw.keys('read', 60000, { [java_owner] = { 60000 } }))
    end)

    it('is written when the message of its release has come', function()
      rw.write(world, eve)

      java:give_back('read_unlock')

      assert.left(world, {}, rw.told('0'))
      assert.reply({ 1, 1 }, rw.write(world, eve))
    end)

    it('does not wait for a writer of latchkey that waits', function()
      rw.wait(world, eve, 5000)

      assert.is_nil(Redisson:new(world, { owner = java_owner .. '2' }):read_lock(30000))

      assert.left(world, rw.beside_waiting(rw.keys('read', 60000,
        { [java_owner] = { 60000 }, [java_owner .. '2'] = { 30000 } }), { eve, 5000 }))
    end)

    it('is not written while the second hold of a reader goes on without the first', function()
      java:read_lock(90000)
      world:advance(60001)

      assert.reply({ 0, about(29999) }, rw.write(world, eve))

      assert.left(world, { job = helper.hash({ mode = 'read', [java_owner] = '2' }, 29999),
        [rw.level(java_owner, 2)] = helper.string('1', 29999) })
    end)

    it('loses a hold that is over when latchkey releases, and counts from the start', function()
      rw.read(world, ann, 1, { lease = 90000 })
      rw.read(world, bob, 1, { lease = 90000 })
      world:advance(60001)
      rw.read_release(world, ann)

      java:read_lock(30000)
      assert.left(world, rw.beside_theirs(rw.keys('read', 30000,
        { [java_owner] = { 30000 }, [bob] = { 29999 } }), 29999, -2))
      assert.equal(0, java:give_back('read_unlock'))

      assert.left(world, rw.beside_theirs(rw.keys('read', 29999, { [bob] = { 29999 } }), 29999, -2))
    end)
  end)

  it('that Redisson writes is neither read nor written by latchkey before its message', function()
    java:write_lock(60000)

    assert.reply({ 0, about(60000) }, rw.read(world, ann))
    assert.reply({ 0, about(60000) }, rw.write(world, eve))

    java:give_back('write_unlock')
    assert.left(world, {}, rw.told('1'))
  end)

  it('that Redisson writes and reads is read by latchkey when it only reads on', function()
    java:write_lock(30000)
    java:read_lock(60000)
    assert.reply({ 0, about(60000) }, rw.read(world, ann))

    java:give_back('write_unlock')

    assert.reply({ 1, 1, 1 }, rw.read(world, ann, 1, { lease = 30000 }))
    assert.left(world, rw.keys('read', 60000, { [java_owner] = { 60000 }, [ann] = { 30000 } }))
  end)

  it('that latchkey writes is neither read nor written by Redisson before its message', function()
    rw.write(world, eve, 1, { lease = 60000 })

    assert.reply(about(60000), java:read_lock(30000))
    assert.reply(about(60000), java:write_lock(30000))

    rw.write_release(world, eve)
    assert.left(world, {}, rw.told('1'))
  end)

  it('that latchkey writes and reads is read by Redisson when it only reads on', function()
    rw.write(world, eve, 1, { lease = 30000 })
    rw.read(world, 'lk-eve:2', 1, { writer = eve, lease = 60000 })
    assert.equal(1, java:write_is_locked())
    assert.equal(1, java:read_is_locked())

    rw.write_release(world, eve)

    assert.is_nil(java:read_lock(30000))
    assert.left(world, rw.keys('read', 60000,
      { ['lk-eve:2'] = { 60000 }, [java_owner] = { 30000 } }), rw.told('1'))
  end)

  it('that both read lives as long as the longest hold that is left, whoever gives back', function()
    rw.read(world, ann, 1, { lease = 45000 })
    java:read_lock(60000)
    java:read_lock(90000)
    rw.read(world, bob, 1, { lease = 30000 })

    rw.read_release(world, bob)
    assert.left(world, rw.keys('read', 90000, { [ann] = { 45000 },
      [java_owner] = { 60000, 90000 } }))
    java:give_back('read_unlock')
    assert.left(world, rw.keys('read', 60000, { [ann] = { 45000 }, [java_owner] = { 60000 } }))
    java:give_back('read_unlock')
    assert.left(world, rw.keys('read', 45000, { [ann] = { 45000 } }))
  end)

  it('keeps the lease of latchkey\'s writer that reads no more, not of Redisson\'s', function()
    rw.write(world, eve, 1, { lease = 90000 })
    rw.read(world, ann, 2, { writer = eve, lease = 30000 })
    rw.read(world, ann, 1, { writer = eve, lease = 30000 })
    rw.read_release(world, ann)
    assert.left(world, rw.keys('write', 90000, { [eve] = 1 }))
    world:command('DEL', 'job')

    java:write_lock(90000)
    java:read_lock(30000)
    java:read_lock(30000)
    java:give_back('read_unlock')

    assert.left(world, rw.keys('write', 30000, { [java:writer()] = 1, [java_owner] = { 30000 } }))
  end)

  it('has the leases of its writer added up by Redisson, not by latchkey', function()
    rw.write(world, eve)
    rw.write(world, eve, 2)
    assert.left(world, rw.keys('write', 30000, { [eve] = 2 }))
    world:command('DEL', 'job')

    java:write_lock(30000)
    java:write_lock(30000)

    assert.left(world, rw.keys('write', 60000, { [java:writer()] = 2 }))
  end)

  it('counts anew for latchkey\'s reader that returns, goes on for Redisson\'s', function()
    Redisson:new(world, { owner = java_owner .. '2' }):read_lock(90000)
    java:read_lock(30000)
    rw.read(world, ann, 1, { lease = 30000 })
    world:advance(30001)

    assert.equal(1, java:read_is_held())
    assert.reply({ -1, about(59999) }, rw.read_renew(world, ann))
    assert.reply({ -1 }, rw.read(world, ann, 2))
    assert.reply({ 1, 1, 1 }, rw.read(world, ann))
    java:read_lock(30000)

    local fields = world:dump().job.value
    assert.equal('1', fields[ann])
    assert.equal('2', fields[java_owner])
  end)

  it('is never had by its reader: latchkey says so at once, Redisson waits', function()
    rw.read(world, ann)
    assert.reply({ -2 }, rw.write(world, eve, 1, { reader = ann }))
    rw.read_release(world, ann)
    world:messages()

    java:read_lock(30000)
    assert.reply(about(30000), java:write_lock(30000))

    assert.left(world, rw.keys('read', 30000, { [java_owner] = { 30000 } }))
  end)

  it('that Redisson writes without a lease is looked at again later', function()
    java:write_lock(30000)
    world:command('PERSIST', 'job')
    assert.reply({ 0, -1 }, rw.write(world, eve))
    assert.reply({ 0, -1 }, rw.read(world, ann))

    assert.left(world, rw.keys('write', nil, { [java:writer()] = 1 }))
  end)

  it('is broken hold by hold by latchkey, as a whole by Redisson', function()
    java:read_lock(30000)
    rw.read(world, ann, 1, { lease = 60000 })
    assert.reply({ 1 }, rw.break_(world, java_owner))
    assert.left(world, rw.beside_theirs(rw.keys('read', 60000, { [ann] = { 60000 } }), 60001,
      30000))

    assert.equal(1, java:read_force_unlock())
    assert.left(world, rw.beside_theirs({ [rw.level(ann, 1)] = helper.string('1', 60000) }, 60001,
      30000), rw.told('0'))

    assert.reply({ -1 }, rw.read_release(world, ann))
    assert.reply({ 1, 1 }, rw.write(world, eve))
  end)
end)
