-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, text = helper.about, helper.string

describe('mutex/acquire', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function acquire(owner, lease)
    return world:eval('mutex/acquire', { 'job' }, { lease, owner })
  end

  it('takes a free lock for the lease', function()
    assert.reply({ 1 }, acquire(ann, 30000))

    assert.left(world, { job = text(ann, 30000) })
  end)

  for _, lease in ipairs({ 50, 86400000 }) do
    it(('takes a lease of %d ms'):format(lease), function()
      assert.reply({ 1 }, acquire(ann, lease))

      assert.left(world, { job = text(ann, lease) })
    end)
  end

  it('refuses another owner and says how long the lease lasts', function()
    acquire(ann, 30000)

    assert.reply({ 0, about(30000) }, acquire(bob, 60000))

    assert.left(world, { job = text(ann, 30000) })
  end)

  it('says -1 when the lock of another owner has no lease', function()
    helper.fill(world, { job = text(bob) })

    assert.reply({ 0, -1 }, acquire(ann, 30000))

    assert.left(world, { job = text(bob) })
  end)

  it('takes the lock when the lease of its holder has ended', function()
    acquire(ann, 30000)
    world:advance(30001)

    assert.reply({ 1 }, acquire(bob, 60000))

    assert.left(world, { job = text(bob, 60000) })
  end)

  it('keeps the locks of different names apart', function()
    acquire(ann, 30000)

    assert.reply({ 1 }, world:eval('mutex/acquire', { 'other' }, { 60000, bob }))

    assert.left(world, { job = text(ann, 30000), other = text(bob, 60000) })
  end)

  it('answers the same when the call runs twice, and counts the lease anew', function()
    acquire(ann, 30000)
    world:advance(15000)

    assert.reply({ 1 }, acquire(ann, 30000))

    assert.left(world, { job = text(ann, 30000) })
  end)

  it('does not shorten the lease when an earlier copy or a renewal made it longer', function()
    helper.fill(world, { job = text(ann, 60000) })

    assert.reply({ 1 }, acquire(ann, 30000))

    assert.left(world, { job = text(ann, 60000) })
  end)

  it('does not end a hold that has no lease', function()
    helper.fill(world, { job = text(ann) })

    assert.reply({ 1 }, acquire(ann, 30000))

    assert.left(world, { job = text(ann) })
  end)

  it('that runs after the release leaves a stray that ends with its lease', function()
    acquire(ann, 30000)
    world:eval('mutex/release', { 'job' }, { ann, 'latchkey_mutex:{job}', 'PUBLISH' })
    world:messages()

    assert.reply({ 1 }, acquire(ann, 30000))

    assert.left(world, { job = text(ann, 30000) })
    world:advance(30001)
    assert.left(world, {})
  end)

  it('refuses a name that a client of another library holds with bytes of its own', function()
    helper.fill(world, { job = text('\0\1\255', 30000) })

    assert.reply({ 0, about(30000) }, acquire(ann, 30000))

    assert.left(world, { job = text('\0\1\255', 30000) })
  end)

  it('takes nothing from a full server', function()
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', acquire(ann, 30000))

    assert.left(world, {})
  end)
end)
