-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('lock/inspect', function()
  local ann = 'lk-ann:1'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function inspect()
    return world:eval('lock/inspect', { 'job' }, {})
  end

  local function many_fields(count)
    local fields = {}
    for i = 1, count do
      fields['field' .. i] = tostring(i)
    end
    return fields
  end

  it('says that nobody holds the lock', function()
    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('names the owner, its hold count and the rest of its lease', function()
    local before = { job = hash({ [ann] = '2' }, 30000) }
    helper.fill(world, before)

    assert.reply({ 1, about(30000), 1, ann, '2' }, inspect())

    assert.left(world, before)
  end)

  it('says -1 for a lock that has no lease', function()
    local before = { job = hash({ [ann] = '1' }) }
    helper.fill(world, before)

    assert.reply({ 1, -1, 1, ann, '1' }, inspect())

    assert.left(world, before)
  end)

  it('says that a lock is free when its lease has ended', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:advance(30001)

    assert.reply({ 0 }, inspect())

    assert.left(world, {})
  end)

  it('shows up to 100 fields with their values', function()
    local fields = many_fields(100)
    helper.fill(world, { job = hash(fields, 30000) })

    local reply = inspect()

    local shown = {}
    for i = 4, reply.n, 2 do
      shown[reply[i]] = reply[i + 1]
    end
    assert.equal(203, reply.n)
    assert.equal(100, reply[3])
    assert.same(fields, shown)
    assert.left(world, { job = hash(fields, 30000) })
  end)

  it('only counts the fields above 100', function()
    local fields = many_fields(101)
    helper.fill(world, { job = hash(fields, 30000) })

    assert.reply({ 1, about(30000), 101 }, inspect())

    assert.left(world, { job = hash(fields, 30000) })
  end)

  it('works on a full server and on a read-only replica', function()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
    world:set_oom(true)
    world:set_readonly(true)

    assert.reply({ 1, about(30000), 1, ann, '1' }, inspect())

    assert.left(world, { job = hash({ [ann] = '1' }, 30000) })
  end)
end)
