-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local permit = require('support.permit')
local about = helper.about

describe('permit/acquire', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function acquire(ids, lease, publish)
    return world:eval('permit/acquire', permit.KEYS,
      { lease or 30000, permit.CHANNEL, publish or 'PUBLISH', unpack(ids) })
  end

  local function assert_left(keys, messages)
    assert.left(world, keys, messages)
  end

  it('takes a permit for the lease, and tells nobody', function()
    helper.fill(world, permit.keys(2))

    assert.reply({ 1 }, acquire({ permit.id(1) }, 60000))

    assert_left(permit.keys(1, { { 1, 60000 } }))
  end)

  it('writes and tells great numbers by their digits', function()
    helper.fill(world, permit.keys(2000000000, { { 1, -1000 }, { 2, -1000 } }))

    assert.reply({ 1 }, acquire({ permit.id(3) }))

    assert_left(permit.keys(2000000001, { { 3, 30000 } }), permit.told('2000000001'))
  end)

  it('takes as many as there are ids', function()
    helper.fill(world, permit.keys(3, { { 1, 90000 } }))

    assert.reply({ 1 }, acquire(permit.ids(2, 4)))

    assert_left(permit.keys(0, { { 2, 30000 }, { 3, 30000 }, { 4, 30000 }, { 1, 90000 } }))
  end)

  it('takes none where it cannot take all, and says when the next lease ends', function()
    local before = permit.keys(1, { { 1, 60000 }, { 2, 90000 } })
    helper.fill(world, before)

    assert.reply({ 0, about(60000) }, acquire(permit.ids(3, 4)))

    assert_left(before)
  end)

  it('says -1 where no lease ends', function()
    local before = permit.keys(0, { { 1, permit.NEVER } })
    helper.fill(world, before)

    assert.reply({ 0, -1 }, acquire({ permit.id(2) }))

    assert_left(before)
  end)

  it('says -1 where nobody holds any', function()
    helper.fill(world, permit.keys(0))

    assert.reply({ 0, -1 }, acquire({ permit.id(1) }))

    assert_left(permit.keys(0))
  end)

  it('says -1 where no total is set, and sets none', function()
    local before = permit.keys(nil, { { 1, -1000 } })
    helper.fill(world, before)

    assert.reply({ 0, -1 }, acquire({ permit.id(2) }))

    assert_left(before)
  end)

  it('takes none while more are held than there are', function()
    local before = permit.keys(-1, { { 1, 60000 } })
    helper.fill(world, before)

    assert.reply({ 0, about(60000) }, acquire({ permit.id(2) }))

    assert_left(before)
  end)

  it('takes a hundred at once', function()
    helper.fill(world, permit.keys(100))

    assert.reply({ 1 }, acquire(permit.ids(1, 100)))

    assert.equal('0', world:command('GET', 'job'))
    assert.equal(100, world:command('ZCARD', permit.KEYS[2]))
  end)

  it('counts an id that is there twice once', function()
    helper.fill(world, permit.keys(2))

    assert.reply({ 1 }, acquire({ permit.id(1), permit.id(1) }))

    assert_left(permit.keys(1, { { 1, 30000 } }))
  end)

  it('ends the leases with the number of the free ones, where that has a TTL', function()
    helper.fill(world, permit.keys(2, {}, 90000))

    assert.reply({ 1 }, acquire({ permit.id(1) }))

    assert_left(permit.keys(1, { { 1, 30000 } }, 90000))
  end)

  -- Redisson's addPermits takes the TTL from the number alone.
  for _, id in ipairs({ 2, 3 }) do
    it('keeps leases where the number has lost its TTL, permits for ' .. id, function()
      helper.fill(world, permit.keys(1, { { 1, 200000 } }, 90000))
      world:command('PERSIST', permit.KEYS[1])

      local took = assert(acquire(permit.ids(2, id)))[1]

      assert.equal(id == 2 and 1 or 0, took)
      assert_left(permit.keys(1 - took, took == 1 and { { 1, 200000 }, { 2, 30000 } }
        or { { 1, 200000 } }))
    end)
  end

  it('keeps leases as long as the number, where none is free', function()
    helper.fill(world, permit.keys(0, { { 1, 200000 } }, 90000))
    world:command('PEXPIRE', permit.KEYS[1], 150000)

    assert.reply({ 0, about(200000) }, acquire({ permit.id(2) }))

    assert_left(permit.keys(0, { { 1, 200000 } }, 150000))
  end)

  -- A key with 0 ms left is still there.
  for left_ms = 0, 2 do
    it(('leaves leases no longer than the number that has %d ms left'):format(left_ms), function()
      world = helper.mock_world() -- the clock of a server cannot be stopped there
      helper.fill(world, permit.keys(3, { { 2, 30000 } }, 1000))
      world:advance(1000 - left_ms)

      assert.reply({ 1 }, acquire({ permit.id(1) }))

      local held = { { 1, 30000 }, { 2, 29000 + left_ms } }
      assert_left(permit.keys(2, held, left_ms))
    end)
  end

  describe('that runs twice', function()
    it('takes once', function()
      helper.fill(world, permit.keys(2))
      acquire(permit.ids(1, 2))

      assert.reply({ 1 }, acquire(permit.ids(1, 2)))

      assert_left(permit.keys(0, { { 1, 30000 }, { 2, 30000 } }))
    end)

    it('is answered also while more are held than there are', function()
      local before = permit.keys(-1, { { 1, 60000 } })
      helper.fill(world, before)

      assert.reply({ 1 }, acquire({ permit.id(1) }))

      assert_left(before)
    end)

    it('extends the lease, and does not shorten it', function()
      helper.fill(world, permit.keys(0, { { 1, 30000 }, { 2, 90000 } }))

      assert.reply({ 1 }, acquire(permit.ids(1, 2), 60000))

      assert_left(permit.keys(0, { { 1, 60000 }, { 2, 90000 } }))
    end)

    it('takes what is missing where a part was given back in between', function()
      helper.fill(world, permit.keys(1, { { 1, 30000 } }))

      assert.reply({ 1 }, acquire(permit.ids(1, 2)))

      assert_left(permit.keys(0, { { 1, 30000 }, { 2, 30000 } }))
    end)

    it('after the release leaves strays that end with their lease', function()
      helper.fill(world, permit.keys(1))
      acquire({ permit.id(1) }, 30000)
      world:advance(30001)

      assert.reply({ 1 }, acquire({ permit.id(2) }))

      assert_left(permit.keys(0, { { 2, 30000 } }))
    end)
  end)

  describe('where leases have ended', function()
    it('takes what is free again', function()
      helper.fill(world, permit.keys(0, { { 1, -1000 }, { 2, 60000 } }))

      assert.reply({ 1 }, acquire({ permit.id(3) }))

      assert_left(permit.keys(0, { { 3, 30000 }, { 2, 60000 } }))
    end)

    it('tells how many are free besides', function()
      helper.fill(world, permit.keys(0, { { 1, -2000 }, { 2, -1000 }, { 3, -1000 } }))

      assert.reply({ 1 }, acquire({ permit.id(4) }))

      assert_left(permit.keys(2, { { 4, 30000 } }), permit.told('2'))
    end)

    it('tells how many are free where they are too few for this call', function()
      helper.fill(world, permit.keys(0, { { 1, -1000 }, { 2, 60000 } }))

      assert.reply({ 0, about(60000) }, acquire(permit.ids(3, 4), 30000, 'SPUBLISH'))

      assert_left(permit.keys(1, { { 2, 60000 } }), permit.told('1', 'SPUBLISH'))
    end)

    it('tells nobody while more are held than there are', function()
      helper.fill(world, permit.keys(-1, { { 1, -1000 }, { 2, 60000 } }))

      assert.reply({ 0, about(60000) }, acquire({ permit.id(3) }))

      assert_left(permit.keys(0, { { 2, 60000 } }))
    end)

    it('takes anew what its own lease has lost', function()
      helper.fill(world, permit.keys(0, { { 1, -1000 } }))

      assert.reply({ 1 }, acquire({ permit.id(1) }))

      assert_left(permit.keys(0, { { 1, 30000 } }))
    end)

    it('does not end those that Redisson keeps for ever', function()
      helper.fill(world, permit.keys(0, { { 1, -1000 }, { 2, permit.NEVER } }))

      assert.reply({ 0, -1 }, acquire(permit.ids(3, 4)))

      assert_left(permit.keys(1, { { 2, permit.NEVER } }), permit.told('1'))
    end)
  end)

  describe('where more leases have ended than are taken back in one call', function()
    local function counts()
      return { tonumber(world:command('GET', 'job')), world:command('ZCARD', permit.KEYS[2]) }
    end

    it('takes back 1000 of them and takes its own', function()
      helper.fill(world, permit.keys(0))
      permit.fill_ended(world, 1500)

      assert.reply({ 1 }, acquire(permit.ids(1501, 1502)))

      assert.same({ 998, 502 }, counts())
      assert.same(permit.told('998'), world:messages())
    end)

    it('says 0, look again at once, until there are enough', function()
      helper.fill(world, permit.keys(-9998))
      permit.fill_ended(world, 10000)

      for _ = 1, 9 do
        assert.reply({ 0, 0 }, acquire(permit.ids(10001, 10002)))
      end
      assert.same({ -998, 1000 }, counts())
      assert.reply({ 1 }, acquire(permit.ids(10001, 10002)))

      assert.same({ 0, 2 }, counts())
      assert.same({}, world:messages())
    end)

    it('counts as taken what of its own is not taken back yet', function()
      helper.fill(world, permit.keys(0))
      permit.fill_ended(world, 1500)

      assert.reply({ 1 }, acquire({ permit.id(1500) }))

      assert.same({ 1000, 500 }, counts())
    end)
  end)

  for _, value in ipairs({ '', 'x', '1.5' }) do
    it(('refuses "%s" for a number, and writes nothing'):format(value), function()
      local before = permit.keys(nil, { { 1, -1000 } })
      before.job = helper.string(value)
      helper.fill(world, before)

      assert.refused('LKARG', 'must hold an integer', acquire({ permit.id(2) }))

      assert_left(before)
    end)
  end

  it('refuses a short id anywhere, and takes nothing', function()
    helper.fill(world, permit.keys(3))

    assert.refused('LKARG', 'ids', acquire({ permit.id(1), permit.id(2), 'short' }))

    assert_left(permit.keys(3))
  end)

  it('refuses leases of another type, and writes nothing', function()
    local before = permit.keys(1)
    before[permit.KEYS[2]] = helper.hash({ x = '1' })
    helper.fill(world, before)

    assert.refused('WRONGTYPE', 'wrong kind', acquire({ permit.id(1) }))

    assert_left(before)
  end)

  -- Each is asked for, or called, before the first that writes.
  for _, command in ipairs({ 'PERSIST', 'PEXPIREAT', 'PEXPIRETIME', 'SET', 'ZADD', 'ZRANGE',
    'ZSCORE' }) do
    it(('takes and frees nothing for a user without %s'):format(command), function()
      for ttl, ended in pairs({ [false] = 3, [90000] = 3, [80000] = 1 }) do
        for place = 0, helper.is_live and 0 or 2 do
          world = helper.world()
          helper.fill(world, permit.keys(place == 0 and 2 or 0, nil, ttl or nil))
          permit.fill_ended(world, ended)
          local before = helper.dump(world)
          world:set_denied(command, permit.KEYS[place])

          local reply, err = acquire(permit.ids(11, 15))

          world:set_denied()
          if place == 0 or err then
            assert.is_nil(reply)
            assert.left(world, before)
          end
        end
      end
    end)
  end

  -- Where no lease has ended, and both keys end alike.
  for _, command in ipairs({ 'PERSIST', 'PEXPIREAT', 'ZRANGE' }) do
    it(('does not ask for %s where it need not run it'):format(command), function()
      local keys = permit.keys(2, { { 1, 60000 } })
      helper.fill(world, keys)
      world:set_denied(command)

      local reply = acquire({ permit.id(2) })

      world:set_denied()
      assert.reply({ 1 }, reply)
    end)
  end

  it('lets leases that are all new end with their number, as those before them', function()
    helper.fill(world, permit.keys(0, nil, 90000))
    permit.fill_ended(world, 1)
    world:command('PEXPIREAT', permit.KEYS[2], world:command('PEXPIRETIME', permit.KEYS[1]))

    assert.reply({ 1 }, acquire({ permit.id(2) }))

    assert.equal(world:command('PEXPIRETIME', permit.KEYS[1]),
      world:command('PEXPIRETIME', permit.KEYS[2]))
  end)

  it('takes nothing from a full server', function()
    helper.fill(world, permit.keys(1))
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', acquire({ permit.id(1) }))

    assert_left(permit.keys(1))
  end)
end)
