-- SPDX-License-Identifier: Apache-2.0
-- A re-entrant lock between latchkey and Redisson, either of them first.
local Redisson = require('interop.player.lock')
local Spin = require('interop.player.spin')
local helper = require('helper')
local about, hash = helper.about, helper.hash

local CHANNEL = 'redisson_lock__channel:{job}'
local FREE = { { verb = 'PUBLISH', channel = CHANNEL, message = '0' } }

-- latchkey, with the methods of the player that the scenarios use.
local Latchkey = {}
Latchkey.__index = Latchkey

function Latchkey.new(world)
  return setmetatable({ world = world, owner = 'lk-ann:1', hold = 0 }, Latchkey)
end

function Latchkey:lock(lease)
  local reply = self.world:eval('lock/acquire', { 'job' }, { lease, self.owner, self.hold + 1 })
  if reply[1] == 1 then
    self.hold = self.hold + 1
    return nil
  end
  return reply[2]
end

function Latchkey:give_back()
  self.hold = math.max(self.hold - 1, 0)
  local reply = self.world:eval('lock/release', { 'job' }, { 30000, self.owner, self.hold, CHANNEL,
    'PUBLISH' })
  return reply[1] == 1 and (reply[2] == 0 and 1 or 0) or nil
end

function Latchkey:renew()
  return self.world:eval('lock/renew', { 'job' }, { 30000, self.owner })[1] == 1 and 1 or 0
end

function Latchkey:force_unlock()
  local reply = self.world:eval('lock/inspect', { 'job' }, {})
  return self.world:eval('lock/break', { 'job' }, { reply[4], CHANNEL, 'PUBLISH' })[1]
end

local function redisson(world)
  return Redisson:new(world)
end

local ROLES = {
  { 'latchkey before Redisson', Latchkey.new, redisson },
  { 'Redisson before latchkey', redisson, Latchkey.new },
}

for _, roles in ipairs(ROLES) do
  describe(('a lock, %s:'):format(roles[1]), function()
    local world, first, second

    before_each(function()
      world = helper.world()
      first, second = roles[2](world), roles[3](world)
    end)

    local function held(by, count, lease)
      return { job = hash({ [by.owner] = tostring(count or 1) }, lease or 30000) }
    end

    it('the second is kept out for the rest of the lease', function()
      assert.is_nil(first:lock(60000))

      assert.reply(about(60000), second:lock(30000))
      assert.left(world, held(first, 1, 60000))
    end)

    it('the second can neither give it back nor renew it', function()
      first:lock(60000)

      assert.is_nil(second:give_back())
      assert.equal(0, second:renew())
      assert.left(world, held(first, 1, 60000))
    end)

    it('the second has it after the last level is given back, and is told', function()
      first:lock(30000)
      first:lock(30000)
      assert.equal(0, first:give_back())
      assert.left(world, held(first))
      assert.reply(about(30000), second:lock(30000))

      assert.equal(1, first:give_back())
      assert.left(world, {}, FREE)
      assert.is_nil(second:lock(30000))

      assert.left(world, held(second))
    end)

    it('the second has it when the lease is over; nothing of the first\'s works then', function()
      first:lock(30000)
      world:advance(30001)
      assert.is_nil(second:lock(60000))

      assert.equal(0, first:renew())
      assert.is_nil(first:give_back())

      assert.left(world, held(second, 1, 60000))
    end)

    it('a renewal keeps the second out for longer', function()
      first:lock(30000)
      world:advance(20000)
      assert.equal(1, first:renew())

      assert.reply(about(30000), second:lock(30000))
      assert.left(world, held(first))
    end)

    it('the second sees that there is no lease', function()
      first:lock(30000)
      world:command('PERSIST', 'job')

      assert.equal(-1, second:lock(30000))
      assert.left(world, { job = hash({ [first.owner] = '1' }) })
    end)

    it('the second takes it away by force, and tells', function()
      first:lock(30000)
      first:lock(30000)

      assert.equal(1, second:force_unlock())
      assert.left(world, {}, FREE)
      assert.is_nil(first:give_back())
      assert.left(world, {})
    end)
  end)
end

describe('a lock between latchkey and Redisson', function()
  local world, ann, jim

  before_each(function()
    world = helper.world()
    ann, jim = Latchkey.new(world), redisson(world)
  end)

  it('counts latchkey\'s acquire once when it is sent twice, Redisson\'s twice', function()
    for _ = 1, 2 do
      world:eval('lock/acquire', { 'job' }, { 30000, ann.owner, 1 })
    end
    assert.left(world, { job = hash({ [ann.owner] = '1' }, 30000) })
    world:command('DEL', 'job')

    for _ = 1, 2 do
      jim:lock(30000)
    end

    assert.left(world, { job = hash({ [jim.owner] = '2' }, 30000) })
  end)

  it('keeps latchkey\'s longer lease at a further level, and takes Redisson\'s shorter', function()
    ann:lock(60000)
    ann:lock(30000)
    assert.left(world, { job = hash({ [ann.owner] = '2' }, 60000) })
    world:command('DEL', 'job')

    jim:lock(60000)
    jim:lock(30000)

    assert.left(world, { job = hash({ [jim.owner] = '2' }, 30000) })
  end)

  it('is never free for Redisson while latchkey hands it on', function()
    ann:lock(30000)

    assert.reply({ 1 }, world:eval('lock/transfer', { 'job' }, { 60000, ann.owner, 'lk-bob:1' }))

    assert.reply(about(60000), jim:lock(30000))
    assert.left(world, { job = hash({ ['lk-bob:1'] = '1' }, 60000) })
  end)

  it('is not broken where Redisson has it by now', function()
    ann:lock(30000)
    ann:give_back()
    jim:lock(60000)

    assert.reply({ -1 }, world:eval('lock/break', { 'job' }, { ann.owner, CHANNEL, 'PUBLISH' }))

    assert.left(world, { job = hash({ [jim.owner] = '1' }, 60000) }, FREE)
  end)

  it('is given back by a late copy neither of latchkey\'s nor of Redisson\'s call', function()
    local request = ('%032x'):format(1)
    local receipt = helper.string('1', 16000)
    jim:lock(30000)
    jim:unlock(request)
    ann:lock(60000)
    assert.equal(1, jim:unlock(request))
    assert.left(world, { job = hash({ [ann.owner] = '1' }, 60000),
      [jim:receipt(request)] = receipt }, FREE)

    ann:give_back()
    jim:lock(60000)
    assert.reply({ -1 }, world:eval('lock/release', { 'job' }, { 30000, ann.owner, 0, CHANNEL,
      'PUBLISH' }))

    assert.left(world, { job = hash({ [jim.owner] = '1' }, 60000),
      [jim:receipt(request)] = receipt }, FREE)
  end)

  it('is waited for by its lease where a spin lock tells nobody', function()
    local spin = Spin:new(world)
    spin:lock(30000)
    assert.reply(about(30000), ann:lock(60000))

    spin:give_back()
    assert.left(world, {})

    assert.is_nil(ann:lock(60000))
  end)

  it('has the same keys and channels with a hash tag, on a cluster', function()
    local name, channel = '{a}:job', 'redisson_lock__channel:{a}:job'
    local told = { { verb = 'SPUBLISH', channel = channel, message = '0' } }
    jim = Redisson:new(world, { name = name, publish = 'SPUBLISH' })
    assert.equal(channel, jim:channel())
    helper.listen(world, channel)

    jim:lock(30000)
    assert.reply({ 0, about(30000) }, world:eval('lock/acquire', { name }, { 30000, ann.owner, 1 }))
    jim:give_back()
    assert.left(world, {}, told)
    world:eval('lock/acquire', { name }, { 30000, ann.owner, 1 })
    assert.reply(about(30000), jim:lock(60000))
    world:eval('lock/release', { name }, { 30000, ann.owner, 0, channel, 'SPUBLISH' })

    assert.left(world, {}, told)
  end)
end)
