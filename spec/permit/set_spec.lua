-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local permit = require('support.permit')
local recorded = require('support.recorded')

describe('permit/set', function()
  local record = recorded.key('lk-ann')
  local world

  before_each(function()
    world = helper.world()
  end)

  local function set(total, mode, publish)
    return world:eval('permit/set', { permit.KEYS[1], permit.KEYS[2], record },
      { total, mode or 'INIT', permit.CHANNEL, publish or 'PUBLISH', 'lk-ann', 1 })
  end

  -- Keys and the record of the call.
  local function assert_left(keys, reply, messages)
    keys[record] = recorded.record(1, unpack(reply))
    assert.left(world, keys, messages)
  end

  it('sets the total where there is none, and tells how many are free', function()
    assert.reply({ 1, 3 }, set(3))

    assert_left(permit.keys(3), { 1, 3 }, permit.told('3'))
  end)

  it('tells a sharded channel when asked to', function()
    assert.reply({ 1, 3 }, set(3, 'INIT', 'SPUBLISH'))

    assert_left(permit.keys(3), { 1, 3 }, permit.told('3', 'SPUBLISH'))
  end)

  it('tells nobody that there are none', function()
    assert.reply({ 1, 0 }, set(0))

    assert_left(permit.keys(0), { 1, 0 })
  end)

  it('changes nothing where this is the total, held ones counted', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 }, { 2, -1000 } }))

    assert.reply({ 1, 1 }, set(3))

    assert_left(permit.keys(1, { { 1, 30000 }, { 2, -1000 } }), { 1, 1 })
  end)

  -- Redisson's addPermits takes the TTL from the number alone; and it may have been deleted.
  it('keeps leases where the number has lost its TTL', function()
    helper.fill(world, permit.keys(1, { { 1, 200000 } }, 90000))
    world:command('PERSIST', permit.KEYS[1])

    assert.reply({ 1, 2 }, set(3, 'CHANGE'))

    assert_left(permit.keys(2, { { 1, 200000 } }), { 1, 2 }, permit.told('2'))
  end)

  it('keeps leases where the number was gone', function()
    helper.fill(world, permit.keys(1, { { 1, 200000 } }, 90000))
    world:command('DEL', permit.KEYS[1])

    assert.reply({ 1, 2 }, set(3))

    assert_left(permit.keys(2, { { 1, 200000 } }), { 1, 2 }, permit.told('2'))
  end)

  it('keeps leases as long as the number', function()
    helper.fill(world, permit.keys(2, { { 1, 200000 } }, 90000))
    world:command('PEXPIRE', permit.KEYS[1], 150000)

    assert.reply({ 1, 1 }, set(2, 'CHANGE'))

    assert_left(permit.keys(1, { { 1, 200000 } }, 150000), { 1, 1 })
  end)

  it('changes nothing where the greatest is the total', function()
    helper.fill(world, permit.keys('2147483647'))

    assert.reply({ 1, 2147483647 }, set('2147483647'))

    assert_left(permit.keys('2147483647'), { 1, 2147483647 })
  end)

  it('leaves another total as it is, and says which', function()
    helper.fill(world, permit.keys(1, { { 1, 30000 }, { 2, -1000 } }))

    assert.reply({ 0, 3 }, set(4))

    assert_left(permit.keys(1, { { 1, 30000 }, { 2, -1000 } }), { 0, 3 })
  end)

  it('counts what is held where the number alone is gone', function()
    helper.fill(world, permit.keys(nil, { { 1, 30000 } }))

    assert.reply({ 1, 2 }, set(3))

    assert_left(permit.keys(2, { { 1, 30000 } }), { 1, 2 }, permit.told('2'))
  end)

  it('that was refused does nothing when a copy runs after the total is gone', function()
    helper.fill(world, permit.keys(1))
    set(3)
    world:command('DEL', 'job')

    assert.reply({ 0, 1 }, set(3))

    assert_left({}, { 0, 1 })
  end)

  describe('asked to change it', function()
    it('raises the total, and tells how many are free', function()
      helper.fill(world, permit.keys(1, { { 1, 30000 } }))

      assert.reply({ 1, 4 }, set(5, 'CHANGE'))

      assert_left(permit.keys(4, { { 1, 30000 } }), { 1, 4 }, permit.told('4'))
    end)

    it('lowers the total, and tells nobody', function()
      helper.fill(world, permit.keys(3, { { 1, 30000 } }))

      assert.reply({ 1, 1 }, set(2, 'CHANGE'))

      assert_left(permit.keys(1, { { 1, 30000 } }), { 1, 1 })
    end)

    it('lowers it below what is held, which nobody loses by it', function()
      helper.fill(world, permit.keys(0, { { 1, 30000 }, { 2, 40000 } }))

      assert.reply({ 1, -1 }, set(1, 'CHANGE'))

      assert_left(permit.keys(-1, { { 1, 30000 }, { 2, 40000 } }), { 1, -1 })
    end)

    it('tells nobody when none is free after raising', function()
      helper.fill(world, permit.keys(-2, { { 1, 30000 }, { 2, 40000 } }))

      assert.reply({ 1, 0 }, set(2, 'CHANGE'))

      assert_left(permit.keys(0, { { 1, 30000 }, { 2, 40000 } }), { 1, 0 })
    end)

    it('keeps the life that the permits have', function()
      helper.fill(world, permit.keys(1, {}, 90000))

      assert.reply({ 1, 2 }, set(2, 'CHANGE'))

      assert_left(permit.keys(2, {}, 90000), { 1, 2 }, permit.told('2'))
    end)
  end)

  it('refuses leases of another type, and writes nothing', function()
    local before = permit.keys(1)
    before[permit.KEYS[2]] = helper.hash({ x = '1' })
    helper.fill(world, before)

    assert.refused('WRONGTYPE', 'wrong kind', set(2, 'CHANGE'))

    assert.left(world, before)
  end)

  it('sets nothing on a full server', function()
    world:set_oom(true)

    assert.refused('OOM', 'maxmemory', set(3))

    assert.left(world, {})
  end)

  local function arguments(caller, seq)
    return { 3, 'INIT', permit.CHANNEL, 'PUBLISH', caller, seq }
  end

  for _, case in ipairs(recorded.cases('permit/set', {}, arguments, permit.KEYS)) do
    it(case[1], case[2])
  end

  it('tells of a single one', function()
    assert.reply({ 1, 1 }, set(1))

    assert_left(permit.keys(1), { 1, 1 }, permit.told('1'))
  end)
end)
