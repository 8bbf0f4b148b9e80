-- SPDX-License-Identifier: Apache-2.0
-- Applications of latchkey and of Redisson that share an object, as both see it: who gets it, who
-- waits, and who is woken. Redisson is the player; with tools/interop, the real one.
local Java = require('interop.both.java')
local Player = require('interop.both.player')
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

local DRIVER = os.getenv('LATCHKEY_REDISSON_DRIVER')

describe(DRIVER and 'Redisson itself and latchkey' or 'the played Redisson and latchkey', function()
  local ann = 'lk-ann:1'
  local world, heard, redisson

  -- All that was said until now.
  local function inbox()
    for _, message in ipairs(world:messages()) do
      table.insert(heard, message)
    end
    return heard
  end

  before_each(function()
    world, heard = helper.world(), {}
    redisson = DRIVER and Java.new(DRIVER, world) or Player.new(world, inbox)
  end)

  local function assert_told(channel, message)
    redisson:see(function()
      local last = inbox()[#heard]
      return last ~= nil and last.channel == channel and last.message == message
    end)
  end

  local function assert_nothing_left()
    redisson:see(function()
      return next(world:dump()) == nil
    end)
  end

  for _, kind in ipairs({ 'lock', 'spin' }) do
    describe(('share a %s:'):format(kind), function()
      for _, name in ipairs({ 'job', '{a}:job' }) do
        local channel = name == 'job' and 'redisson_lock__channel:{job}'
          or 'redisson_lock__channel:{a}:job'

        local function acquire(hold)
          return world:eval('lock/acquire', { name }, { 30000, ann, hold or 1 })
        end

        local function release(hold)
          return world:eval('lock/release', { name }, { 30000, ann, hold or 0, channel, 'PUBLISH' })
        end

        it(('what Redisson has latchkey has not, until its last unlock (%s)'):format(name),
          function()
            assert.equal(1, redisson:call('1', kind, 'try_lock', name, 60000))
            assert.equal(1, redisson:call('1', kind, 'try_lock', name, 60000))
            assert.reply({ 0, about(60000) }, acquire())
            assert.reply({ -1 }, release())

            redisson:call('1', kind, 'unlock', name)
            assert.equal(1, redisson:call('1', kind, 'hold_count', name))
            assert.reply({ 0, about(60000) }, acquire())
            redisson:call('1', kind, 'unlock', name)
            if kind == 'lock' then
              assert_told(channel, '0')
            end

            assert.reply({ 1, 1 }, acquire())
          end)

        it(('what latchkey has Redisson has not, until its last release (%s)'):format(name),
          function()
            acquire(1)
            acquire(2)
            assert.equal(0, redisson:call('1', kind, 'try_lock', name, 60000))
            assert.is_false(pcall(redisson.call, redisson, '1', kind, 'unlock', name))
            redisson:begin('1', kind, 'lock', name, 60000)

            release(1)
            assert.equal(0, redisson:call('2', kind, 'try_lock', name, 60000))
            release(0)

            assert.equal(1, redisson:await('1'))
            assert.reply({ 0, about(60000) }, acquire())
            redisson:call('1', kind, 'unlock', name)
            assert_nothing_left()
          end)

        it(('what is broken on one side is lost on the other (%s)'):format(name), function()
          redisson:call('1', kind, 'try_lock', name, 60000)
          local owner = world:eval('lock/inspect', { name }, {})[4]
          assert.reply({ 1 }, world:eval('lock/break', { name }, { owner, channel, 'PUBLISH' }))
          assert.is_false(pcall(redisson.call, redisson, '1', kind, 'unlock', name))

          acquire()
          assert.equal(1, redisson:call('2', kind, 'force_unlock', name))
          assert.reply({ -1 }, release())
          assert_nothing_left()
        end)
      end
    end)
  end

  it('draw tokens that rise, by turns', function()
    if redisson:lacks().fenced then
      pending('this Redisson has no fenced locks')
      return
    end
    local keys = { 'job', 'redisson_lock_token:{job}' }
    local channel, last = 'redisson_lock__channel:{job}', 0
    for turn = 1, 3 do
      local owner = 'lk-ann:' .. turn
      local token = redisson:call('1', 'fenced', 'try_lock_and_get_token', 'job', 60000)
      assert.is_true(token > last)
      assert.reply({ 0, about(60000) }, world:eval('fenced/acquire', keys, { 30000, owner, 1 }))
      redisson:call('1', 'fenced', 'unlock', 'job')

      local reply = world:eval('fenced/acquire', keys, { 30000, owner, 1 })
      assert.is_true(reply[3] > token)
      assert.is_nil(redisson:call('1', 'fenced', 'try_lock_and_get_token', 'job', 60000))
      world:eval('lock/release', { 'job' }, { 30000, owner, 0, channel, 'PUBLISH' })
      last = reply[3]
    end
  end)

  it('wait for a fair lock in one queue', function()
    local function see_waiting(count)
      redisson:see(function()
        local reply = fair.inspect(world)
        return reply[1] == 1 and reply[4] == count
      end)
    end

    assert.reply({ 1, 1 }, fair.acquire(world, 'lk-holder:1'))
    redisson:begin('1', 'fair', 'lock', 'job', 30000)
    see_waiting(1)
    assert.reply({ 0, about(30000), 1, 0 }, fair.acquire(world, 'lk-ann:7'))
    redisson:begin('2', 'fair', 'lock', 'job', 30000)
    see_waiting(3)
    assert.equal(0, redisson:call('3', 'fair', 'try_lock', 'job', 30000))

    fair.release(world, 'lk-holder:1')
    assert.equal(1, redisson:await('1'))
    assert.equal(0, fair.wait_renew(world, 'lk-ann:7')[1])
    redisson:call('1', 'fair', 'unlock', 'job')
    assert_told('redisson_lock__channel:{job}:lk-ann:7', '0')
    assert.reply({ 1 }, fair.wait_renew(world, 'lk-ann:7'))
    fair.release(world, 'lk-ann:7')
    assert.equal(1, redisson:await('2'))
    redisson:call('2', 'fair', 'unlock', 'job')

    assert_nothing_left()
  end)

  describe('share a read-write lock:', function()
    local rw = require('support.rw')
    local writer = 'lk-ann:2:write'

    it('both read, and each keeps the writer of the other out', function()
      assert.equal(1, redisson:call('1', 'read', 'try_lock', 'job', 60000))
      assert.reply({ 1, 1, 1 }, rw.read(world, ann))
      assert.equal(0, rw.write(world, writer)[1])
      assert.equal(0, redisson:call('2', 'write', 'try_lock', 'job', 60000))
      redisson:begin('2', 'write', 'lock', 'job', 60000)

      redisson:call('1', 'read', 'unlock', 'job')
      assert.equal(0, rw.write(world, writer)[1])
      assert.reply({ 1, 0 }, rw.read_release(world, ann))

      assert.equal(1, redisson:await('2'))
      assert.reply({ 0, about(60000) }, rw.read(world, 'lk-ann:3'))
      redisson:call('2', 'write', 'unlock', 'job')
      assert_told(rw.CHANNEL, '1')
      assert.reply({ 1, 1 }, rw.write(world, writer))
    end)

    it('a writer of latchkey that reads on lets readers of Redisson in', function()
      assert.reply({ 1, 1 }, rw.write(world, writer))
      assert.reply({ 1, 1, 0 }, rw.read(world, ann, 1, { writer = writer }))
      redisson:begin('1', 'read', 'lock', 'job', 60000)

      assert.reply({ 1, 0 }, rw.write_release(world, writer))

      assert.equal(1, redisson:await('1'))
      assert.equal(0, redisson:call('2', 'write', 'try_lock', 'job', 60000))
      assert.reply({ 1, 0 }, rw.read_release(world, ann))
      redisson:call('1', 'read', 'unlock', 'job')
      assert_nothing_left()
    end)
  end)

  it('take and give permits of a semaphore', function()
    local seq = 0
    local function call(script, arguments)
      seq = seq + 1
      table.insert(arguments, 'c1')
      table.insert(arguments, seq)
      return world:eval('semaphore/' .. script, { 'job', 'latchkey_seq:{job}:c1' }, arguments)
    end

    assert.equal(1, redisson:call('1', 'semaphore', 'try_set', 'job', 2))
    assert.equal(1, redisson:call('1', 'semaphore', 'try_acquire', 'job', 1))
    assert.reply({ 1, 0 }, call('acquire', { 1 }))
    assert.reply({ 0, -1, 0 }, call('acquire', { 1 }))
    redisson:begin('1', 'semaphore', 'acquire', 'job', 1)

    assert.reply({ 1, 1 }, call('release', { 1, 'redisson_sc:{job}', 'PUBLISH' }))

    assert.equal(1, redisson:await('1'))
    redisson:call('1', 'semaphore', 'release', 'job', 2)
    assert_told('redisson_sc:{job}', '2')
    assert.equal(2, redisson:call('1', 'semaphore', 'available', 'job'))
  end)

  it('take and give permits that have ids', function()
    local keys, id = { 'job', '{job}:timeout' }, ('\1'):rep(16)
    local told = { 'redisson_sc:{job}', 'PUBLISH' }

    assert.equal(1, redisson:call('1', 'permit', 'try_set', 'job', 2))
    local theirs = redisson:call('1', 'permit', 'try_acquire', 'job', 60000)
    assert.reply({ 1 }, world:eval('permit/acquire', keys, { 30000, told[1], told[2], id }))
    assert.is_nil(redisson:call('2', 'permit', 'try_acquire', 'job', 60000))
    redisson:begin('2', 'permit', 'acquire', 'job', 60000)

    assert.reply({ 1 }, world:eval('permit/release', keys, { told[1], told[2], id }))

    assert.equal(32, #redisson:await('2'))
    assert.equal(1, redisson:call('1', 'permit', 'try_release', 'job', theirs))
    assert.equal(0, redisson:call('1', 'permit', 'try_release', 'job', theirs))
    assert.equal(1, redisson:call('1', 'permit', 'available', 'job'))
  end)

  it('count one latch down', function()
    local channel = 'redisson_countdownlatch__channel__{job}'
    local function count_down(seq)
      return world:eval('countdown/count_down', { 'job', 'latchkey_seq:{job}:c1' },
        { 1, channel, 'PUBLISH', 'c1', seq })
    end

    assert.equal(1, redisson:call('1', 'countdown', 'try_set', 'job', 3))
    assert.reply({ 1, 2 }, count_down(1))
    redisson:begin('1', 'countdown', 'wait', 'job')
    redisson:call('2', 'countdown', 'count_down', 'job')
    assert.reply({ 1, -1, 1 }, world:eval('countdown/inspect', { 'job' }, {}))

    assert.reply({ 1, 0 }, count_down(2))

    assert.equal(1, redisson:await('1'))
    assert_told(channel, '0')
  end)
end)
