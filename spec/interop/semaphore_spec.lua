-- SPDX-License-Identifier: Apache-2.0
-- One semaphore, used by latchkey and by Redisson's RSemaphore in turn.
local Player = require('interop.player.semaphore')

local helper = require('helper')
local recorded = require('support.recorded')
local string_ = helper.string

describe('a semaphore shared with Redisson', function()
  for _, name in ipairs({ 'job', '{a}:job' }) do
    describe('by the name ' .. name, function()
      local channel = name == 'job' and 'redisson_sc:{job}' or 'redisson_sc:{a}:job'
      local record = (name == 'job' and 'latchkey_seq:{job}' or 'latchkey_seq:{a}:job') .. ':lk-ann'
      local world, player, seq

      before_each(function()
        world, seq = helper.world(), 0
        player = Player:new(world, { name = name })
      end)

      -- The caller and its next seq stand behind the other arguments, before what is optional.
      local function call(verb, args, optional)
        seq = seq + 1
        local all = { unpack(args) }
        for _, value in ipairs({ 'lk-ann', seq, optional }) do
          table.insert(all, value)
        end
        return world:eval('semaphore/' .. verb, { name, record }, all)
      end

      local function told(message)
        return { { verb = 'PUBLISH', channel = channel, message = message } }
      end

      it('has one number for both', function()
        assert.equal(1, player:try_set(3))
        assert.reply({ 0, 3 }, call('set', { 9, channel, 'PUBLISH' }))
        assert.reply({ 1, 1 }, call('acquire', { 2 }))
        assert.equal(1, player:available())
        assert.equal(0, player:try_acquire(2))
        assert.equal(1, player:try_acquire(1))
        assert.reply({ 0, -1, 0 }, call('acquire', { 1 }))
        player:release(1)
        assert.reply({ 1, 0 }, call('acquire', { 1 }))
      end)

      it('that latchkey sets is set for Redisson', function()
        assert.reply({ 1, 2 }, call('set', { 2, channel, 'PUBLISH' }))

        assert.equal(0, player:try_set(5))
        assert.equal(1, player:release_if_exists(1))
        assert.equal(3, player:drain())
      end)

      it('listens on one channel, for a number of free permits', function()
        player:try_set(0)
        world:messages()

        player:release(1)
        assert.same(told('1'), world:messages())
        call('release', { 1, channel, 'PUBLISH' })

        assert.same(told('2'), world:messages())
        assert.equal(channel, player:channel())
      end)

      it('that Redisson has brought below zero is no negative message of latchkey\'s', function()
        player:try_set(1)
        player:try_acquire(1)
        player:add(-3)
        world:messages()

        assert.reply({ 1, -2 }, call('release', { 1, channel, 'PUBLISH' }))
        assert.reply({ 1, -1 }, call('add', { 1, 'RAISE', channel, 'PUBLISH' }))

        assert.same({}, world:messages())
        assert.equal(-1, player:available())
      end)

      it('keeps the life that Redisson gave it, where Redisson itself would end that', function()
        player:try_set(5, 90000)
        world:messages()

        call('add', { 2, 'RAISE', channel, 'PUBLISH' })
        call('drain', {})

        assert.left(world, { [name] = string_('0', 90000), [record] = recorded.record(2, 1, 7) },
          told('7'))
      end)

      it('that is given back too often by Redisson takes no more from latchkey', function()
        player:try_set(1)
        player:release(1)

        assert.reply({ -1, 2 }, call('release', { 1, channel, 'PUBLISH' }, 1))

        assert.equal(2, player:available())
      end)
    end)
  end
end)
