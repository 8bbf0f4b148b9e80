-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('lock/acquire_all', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local a, b, c = '{job}:a', '{job}:b', '{job}:c'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function acquire(owner, hold, lease, locks)
    return world:eval('lock/acquire_all', locks or { a, b, c }, { lease or 30000, owner, hold })
  end

  local function all(owner, hold, lease)
    local keys = {}
    for _, lock in ipairs({ a, b, c }) do
      keys[lock] = hash({ [owner] = tostring(hold) }, lease)
    end
    return keys
  end

  it('takes free locks for the lease', function()
    assert.reply({ 1, 1 }, acquire(ann, 1, 30000))

    assert.left(world, all(ann, 1, 30000))
  end)

  it('takes a single lock', function()
    assert.reply({ 1, 1 }, acquire(ann, 1, 30000, { a }))

    assert.left(world, { [a] = hash({ [ann] = '1' }, 30000) })
  end)

  it('takes a hundred locks, and gives them back', function()
    local locks, channels, keys = {}, {}, {}
    for i = 1, 100 do
      locks[i] = '{job}:' .. i
      channels[i] = 'redisson_lock__channel:' .. locks[i]
      keys[locks[i]] = hash({ [ann] = '2' }, 30000)
    end
    acquire(ann, 1, 30000, locks)

    assert.reply({ 1, 2 }, acquire(ann, 2, 30000, locks))

    assert.left(world, keys)
    assert.reply({ 1, 0 }, world:eval('lock/release_all', locks,
      { 30000, ann, 0, 'PUBLISH', unpack(channels) }))
    assert.same({}, world:dump())
  end)

  for place, lock in ipairs({ a, b, c }) do
    it(('takes none when another holds the lock at place %d'):format(place), function()
      local before = { [lock] = hash({ [bob] = '1' }, 60000) }
      helper.fill(world, before)

      assert.reply({ 0, about(60000), place }, acquire(ann, 1))

      assert.left(world, before)
    end)
  end

  it('names a place of two digits', function()
    local locks, before = {}, { ['{job}:12'] = hash({ [bob] = '1' }, 60000) }
    for i = 1, 13 do
      locks[i] = '{job}:' .. i
    end
    helper.fill(world, before)

    assert.reply({ 0, about(60000), 12 }, acquire(ann, 1, 30000, locks))

    assert.left(world, before)
    for i = 1, 11 do
      before[locks[i]] = hash({ [ann] = '1' }, 60000)
    end
    helper.fill(world, before)
    assert.reply({ -1, 12 }, acquire(ann, 2, 30000, locks))
    assert.left(world, before)
  end)

  it('says which of the locks of others is held longest', function()
    local before = { [a] = hash({ [bob] = '1' }, 20000), [b] = hash({ ['lk-cyd:1'] = '1' }, 60000),
      [c] = hash({ [bob] = '1' }, 40000) }
    helper.fill(world, before)

    assert.reply({ 0, about(60000), 2 }, acquire(ann, 1))

    assert.left(world, before)
  end)

  it('says -1 when one of them has no lease, wherever it stands', function()
    local before = { [a] = hash({ [bob] = '1' }, 60000), [b] = hash({ [bob] = '1' }),
      [c] = hash({ [bob] = '1' }, 90000) }
    helper.fill(world, before)

    assert.reply({ 0, -1, 2 }, acquire(ann, 1))
    assert.reply({ 0, -1, 1 }, acquire(ann, 1, 30000, { b, a }))

    assert.left(world, before)
  end)

  it('refuses a hash whose fields are no owner, and leaves all as they are', function()
    local before = { [b] = hash({ mode = 'read', [bob] = '2' }, 30000) }
    helper.fill(world, before)

    assert.reply({ 0, about(30000), 2 }, acquire(ann, 1))

    assert.left(world, before)
  end)

  it('takes the locks when the leases of their holders have ended', function()
    helper.fill(world, { [a] = hash({ [bob] = '1' }, 20000), [b] = hash({ [bob] = '1' }, 60000) })
    world:advance(60001)

    assert.reply({ 1, 1 }, acquire(ann, 1, 30000))

    assert.left(world, all(ann, 1, 30000))
  end)

  describe('by the holder', function()
    before_each(function()
      acquire(ann, 1, 30000)
    end)

    it('sets the hold count of each', function()
      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, all(ann, 2, 30000))
    end)

    it('counts once when the call runs twice', function()
      acquire(ann, 2)

      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, all(ann, 2, 30000))
    end)

    it('sets an older count when an older call runs late, and the next call mends it', function()
      acquire(ann, 2)

      assert.reply({ 1, 1 }, acquire(ann, 1))
      assert.reply({ 1, 3 }, acquire(ann, 3))

      assert.left(world, all(ann, 3, 30000))
    end)

    it('extends leases to a longer one, and shortens none', function()
      world:command('PEXPIRE', b, 90000)

      assert.reply({ 1, 2 }, acquire(ann, 2, 60000))

      assert.left(world, { [a] = hash({ [ann] = '2' }, 60000), [b] = hash({ [ann] = '2' }, 90000),
        [c] = hash({ [ann] = '2' }, 60000) })
    end)

    it('does not end a hold that has no lease', function()
      world:command('PERSIST', b)

      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, { [a] = hash({ [ann] = '2' }, 30000), [b] = hash({ [ann] = '2' }),
        [c] = hash({ [ann] = '2' }, 30000) })
    end)

    it('leaves other fields as they are', function()
      world:command('HSET', c, 'note', 'kept')

      assert.reply({ 1, 2 }, acquire(ann, 2))

      assert.left(world, { [a] = hash({ [ann] = '2' }, 30000), [b] = hash({ [ann] = '2' }, 30000),
        [c] = hash({ [ann] = '2', note = 'kept' }, 30000) })
    end)

    it('takes nothing more when one of the locks was lost and is free', function()
      world:command('DEL', b)

      assert.reply({ -1, 2 }, acquire(ann, 2))

      assert.left(world, { [a] = hash({ [ann] = '1' }, 30000), [c] = hash({ [ann] = '1' }, 30000) })
    end)

    it('takes nothing more when one of the locks was lost to another owner', function()
      world:command('DEL', c)
      helper.fill(world, { [c] = hash({ [bob] = '1' }, 60000) })

      assert.reply({ -1, 3 }, acquire(ann, 2))

      assert.left(world, { [a] = hash({ [ann] = '1' }, 30000), [b] = hash({ [ann] = '1' }, 30000),
        [c] = hash({ [bob] = '1' }, 60000) })
    end)

    it('takes further locks with the same owner, as a copy of it does that came in between',
      function()
        world:command('DEL', a)

        assert.reply({ 1, 1 }, acquire(ann, 1, 60000))

        assert.left(world, all(ann, 1, 60000))
      end)
  end)

  it('leaves holds that lock/acquire, renew and release take for their own', function()
    acquire(ann, 1, 30000)

    assert.reply({ 1, 2 }, world:eval('lock/acquire', { b }, { 30000, ann, 2 }))
    assert.reply({ 1 }, world:eval('lock/renew', { a }, { 60000, ann }))
    assert.reply({ 1, 0 }, world:eval('lock/release', { c },
      { 30000, ann, 0, 'redisson_lock__channel:' .. c, 'PUBLISH' }))

    assert.left(world, { [a] = hash({ [ann] = '1' }, 60000), [b] = hash({ [ann] = '2' }, 30000) },
      { { verb = 'PUBLISH', channel = 'redisson_lock__channel:' .. c, message = '0' } })
  end)

  it('that runs after the release leaves strays that end with their lease', function()
    acquire(ann, 1, 30000)
    world:command('DEL', a, b, c)

    assert.reply({ 1, 1 }, acquire(ann, 1, 30000))

    assert.left(world, all(ann, 1, 30000))
    world:advance(30001)
    assert.left(world, {})
  end)

  it('that runs late does nothing when another has one of the locks by now', function()
    local before = { [b] = hash({ [bob] = '1' }, 60000) }
    helper.fill(world, before)

    assert.reply({ 0, about(60000), 2 }, acquire(ann, 1))

    assert.left(world, before)
  end)

  it('refuses a lock that is there twice, and takes nothing', function()
    assert.refused('LKARG', 'locks', acquire(ann, 1, 30000, { a, b, a }))

    assert.left(world, {})
  end)

  it('takes nothing when one of the keys has another type', function()
    helper.fill(world, { [c] = helper.string('value', 60000) })

    assert.refused('WRONGTYPE', 'wrong kind of value', acquire(ann, 1))

    assert.left(world, { [c] = helper.string('value', 60000) })
  end)

  it('takes nothing from a full server', function()
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', acquire(ann, 1, 30000))

    assert.left(world, {})
  end)

  it('names the first of several that are held as long', function()
    local before = { [a] = hash({ [bob] = '1' }), [b] = hash({ [bob] = '1' }) }
    helper.fill(world, before)

    assert.reply({ 0, -1, 1 }, acquire(ann, 1, 30000))

    assert.left(world, before)
  end)

  it('takes no lock that another holds for less than a millisecond', function()
    world = helper.mock_world() -- the clock of a server cannot be stopped there
    helper.fill(world, { [b] = hash({ [bob] = '1' }, 30000) })
    world:advance(30000)

    assert.reply({ 0, 0, 2 }, acquire(ann, 1, 30000))

    assert.left(world, { [b] = hash({ [bob] = '1' }, 0) })
  end)
end)
