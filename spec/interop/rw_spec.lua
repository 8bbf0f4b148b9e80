-- SPDX-License-Identifier: Apache-2.0
-- A read-write lock between latchkey and Redisson: numbered keys for the levels of readers, and one
-- hash that outlasts them.
local Redisson = require('interop.player.rw')
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('a read-write lock between latchkey and Redisson', function()
  local ann, bob, pen = 'lk-ann:1', 'lk-bob:1', 'lk-ann:2:write'
  local world, jim, joe

  before_each(function()
    world = helper.world()
    jim = Redisson:new(world)
    joe = Redisson:new(world, { owner = 'a7d41ce0-5a0e-4c57-8b7c-5d7a0f6a3b11:44' })
  end)

  it('is read by both; a writer of either waits for the longer of them', function()
    jim:read_lock(30000)
    assert.reply({ 1, 1, 1 }, rw.read(world, ann, 1, { lease = 60000 }))
    assert.left(world, rw.keys('read', 60000, { [jim.owner] = { 30000 }, [ann] = { 60000 } }))

    assert.reply({ 0, about(60000) }, rw.write(world, pen))
    assert.reply(about(60000), joe:write_lock(30000))
    assert.left(world, rw.keys('read', 60000, { [jim.owner] = { 30000 }, [ann] = { 60000 } }))
  end)

  it('is free after the last reader, who tells, whoever that is', function()
    jim:read_lock(30000)
    rw.read(world, ann)
    assert.equal(0, jim:give_back('read_unlock'))
    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }))
    assert.reply({ 1, 0 }, rw.read_release(world, ann))
    assert.left(world, {}, rw.told('0'))

    rw.read(world, ann)
    jim:read_lock(30000)
    assert.reply({ 1, 0 }, rw.read_release(world, ann))
    assert.left(world, rw.keys('read', 30000, { [jim.owner] = { 30000 } }))
    assert.equal(1, jim:give_back('read_unlock'))
    assert.left(world, {}, rw.told('0'))
  end)

  it('lives as long as the longest hold that is left, whoever gives back', function()
    rw.read(world, ann, 1, { lease = 45000 })
    jim:read_lock(60000)
    jim:read_lock(90000)
    rw.read(world, bob, 1, { lease = 30000 })

    rw.read_release(world, bob)
    assert.left(world, rw.keys('read', 90000, { [ann] = { 45000 },
      [jim.owner] = { 60000, 90000 } }))
    jim:give_back('read_unlock')
    assert.left(world, rw.keys('read', 60000, { [ann] = { 45000 }, [jim.owner] = { 60000 } }))
    jim:give_back('read_unlock')
    assert.left(world, rw.keys('read', 45000, { [ann] = { 45000 } }))
  end)

  it('is written by one of them alone', function()
    assert.reply({ 1, 1 }, rw.write(world, pen))
    assert.reply(about(30000), jim:write_lock(60000))
    assert.reply(about(30000), jim:read_lock(60000))
    assert.is_nil(jim:give_back('write_unlock'))
    assert.left(world, rw.keys('write', 30000, { [pen] = 1 }))
    assert.reply({ 1, 0 }, rw.write_release(world, pen))
    assert.left(world, {}, rw.told('1'))

    assert.is_nil(jim:write_lock(60000))
    assert.reply({ 0, about(60000) }, rw.write(world, pen))
    assert.reply({ 0, about(60000) }, rw.read(world, ann))
    assert.reply({ -1 }, rw.write_release(world, pen))
    assert.left(world, rw.keys('write', 60000, { [jim:writer()] = 1 }))
    assert.equal(1, jim:give_back('write_unlock'))
    assert.left(world, {}, rw.told('1'))
  end)

  it('wakes readers when latchkey\'s writer goes on reading, not when Redisson\'s does', function()
    rw.write(world, pen)
    rw.read(world, ann, 1, { writer = pen })
    assert.reply({ 1, 0 }, rw.write_release(world, pen))
    assert.left(world, rw.keys('read', 30000, { [ann] = { 30000 } }), rw.told('1'))
    assert.is_nil(jim:read_lock(30000))
    rw.read_release(world, ann)
    jim:give_back('read_unlock')
    world:messages()

    jim:write_lock(30000)
    jim:read_lock(30000)
    assert.equal(1, jim:give_back('write_unlock'))

    assert.left(world, rw.keys('read', 30000, { [jim.owner] = { 30000 } }))
    assert.reply({ 1, 1, 1 }, rw.read(world, ann))
  end)

  it('keeps the writer\'s lease when latchkey\'s reads no more, not Redisson\'s', function()
    rw.write(world, pen, 1, { lease = 90000 })
    rw.read(world, ann, 2, { writer = pen, lease = 30000 })
    rw.read(world, ann, 1, { writer = pen, lease = 30000 })
    rw.read_release(world, ann)
    assert.left(world, rw.keys('write', 90000, { [pen] = 1 }))
    world:command('DEL', 'job')

    jim:write_lock(90000)
    jim:read_lock(30000)
    jim:read_lock(30000)
    jim:give_back('read_unlock')

    assert.left(world, rw.keys('write', 30000, { [jim:writer()] = 1, [jim.owner] = { 30000 } }))
  end)

  it('has its writer\'s leases added up by Redisson, not by latchkey', function()
    rw.write(world, pen)
    rw.write(world, pen, 2)
    assert.left(world, rw.keys('write', 30000, { [pen] = 2 }))
    world:command('DEL', 'job')

    jim:write_lock(30000)
    jim:write_lock(30000)

    assert.left(world, rw.keys('write', 60000, { [jim:writer()] = 2 }))
  end)

  it('is had by latchkey\'s writer while the field of a dead reader is still there', function()
    jim:read_lock(30000)
    rw.read(world, ann, 1, { lease = 90000 })
    world:advance(30001)
    rw.read_release(world, ann)
    assert.left(world, {}, rw.told('0'))

    rw.read(world, bob, 1, { lease = 30000 })
    jim:read_lock(90000)
    world:advance(30001)
    jim:give_back('read_unlock')
    assert.left(world, {}, rw.told('0'))
    assert.reply({ 1, 1 }, rw.write(world, pen))
  end)

  it('counts anew for latchkey\'s reader that returns, goes on for Redisson\'s', function()
    joe:read_lock(90000)
    jim:read_lock(30000)
    rw.read(world, ann, 1, { lease = 30000 })
    world:advance(30001)

    assert.equal(1, jim:read_is_held())
    assert.reply({ -1, about(59999) }, rw.read_renew(world, ann))
    assert.reply({ -1 }, rw.read(world, ann, 2))
    assert.reply({ 1, 1, 1 }, rw.read(world, ann))
    jim:read_lock(30000)

    local fields = world:dump().job.value
    assert.equal('1', fields[ann])
    assert.equal('2', fields[jim.owner])
  end)

  it('is cut short by Redisson\'s watchdog, and made longer by latchkey\'s renewal', function()
    jim:read_lock()
    rw.read(world, ann, 1, { lease = 90000 })
    jim:read_renew()
    assert.left(world, rw.keys('read', 30000, { [jim.owner] = { 30000 }, [ann] = { 90000 } }))

    assert.reply({ 1, 1 }, rw.read_renew(world, ann, 90000))

    assert.left(world, rw.keys('read', 90000, { [jim.owner] = { 30000 }, [ann] = { 90000 } }))
  end)

  it('is never had by its reader: latchkey says so at once, Redisson waits', function()
    rw.read(world, ann)
    assert.reply({ -2 }, rw.write(world, pen, 1, { reader = ann }))
    rw.read_release(world, ann)
    world:messages()

    jim:read_lock(30000)
    assert.reply(about(30000), jim:write_lock(30000))

    assert.left(world, rw.keys('read', 30000, { [jim.owner] = { 30000 } }))
  end)

  it('is kept for a waiting writer by latchkey\'s readers, not by Redisson\'s', function()
    jim:read_lock(30000)
    rw.wait(world, pen)

    assert.reply({ 0, about(50000) }, rw.read(world, ann))
    assert.is_nil(joe:read_lock(30000))
    joe:give_back('read_unlock')
    jim:give_back('read_unlock')

    assert.reply({ 1, 1 }, rw.write(world, pen))
  end)

  it('without a lease is looked at again later', function()
    jim:write_lock(30000)
    world:command('PERSIST', 'job')
    assert.reply({ 0, -1 }, rw.write(world, pen))
    assert.reply({ 0, -1 }, rw.read(world, ann))

    assert.left(world, rw.keys('write', nil, { [jim:writer()] = 1 }))
  end)

  it('is broken hold by hold by latchkey, as a whole by Redisson', function()
    jim:read_lock(30000)
    rw.read(world, ann, 1, { lease = 60000 })
    assert.reply({ 1 }, rw.break_(world, jim.owner))
    assert.left(world, rw.keys('read', 60000, { [ann] = { 60000 } }))

    assert.equal(1, joe:read_force_unlock())
    assert.left(world, { [rw.level(ann, 1)] = helper.string('1', 60000) }, rw.told('0'))

    assert.reply({ -1 }, rw.read_release(world, ann))
    assert.reply({ 1, 1 }, rw.write(world, pen))
  end)

  -- Clients that try whatever they like, and give back more often than they take, so that writers
  -- have their chance. Each counts the levels that it has.
  local CHOICES = { 'read', 'write', 'unread', 'unread', 'unwrite', 'unwrite' }

  local function latchkey_client(number)
    local reader, writer = ('lk-ann:%d'):format(number), ('lk-ann:%d:write'):format(number + 1)
    local self = { reads = 0, writes = 0 }
    function self.read()
      local other = self.writes > 0 and writer or ''
      return rw.read(world, reader, self.reads + 1, { writer = other })[1] == 1
    end
    function self.write()
      local other = self.reads > 0 and reader or ''
      return rw.write(world, writer, self.writes + 1, { reader = other })[1] == 1
    end
    function self.unread()
      return rw.read_release(world, reader, self.reads - 1)[1] == 1
    end
    function self.unwrite()
      return rw.write_release(world, writer, self.writes - 1)[1] == 1
    end
    return self
  end

  local function redisson_client(number)
    local player = Redisson:new(world, { owner = 'c0ffee-1:' .. number })
    return {
      reads = 0, writes = 0,
      read = function() return player:read_lock(30000) == nil end,
      write = function() return player:write_lock(30000) == nil end,
      unread = function() return player:give_back('read_unlock') ~= nil end,
      unwrite = function() return player:give_back('write_unlock') ~= nil end,
    }
  end

  local function step(client, choice)
    if choice == 'read' and client.read() then
      client.reads = client.reads + 1
    elseif choice == 'write' and client.write() then
      client.writes = client.writes + 1
    elseif choice == 'unread' and client.reads > 0 then
      assert.is_true(client.unread())
      client.reads = client.reads - 1
    elseif choice == 'unwrite' and client.writes > 0 then
      assert.is_true(client.unwrite())
      client.writes = client.writes - 1
    end
  end

  local function assert_exclusive(clients)
    for i, writer in ipairs(clients) do
      for j, other in ipairs(clients) do
        assert.is_true(i == j or writer.writes == 0 or other.reads + other.writes == 0)
      end
    end
  end

  for seed = 1, 10 do
    it(('never has a writer beside others, whatever they try: seed %d'):format(seed), function()
      local state = seed
      local function random(n)
        state = (state * 1103515245 + 12345) % 2 ^ 31
        return math.floor(state / 2 ^ 16) % n + 1
      end
      local clients = { latchkey_client(1), redisson_client(1), latchkey_client(3),
        redisson_client(2) }

      for _ = 1, 100 do
        step(clients[random(4)], CHOICES[random(6)])
        assert_exclusive(clients)
      end
      for _, client in ipairs(clients) do
        for _ = 1, client.reads do
          step(client, 'unread')
        end
        for _ = 1, client.writes do
          step(client, 'unwrite')
        end
      end

      assert.same({}, world:dump())
    end)
  end
end)
