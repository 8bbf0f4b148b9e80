-- SPDX-License-Identifier: Apache-2.0
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

describe('fair/inspect', function()
  local ann, bob, cat = 'lk-ann:1', 'lk-bob:2', 'lk-cat:3'
  local jim = '8ee15f1c-jim:1' -- of another client
  local world

  before_each(function()
    world = helper.world()
  end)

  local function assert_shows(reply, state)
    local before = fair.keys(state)
    helper.fill(world, before)

    assert.reply(reply, fair.inspect(world))

    assert.left(world, before)
  end

  it('says that nobody holds the lock, and nobody waits', function()
    assert_shows({ 0, 0 }, {})
  end)

  it('names the owner, its hold count and the rest of its lease', function()
    assert_shows({ 1, about(30000), 1, 0, ann, '2' }, { holder = ann, count = 2 })
  end)

  it('says -1 for a lock that has no lease', function()
    assert_shows({ 1, -1, 1, 0, ann, '1' }, { holder = ann, lease = -1 })
  end)

  it('names the waiters, and how long each stays without a sign of life', function()
    assert_shows({ 1, about(30000), 1, 2, ann, '1', bob, about(50000), jim, about(630000) },
      { holder = ann, { bob, score = 330000, beat = 50000 }, { jim, score = 630000 } })
  end)

  it('says 0 for waiters that are gone', function()
    assert_shows({ 0, 4, bob, 0, jim, 0, cat, 0, ann, about(70000) },
      { { bob, score = 330000, beat = -20000 }, { jim, score = -20000 }, { cat, beat = 50000 },
        { ann, score = -20000, beat = 70000 } })
  end)

  it('names a hundred waiters and counts the others', function()
    local state, expected = { holder = ann }, { 1, about(30000), 1, 101, ann, '1' }
    for i = 1, 101 do
      state[i] = { 'lk-dan:' .. i, score = 330000, beat = 50000 }
      if i <= 100 then
        table.insert(expected, 'lk-dan:' .. i)
        table.insert(expected, about(50000))
      end
    end

    assert_shows(expected, state)
  end)

  for _, case in ipairs({ { 100, 204 }, { 101, 4 } }) do
    it(('of a hash of %d fields answers %d elements'):format(case[1], case[2]), function()
      local fields = {}
      for i = 1, case[1] do
        fields['field' .. i] = tostring(i)
      end
      helper.fill(world, { job = helper.hash(fields, 30000) })

      local reply = fair.inspect(world)

      assert.equal(case[2], reply.n)
      assert.equal(case[1], reply[3])
      assert.left(world, { job = helper.hash(fields, 30000) })
    end)
  end
end)
