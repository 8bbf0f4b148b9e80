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
