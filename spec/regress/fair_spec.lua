-- SPDX-License-Identifier: Apache-2.0
-- What was wrong with fair locks once.
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

describe('a fair lock', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  -- It queued the caller, and then failed: an entry that nobody had asked for again.
  it('queues nobody where the records are of another type', function()
    fair.fill(world, { holder = 'c0ffee-1:1' })
    helper.fill(world, { [fair.KEYS[4]] = helper.string('value', 60000) })
    local before = helper.dump(world)

    assert.refused('WRONGTYPE', 'wrong kind', fair.acquire(world, 'lk-ann:1'))

    assert.left(world, before)
  end)

  -- The lease of acquire was granted, the one of this call was promised.
  it('that is free is held for at least the lease of the heartbeat that found it', function()
    fair.fill(world, { { 'lk-ann:1', score = 300000, beat = 50000, lease = 1000 } })

    assert.reply({ 1 }, fair.wait_renew(world, 'lk-ann:1', 30000))

    assert.left(world, fair.keys({ holder = 'lk-ann:1', lease = 30000 }))
    assert.reply({ 0, about(30000), 0, 0 }, fair.acquire(world, 'lk-bob:1'))
  end)
end)
