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

  -- Times wherever they can stand in values, as `helper.fill` does not write all of them.
  local function put(world, at_ms)
    local at = ('%.0f'):format(at_ms)
    for _, words in ipairs({ { 'RPUSH', 'list', at, 'x' }, { 'SADD', 'set', at, 'x' },
      { 'HSET', 'hash', at, 'v' }, { 'ZADD', 'zset', '7', at }, { 'XADD', 'stream', at, 'f', at },
      { 'XADD', 'stream', at .. '-5', 'f', 'v' }, { 'XDEL', 'stream', at .. '-5' },
      { 'PEXPIRE', 'stream', '60000' }, { 'XADD', 'emptied', at, 'f', 'v' },
      { 'XDEL', 'emptied', at } }) do
      assert(world:command(unpack(words)))
    end
  end

  for _, kind in ipairs({ 'mock', 'live' }) do
    it(('are so in values of every type: %s'):format(kind), function()
      local world = helper[kind .. '_world']()
      local at_ms = world:now_ms() + 50000
      put(world, at_ms)

      world:advance(30000)

      local field = next(world:dump().hash.value)
      local left_ms = field - world:now_ms()
      assert.is_true(left_ms > 10000 and left_ms <= 20000, field)
      assert(world:command('DEL', 'hash'))
      assert.left(world, { list = helper.list({ '@+20000', 'x' }),
        set = { type = 'set', value = { '@+20000', 'x' }, pttl = -1 },
        zset = helper.zset({ { '@+20000', '7' } }),
        stream = { type = 'stream', value = { { '@+20000-0', 'f', '@+20000' } }, pttl = 30000 },
        emptied = { type = 'stream', value = {}, pttl = -1 } })
      -- What has been deleted from a stream keeps its place in it.
      for _, key in ipairs({ 'stream', 'emptied' }) do
        local id = ('%.0f-%d'):format(kind == 'live' and at_ms - 30000 or at_ms,
          key == 'stream' and 4 or 0)
        assert.refused('ERR', 'equal or smaller', world:command('XADD', key, id, 'f', 'v'))
      end
    end)
  end
end)
