-- SPDX-License-Identifier: Apache-2.0
-- Keys of every type are shown as they were put, by the mock and by a live server.
local helper = require('helper')

local KEYS = {
  string = helper.string('a\0\r\n'),
  hash = helper.hash({ f = 'v', [''] = '' }),
  list = helper.list({ 'b', '', 'a', 'b' }),
  zset = helper.zset({ { 'c', -math.huge }, { 'a', 0.1 }, { 'b', 0.1 }, { '', 1767225600 } }),
}

describe('world:dump', function()
  it('shows what was put into a mock', function()
    local world = helper.mock_world()

    helper.fill(world, KEYS)

    assert.same(KEYS, world:dump())
  end)

  it('shows what was put into a live server', function()
    local world = helper.live_world()

    helper.fill(world, KEYS)

    assert.same(KEYS, world:dump())
  end)
end)

describe('times', function()
  local AHEAD = {
    string = helper.string('until @+50000, then @+70000'),
    hash = helper.hash({ f = '@+50000 7' }, 60000),
    zset = helper.zset({ { 'a', '@-5000' }, { 'b', '@+50000' } }),
  }
  local NEARER = {
    string = helper.string('until @+20000, then @+40000'),
    hash = helper.hash({ f = '@+20000 7' }, 30000),
    zset = helper.zset({ { 'a', '@-35000' }, { 'b', '@+20000' } }),
  }

  for _, kind in ipairs({ 'mock', 'live' }) do
    it(('are distances from now, which moves: %s'):format(kind), function()
      local world = helper[kind .. '_world']()
      helper.fill(world, AHEAD)
      assert.left(world, AHEAD)

      world:advance(30000)

      assert.left(world, NEARER)
    end)
  end
end)
