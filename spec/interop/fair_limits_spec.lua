-- SPDX-License-Identifier: Apache-2.0
-- What one queue of both cannot keep, as docs/reference/fair.md says it. A mend shows itself here.
local Redisson = require('interop.player.fair')
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

local ANN, BOB = 'lk-ann:1', 'lk-bob:2'
local BRIEF = { heartbeat = 5000 }

describe('a limit of a fair lock between latchkey and Redisson:', function()
  local world, jim, kim, eva

  local function java(number, options)
    options = options or {}
    options.owner = ('c0ffee-%d:1'):format(number)
    return Redisson:new(world, options)
  end

  before_each(function()
    world = helper.world()
    jim, kim, eva = java(1), java(2), java(3)
  end)

  local function wait_renew(owner, heartbeat)
    return world:eval('fair/wait_renew', fair.KEYS,
      { fair.LEASE, owner, heartbeat, fair.CHANNEL, 'PUBLISH' })
  end

  local function queue()
    return table.concat(world:command('LRANGE', fair.KEYS[2], 0, -1), ' ')
  end

  -- Ann of latchkey waits behind jim, and eva behind her. Ann lives for 40 s, and then dies.
  local function outlive_score()
    jim:lock()
    fair.acquire(world, ANN, 1, BRIEF)
    eva:lock()
    for _ = 1, 20 do
      world:advance(2000)
      jim:renew()
      wait_renew(ANN, BRIEF.heartbeat)
    end
  end

  describe('behind a waiter of latchkey that lived for 35 s and then died,', function()
    -- No release and no lease that ends tells her.
    local function oversleep()
      eva = java(3, { by_score = true })
      outlive_score()
      assert.is_true(eva:lock() < 0)
      jim:give_back()
      assert.same(fair.told(ANN), world:messages())
      world:advance(60000)
      assert.same({}, world:messages())
      assert.equal(0, eva:is_locked())
    end

    it('Redisson before 3.32 sleeps on in lock() until latchkey calls', function()
      oversleep()

      fair.try(world, BOB)

      assert.same(fair.told(eva.owner), world:messages())
      assert.is_nil(eva:lock())
    end)

    it('Redisson before 3.32 sleeps without an end when its own score is over, too', function()
      oversleep()
      world:advance(300000)

      assert.reply({ 1, 1 }, fair.try(world, BOB))
      fair.release(world, BOB)

      assert.same({}, world:messages())
      assert.left(world, {})
    end)

    it('Redisson from 3.32 on looks again when the lease ends', function()
      outlive_score()
      assert.reply(about(30000), eva:lock())
      jim:give_back()

      world:advance(36000)

      assert.is_nil(eva:lock())
    end)
  end)

  describe('where a waiter of Redisson waits for 10 s at most,', function()
    before_each(function()
      jim:lock()
      assert.reply(about(30000), kim:lock(nil, 10000))
      fair.acquire(world, ANN, 1, BRIEF)
      eva:lock()
      world:advance(1000)
    end)

    -- Ann's score has 5 min for kim, and kim takes off 10 s.
    local function stays_dead()
      world:advance(290000)
      assert.equal(0, eva:is_locked())
      assert.is_not_nil(eva:lock())
      world:advance(40000)
      assert.is_nil(eva:lock())
    end

    it('one of latchkey behind it that is dead stays for 5 min more, as it acquires', function()
      jim:give_back()
      assert.is_nil(kim:lock(nil, 10000))
      kim:give_back()

      stays_dead()
    end)

    it('one of latchkey behind it that is dead stays for 5 min more, as it gives up', function()
      kim:leave(10000)
      jim:give_back()

      stays_dead()
    end)

    it('one of Redisson that is dead stays for 10 min, with one of latchkey between', function()
      jim:give_back()
      kim:lock(nil, 10000)
      kim:give_back()
      assert.reply({ 1 }, wait_renew(ANN, BRIEF.heartbeat))
      fair.acquire(world, BOB)
      fair.release(world, ANN)

      for _ = 1, 15 do
        world:advance(40000)
        assert.equal(0, wait_renew(BOB, fair.HEARTBEAT)[1])
      end
      world:advance(40000)
      assert.reply({ 1 }, wait_renew(BOB, fair.HEARTBEAT))
    end)
  end)

  for timeout, outcome in pairs({ [300000] = 'keeps', [600000] = 'loses' }) do
    it(('a waiter of latchkey %s its place, fairLockWaitTimeout %d'):format(outcome, timeout),
      function()
        jim:lock(nil, timeout)
        kim:lock(nil, timeout)
        fair.acquire(world, ANN, 1, BRIEF)
        eva:lock(nil, timeout)
        world:advance(1000)

        jim:give_back()
        assert.is_nil(kim:lock(nil, timeout))
        eva:lock(nil, timeout)

        assert.equal(outcome == 'keeps' and 0 or -1, wait_renew(ANN, BRIEF.heartbeat)[1])
      end)
  end

  local function java_person(number)
    local player = java(number)
    return {
      come = function() return player:lock() end,
      look = function() return player:lock() end,
      renew = function() return player:renew() end,
      go = function() return player:give_back() end,
    }
  end

  local function latchkey_person(number)
    local owner = ('lk-%d:%d'):format(number, number)
    return {
      come = function() return fair.acquire(world, owner) end,
      look = function() return fair.wait_renew(world, owner) end,
      renew = function() return world:eval('lock/renew', { 'job' }, { fair.LEASE, owner }) end,
      go = function() return fair.release(world, owner) end,
    }
  end

  -- Three hold the lock for 140 s each; kim is the fourth to come, and all look every 20 s.
  for kind, new in pairs({ latchkey = latchkey_person, Redisson = java_person }) do
    it('a waiter of Redisson that lives loses its place with its score, behind ' .. kind, function()
      local people = { new(11), new(12), new(13) }
      for _, person in ipairs(people) do
        person.come()
      end
      kim:lock()
      eva:lock()
      for turn, holder in ipairs(people) do
        if turn > 1 then
          holder.look()
        end
        assert.equal(kim.owner .. ' ' .. eva.owner, queue():match('%S+ %S+$'))
        for _ = 1, 7 do
          world:advance(20000)
          holder.renew()
          for next_one = turn + 1, 3 do
            people[next_one].look()
          end
          kim:lock()
          eva:lock()
        end
        holder.go()
      end

      assert.equal(eva.owner .. ' ' .. kim.owner, queue())
    end)
  end
end)
