-- SPDX-License-Identifier: Apache-2.0
-- A string lock between latchkey and the many clients that take it with SET NX PX.
local Client = require('interop.player.mutex')
local helper = require('helper')
local about, text = helper.about, helper.string

describe('a mutex between latchkey and a client of SET NX PX', function()
  local ann = 'lk-ann:1'
  local channel = 'latchkey_mutex:{job}'
  local world, joe

  before_each(function()
    world = helper.world()
    joe = Client:new(world, { owner = '9f86d081884c7d659a2feaa0c55ad015' })
  end)

  local function acquire(lease)
    return world:eval('mutex/acquire', { 'job' }, { lease, ann })
  end

  local function release()
    return world:eval('mutex/release', { 'job' }, { ann, channel, 'PUBLISH' })
  end

  it('is latchkey\'s until it is released; who only asks the server learns nothing', function()
    assert.reply({ 1 }, acquire(30000))
    assert.is_false(joe:lock(60000))
    assert.is_false(joe:renew(60000))
    assert.is_false(joe:unlock())
    assert.left(world, { job = text(ann, 30000) })

    assert.reply({ 1 }, release())
    assert.left(world, {}, { { verb = 'PUBLISH', channel = channel, message = '0' } })

    assert.is_true(joe:lock(60000))
    assert.left(world, { job = text(joe.owner, 60000) })
  end)

  it('is the other\'s until it is released, and nobody is told', function()
    assert.is_true(joe:lock(60000))
    assert.reply({ 0, about(60000) }, acquire(30000))
    assert.reply({ -1, about(60000) }, world:eval('mutex/renew', { 'job' }, { 30000, ann }))
    assert.reply({ -1 }, release())
    assert.left(world, { job = text(joe.owner, 60000) })

    assert.is_true(joe:unlock())
    assert.left(world, {})

    assert.reply({ 1 }, acquire(30000))
  end)

  it('is the next one\'s when the lease is over; nothing of the first\'s works then', function()
    acquire(30000)
    world:advance(30001)
    assert.is_true(joe:lock(60000))
    assert.reply({ -1 }, release())
    assert.left(world, { job = text(joe.owner, 60000) })

    world:advance(60001)
    assert.reply({ 1 }, acquire(90000))
    assert.is_false(joe:unlock())

    assert.left(world, { job = text(ann, 90000) })
  end)

  it('without a lease is waited for by looking again', function()
    world:command('SET', 'job', 'somebody')

    assert.reply({ 0, -1 }, acquire(30000))

    assert.left(world, { job = text('somebody') })
  end)
end)
