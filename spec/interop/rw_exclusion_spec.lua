-- SPDX-License-Identifier: Apache-2.0
-- A read-write lock that clients of latchkey and of Redisson try to take in every order.
local Redisson = require('interop.player.rw')
local helper = require('helper')
local rw = require('support.rw')

describe('a read-write lock between latchkey and Redisson', function()
  local world

  before_each(function()
    world = helper.world()
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

      local left = world:dump()
      left[rw.THEIRS] = nil -- a note about a hash that is gone ends by itself
      assert.same({}, left)
    end)
  end

  -- Limits that docs/reference/rw.md names: a mend shows itself here.
  describe('is written beside a reader of latchkey that counts its hold,', function()
    local ann, eve, java = 'lk-ann:1', 'lk-eve:1:write', nil

    before_each(function()
      java = Redisson:new(world)
      assert.reply({ 1, 1, 0 }, rw.read(world, ann))
      java:read_lock(5000)
    end)

    local function assert_both()
      assert.reply({ 1, 1 }, rw.write(world, eve))
      assert.equal(1, world:command('EXISTS', rw.level(ann, 1)))
    end

    it('where expire() or a MultiLock of Redisson with a lease has cut the hash', function()
      java:expire(5000)
      world:advance(5001)
      assert_both()
    end)

    it('where a reader of Redisson with a watchdog of 9 s has died', function()
      java.WATCHDOG = 9000
      java:read_renew()
      world:advance(9001)
      assert_both()
    end)

    it('but not where the lease of that reader is as short', function()
      rw.read_release(world, ann)
      rw.read(world, 'lk-ann:2', 1, { lease = 5000 })
      java:expire(5000)
      world:advance(3000)

      assert.equal(0, rw.write(world, eve)[1])
    end)
  end)
end)
