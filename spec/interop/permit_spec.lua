-- SPDX-License-Identifier: Apache-2.0
-- Permits with leases, used by latchkey and by Redisson's RPermitExpirableSemaphore in turn.
local Redisson = require('interop.player.permit')
local helper = require('helper')
local permit = require('support.permit')
local about = helper.about

for _, name in ipairs({ 'job', '{a}:job' }) do
  describe(('permits by the name %s, shared with Redisson:'):format(name), function()
    local tagged = name == 'job' and '{job}' or name
    local keys, channel = { name, tagged .. ':timeout' }, 'redisson_sc:' .. tagged
    local world, redisson, seq

    before_each(function()
      world, seq = helper.world(), 0
      redisson = Redisson:new(world, { name = name })
      redisson:try_set(2)
      world:messages()
    end)

    local function set(total, mode)
      seq = seq + 1
      local all = { keys[1], keys[2], 'latchkey_seq:' .. tagged .. ':lk-ann' }
      return world:eval('permit/set', all, { total, mode, channel, 'PUBLISH', 'lk-ann', seq })
    end

    local function acquire(ids, lease)
      return world:eval('permit/acquire', keys, { lease or 30000, channel, 'PUBLISH', unpack(ids) })
    end

    local function renew(id)
      return world:eval('permit/renew', { keys[2] }, { 60000, id })
    end

    local function release(id)
      return world:eval('permit/release', keys, { channel, 'PUBLISH', id })
    end

    local one, two, three = permit.id(1), permit.id(2), permit.id(3)

    it('both know the total that either has set', function()
      assert.reply({ 1, 2 }, set(2, 'INIT'))
      assert.reply({ 0, 2 }, set(3, 'INIT'))
      assert.reply({ 1, 3 }, set(3, 'CHANGE'))
      assert.equal(3, redisson:total())

      redisson:set(5)

      assert.reply({ 1, 5 }, set(5, 'INIT'))
    end)

    it('what latchkey takes is held for Redisson, with its lease', function()
      assert.reply({ 1 }, acquire({ one, two }, 30000))

      assert.equal(2, redisson:acquired())
      assert.equal(0, redisson:available())
      assert.reply(about(30000), redisson:remaining(one))
      assert.reply(about(30000), redisson:acquire({ three }, 10000))
    end)

    it('what Redisson takes is held for latchkey, with its lease', function()
      assert.equal('OK', redisson:acquire({ one, two }, 40000))

      assert.reply({ 0, about(40000) }, acquire({ three }))
      assert.reply({ 1, -1, 0, 2, one, about(40000), two, about(40000) },
        world:eval('permit/inspect', keys, {}))
    end)

    it('either takes what the lease of the other has ended', function()
      acquire({ one }, 15000)
      redisson:acquire({ two }, 15000)
      world:advance(30001)

      assert.reply({ 1 }, acquire({ three }, 15000))
      assert.equal(1, redisson:available())
      world:advance(30001)

      assert.equal('OK', redisson:acquire({ one, two }, 15000))
      assert.reply({ -1, 1 }, renew(three))
    end)

    it('either gives back what the other has taken, once', function()
      acquire({ one })
      redisson:acquire({ two }, 30000)

      assert.equal(1, redisson:release(one))
      assert.reply({ -1, 0 }, release(one))
      assert.reply({ 1 }, release(two))
      assert.equal(0, redisson:release(two))

      assert.equal(2, redisson:available())
    end)

    it('either tells the other how many are free, on one channel', function()
      acquire({ one, two })

      release(one)
      assert.same({ { verb = 'PUBLISH', channel = channel, message = '1' } }, world:messages())
      redisson:release(two)

      assert.same({ { verb = 'PUBLISH', channel = channel, message = '2' } }, world:messages())
      assert.equal(channel, redisson:channel())
    end)

    it('what Redisson keeps for ever never ends, and no wait is named for it', function()
      redisson:acquire({ one, two })
      world:advance(86400000)

      assert.reply({ 0, -1 }, acquire({ three }))
      assert.reply({ 1 }, renew(one))
      assert.equal(-1, redisson:remaining(one))
      assert.reply({ 1 }, release(one))
    end)

    it('a lease that Redisson has updated is not shortened', function()
      acquire({ one }, 30000)
      assert.equal(1, redisson:update_lease(one, 90000))

      assert.reply({ 1 }, renew(one))

      assert.reply(about(90000), redisson:remaining(one))
    end)

    it('a life that Redisson has given the number is that of the leases, too', function()
      world:command('PEXPIRE', name, 90000)

      assert.reply({ 1 }, acquire({ one }))

      assert.left(world, { [keys[1]] = helper.string('1', 90000),
        [keys[2]] = helper.zset({ { one, '@+30000' } }, 90000) })
    end)

    it('a Redisson whose clock is ahead ends leases early, and latchkey says that', function()
      acquire({ one }, 30000)
      local ahead = Redisson:new(world, { name = name, skew_ms = 60000 })

      assert.equal(2, ahead:available())

      assert.reply({ -1, 1 }, renew(one))
      assert.reply({ -1, 0 }, release(one))
    end)
  end)
end

describe('permits shared with Redisson', function()
  it('that end by the thousand, at which its own scripts fail, are taken again', function()
    local world = helper.world()
    local redisson = Redisson:new(world)
    redisson:try_set(0)
    permit.fill_ended(world, 9000)

    for number = 9001, 9009 do
      assert.reply({ 1 }, world:eval('permit/acquire', permit.KEYS,
        { 30000, permit.CHANNEL, 'PUBLISH', permit.id(number) }))
    end

    assert.equal(9, redisson:acquired())
    assert.equal(9000 - 9, redisson:available())
  end)
end)
