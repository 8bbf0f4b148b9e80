-- SPDX-License-Identifier: Apache-2.0
-- A semaphore between latchkey and Redisson: one number, one channel.
local Redisson = require('interop.player.semaphore')
local helper = require('helper')

describe('a semaphore between latchkey and Redisson', function()
  local channel = 'redisson_sc:{job}'
  local keys = { 'job', 'latchkey_seq:{job}:lk-ann' }
  local world, jim, seq

  before_each(function()
    world, seq = helper.world(), 0
    jim = Redisson:new(world)
  end)

  local function call(verb, ...)
    seq = seq + 1
    local arguments = { ... }
    table.insert(arguments, 'lk-ann')
    table.insert(arguments, seq)
    return world:eval('semaphore/' .. verb, keys, arguments)
  end

  local function free(permits, ttl)
    world:command('DEL', keys[2])
    return { job = helper.string(tostring(permits), ttl) }
  end

  local function told(permits)
    return { { verb = 'PUBLISH', channel = channel, message = tostring(permits) } }
  end

  it('is set by the first', function()
    assert.reply({ 1, 3 }, call('set', 3, channel, 'PUBLISH'))
    assert.equal(0, jim:try_set(5))
    assert.left(world, free(3), told(3))
    world:command('DEL', 'job')

    assert.equal(1, jim:try_set(5))
    assert.reply({ 0, 5 }, call('set', 3, channel, 'PUBLISH'))
    assert.left(world, free(5), told(5))
  end)

  it('gives each permit to one of them, and both tell who waits', function()
    jim:try_set(3)
    assert.reply({ 1, 1 }, call('acquire', 2))
    assert.equal(0, jim:try_acquire(2))
    assert.equal(1, jim:try_acquire(1))
    assert.reply({ 0, -1, 0 }, call('acquire', 1))
    assert.left(world, free(0), told(3))

    jim:release(1)
    assert.left(world, free(1), told(1))
    assert.reply({ 1, 3 }, call('release', 2, channel, 'PUBLISH'))
    assert.left(world, free(3), told(3))

    assert.equal(1, jim:try_acquire(3))
  end)

  it('is drained by either', function()
    jim:try_set(3)
    assert.reply({ 1, 3 }, call('drain'))
    assert.equal(0, jim:drain())
    jim:release(2)
    assert.equal(2, jim:drain())
    assert.reply({ 1, 0 }, call('drain'))
    world:messages()

    assert.left(world, free(0))
  end)

  it('below zero is told of by Redisson, whose clients fail on that, not by latchkey', function()
    jim:try_set(0)
    world:messages()
    jim:add(-3)
    assert.left(world, free(-3), told(-3))

    assert.reply({ 1, -2 }, call('release', 1, channel, 'PUBLISH'))
    assert.reply({ 1, -4 }, call('add', 2, 'LOWER', channel, 'PUBLISH'))
    assert.left(world, free(-4))

    assert.reply({ 1, 1 }, call('add', 5, 'RAISE', channel, 'PUBLISH'))
    assert.equal(1, jim:try_acquire(1))
    assert.left(world, free(0), told(1))
  end)

  it('has a bound for latchkey\'s releases, none for Redisson\'s', function()
    call('set', 2, channel, 'PUBLISH')

    assert.reply({ -1, 2 }, world:eval('semaphore/release', keys, { 1, channel, 'PUBLISH',
      'lk-ann', 2, 2 }))
    jim:release(1)

    assert.equal(3, jim:available())
  end)

  it('keeps its end when latchkey changes it, loses it when Redisson does', function()
    jim:try_set(2, 60000)
    call('add', 1, 'RAISE', channel, 'PUBLISH')
    call('drain')
    world:messages()
    assert.left(world, free(0, 60000))

    jim:add(1)

    assert.left(world, free(1), told(1))
  end)
end)
