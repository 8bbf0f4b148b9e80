-- SPDX-License-Identifier: Apache-2.0
local writes = require('fence.writes')
local helper = require('helper')
local hash, string_ = helper.hash, helper.string

describe('fence/admit_hset', function()
  local function write(world, token, owner, seq, value)
    return world:eval('fence/admit_hset', { 'disk', writes.fence },
      { token, owner, seq, 'name', value })
  end

  writes.specs(it, write, function(value)
    return hash({ name = value })
  end, function(world)
    world:command('HSET', 'disk', 'name', 'changed')
  end, hash({ name = 'changed' }), string_('a'))

  it('leaves other fields and the TTL as they are', function()
    local world = helper.world()
    helper.fill(world, { disk = hash({ name = 'old', size = '1' }, 60000) })

    assert.reply({ 1 }, write(world, '7', writes.ann, 1, 'a'))

    assert.left(world, { disk = hash({ name = 'a', size = '1' }, 60000),
      [writes.fence] = writes.fenced('7', writes.ann, '1') })
  end)
end)
