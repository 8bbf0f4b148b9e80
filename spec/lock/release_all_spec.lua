-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash = helper.hash

describe('lock/release_all', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local a, b, c = '{job}:a', '{job}:b', '{job}:c'
  local world

  local function channel_of(lock)
    return 'redisson_lock__channel:' .. lock
  end

  before_each(function()
    world = helper.world()
  end)

  local function release(owner, hold, options)
    options = options or {}
    local locks, channels = options.locks or { a, b, c }, {}
    for i, lock in ipairs(locks) do
      channels[i] = channel_of(lock)
    end
    return world:eval('lock/release_all', locks, { options.lease or 30000, owner, hold,
      options.publish or 'PUBLISH', unpack(options.channels or channels) })
  end

  local function fill(hold, lease)
    helper.fill(world, { [a] = hash({ [ann] = hold }, lease), [b] = hash({ [ann] = hold }, lease),
      [c] = hash({ [ann] = hold }, lease) })
  end

  local function told(locks, verb)
    local messages = {}
    for i, lock in ipairs(locks) do
      messages[i] = { verb = verb or 'PUBLISH', channel = channel_of(lock), message = '0' }
    end
    return messages
  end

  it('frees the locks with the last level and tells the channel of each', function()
    fill('1', 30000)

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told({ a, b, c }))
  end)

  it('tells sharded channels when asked to', function()
    fill('1', 30000)
    for _, lock in ipairs({ a, b, c }) do
      helper.listen(world, channel_of(lock))
    end

    assert.reply({ 1, 0 }, release(ann, 0, { publish = 'SPUBLISH' }))

    assert.left(world, {}, told({ a, b, c }, 'SPUBLISH'))
  end)

  it('frees the locks whatever their counts say, with all their fields', function()
    helper.fill(world, { [a] = hash({ [ann] = '5' }, 30000), [b] = hash({ [ann] = '1' }),
      [c] = hash({ [ann] = '1', note = 'gone' }, 60000) })

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told({ a, b, c }))
  end)

  it('tells once when the call runs twice', function()
    fill('1', 30000)
    release(ann, 0)

    assert.reply({ -1, 0 }, release(ann, 0))

    assert.left(world, {}, told({ a, b, c }))
  end)

  it('frees what is left, and says how many, when some were lost', function()
    helper.fill(world, { [a] = hash({ [ann] = '1' }, 30000), [b] = hash({ [bob] = '1' }, 60000) })

    assert.reply({ -1, 1 }, release(ann, 0))

    assert.left(world, { [b] = hash({ [bob] = '1' }, 60000) }, told({ a }))
  end)

  it('tells the channels of the locks that it frees, not of those before them', function()
    helper.fill(world, { [b] = hash({ [ann] = '1' }, 30000), [c] = hash({ [ann] = '1' }, 30000) })

    assert.reply({ -1, 2 }, release(ann, 0))

    assert.left(world, {}, told({ b, c }))
  end)

  it('finds nothing when the leases have ended', function()
    fill('1', 30000)
    world:advance(30001)

    assert.reply({ -1, 0 }, release(ann, 0))

    assert.left(world, {})
  end)

  it('that runs late does nothing to new holds of the same client', function()
    local before = { [a] = hash({ ['lk-ann:2'] = '1' }, 30000),
      [b] = hash({ ['lk-ann:2'] = '1' }, 30000), [c] = hash({ ['lk-ann:2'] = '1' }, 30000) }
    helper.fill(world, before)

    assert.reply({ -1, 0 }, release(ann, 0))
    assert.reply({ -1, 0 }, release(ann, 1, { lease = 60000 }))

    assert.left(world, before)
  end)

  describe('of one level of several', function()
    it('sets the counts that remain and tells nobody', function()
      fill('3', 30000)

      assert.reply({ 1, 2 }, release(ann, 2))

      assert.left(world, { [a] = hash({ [ann] = '2' }, 30000), [b] = hash({ [ann] = '2' }, 30000),
        [c] = hash({ [ann] = '2' }, 30000) })
    end)

    it('counts once when the call runs twice', function()
      fill('3', 30000)
      release(ann, 2)

      assert.reply({ 1, 2 }, release(ann, 2))

      assert.left(world, { [a] = hash({ [ann] = '2' }, 30000), [b] = hash({ [ann] = '2' }, 30000),
        [c] = hash({ [ann] = '2' }, 30000) })
    end)

    it('extends leases to the one given, and shortens none', function()
      helper.fill(world, { [a] = hash({ [ann] = '2' }, 30000), [b] = hash({ [ann] = '2' }, 90000),
        [c] = hash({ [ann] = '2', note = 'kept' }) })

      assert.reply({ 1, 1 }, release(ann, 1, { lease = 60000 }))

      assert.left(world, { [a] = hash({ [ann] = '1' }, 60000), [b] = hash({ [ann] = '1' }, 90000),
        [c] = hash({ [ann] = '1', note = 'kept' }) })
    end)

    it('sets those that are left when some were lost', function()
      helper.fill(world, { [c] = hash({ [ann] = '2' }, 30000) })

      assert.reply({ -1, 1 }, release(ann, 1))

      assert.left(world, { [c] = hash({ [ann] = '1' }, 30000) })
    end)
  end)

  it('refuses channels that are more or fewer than the locks', function()
    fill('1', 30000)
    local before = helper.dump(world)

    assert.refused('LKARG', 'channels', release(ann, 0, { channels = { 'x', 'y' } }))
    assert.refused('LKARG', 'channels', release(ann, 0, { channels = { 'w', 'x', 'y', 'z' } }))

    assert.left(world, before)
  end)

  it('refuses a channel without a name among others', function()
    fill('1', 30000)
    local before = helper.dump(world)

    assert.refused('LKARG', 'channels', release(ann, 0, { channels = { 'x', 'y', '' } }))

    assert.left(world, before)
  end)

  it('refuses a lock that is there twice, and gives nothing back', function()
    fill('1', 30000)
    local before = helper.dump(world)

    assert.refused('LKARG', 'locks', release(ann, 0, { locks = { a, b, a } }))

    assert.left(world, before)
  end)

  it('gives nothing back when one of the keys has another type', function()
    local before = { [a] = hash({ [ann] = '1' }, 30000), [b] = helper.string('value', 60000) }
    helper.fill(world, before)

    assert.refused('WRONGTYPE', 'wrong kind of value', release(ann, 0))

    assert.left(world, before)
  end)

  it('frees the locks on a full server', function()
    fill('1', 30000)
    world:set_oom(true)

    assert.reply({ 1, 0 }, release(ann, 0))

    assert.left(world, {}, told({ a, b, c }))
  end)
end)
