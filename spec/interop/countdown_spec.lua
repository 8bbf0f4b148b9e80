-- SPDX-License-Identifier: Apache-2.0
-- One countdown latch, used by latchkey and by Redisson's RCountDownLatch in turn.
local Redisson = require('interop.player.countdown')
local helper = require('helper')

for _, name in ipairs({ 'job', '{a}:job' }) do
  describe(('a latch by the name %s, shared with Redisson:'):format(name), function()
    local channel = 'redisson_countdownlatch__channel__{' .. name .. '}'
    local tagged = name == 'job' and '{job}' or name
    local world, redisson, seq

    before_each(function()
      world, seq = helper.world(), 0
      redisson = Redisson:new(world, { name = name })
    end)

    local function call(verb, ...)
      seq = seq + 1
      local args = { ... }
      for _, value in ipairs({ channel, 'PUBLISH', 'lk-ann', seq }) do
        table.insert(args, value)
      end
      return world:eval('countdown/' .. verb,
        { name, 'latchkey_seq:' .. tagged .. ':lk-ann' }, args)
    end

    local function inspect()
      return world:eval('countdown/inspect', { name }, {})
    end

    local function told(message)
      return { { verb = 'PUBLISH', channel = channel, message = message } }
    end

    it('both count the same number, and either opens it for the other', function()
      assert.equal(1, redisson:try_set(3))
      assert.reply({ 0, 3 }, call('set', 9))
      assert.reply({ 1, 2 }, call('count_down', 1))
      redisson:count_down()
      assert.reply({ 1, -1, 1 }, inspect())
      world:messages()

      redisson:count_down()

      assert.same(told('0'), world:messages())
      assert.reply({ 0 }, inspect())
    end)

    it('what latchkey sets Redisson waits for, until latchkey counts it down', function()
      assert.reply({ 1, 1 }, call('set', 1))
      assert.same(told('1'), world:messages())
      assert.equal(0, redisson:try_set(5))
      assert.equal(1, redisson:count())

      assert.reply({ 1, 0 }, call('count_down', 1))

      assert.same(told('0'), world:messages())
      assert.equal(0, redisson:count())
      assert.equal(channel, redisson:channel())
    end)

    it('Redisson may count an open latch on; latchkey says that it is open', function()
      redisson:count_down()

      assert.reply({ 0 }, inspect())
      assert.reply({ -1, 0 }, call('count_down', 1))
      assert.same({}, world:messages())
    end)

    it('a reset opens it for those of Redisson too, as their own delete does not', function()
      call('set', 3)
      world:messages()

      assert.reply({ 1, 3 }, call('reset'))
      assert.same(told('0'), world:messages())

      redisson:try_set(2)
      world:messages()
      assert.equal(1, redisson:delete())
      assert.same(told('1'), world:messages())
    end)

    -- A limit that docs/reference/countdown.md names: await() sleeps on, without a message.
    it('the end of a TTL opens it, and tells nobody, whoever looks then', function()
      assert.reply({ 1, 2 }, world:eval('countdown/set',
        { name, 'latchkey_seq:' .. tagged .. ':lk-ann' },
        { 2, channel, 'PUBLISH', 'lk-ann', 1, 5000 }))
      assert.same(told('1'), world:messages())
      seq = 1

      world:advance(5001)

      assert.reply({ 0 }, inspect())
      assert.reply({ -1, 0 }, call('count_down', 1))
      assert.equal(0, redisson:count())
      assert.same({}, world:messages())
    end)

    it('after the delete of Redisson the latch is open to whoever looks', function()
      redisson:try_set(2)
      redisson:delete()

      assert.reply({ 0 }, inspect())
      assert.reply({ 0 }, call('reset'))
    end)
  end)
end
