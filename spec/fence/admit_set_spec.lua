-- SPDX-License-Identifier: Apache-2.0
local writes = require('fence.writes')
local helper = require('helper')
local hash, string_ = helper.hash, helper.string

describe('fence/admit_set', function()
  local function write(world, token, owner, seq, value)
    return world:eval('fence/admit_set', { 'disk', writes.fence }, { token, owner, seq, value })
  end

  writes.specs(it, write, string_, function(world)
    world:command('SET', 'disk', 'changed')
  end, string_('changed'), hash({ field = 'a' }))

  it('ends the TTL that the string had', function()
    local world = helper.world()
    helper.fill(world, { disk = string_('old', 60000) })

    assert.reply({ 1 }, write(world, '7', writes.ann, 1, 'a'))

    assert.left(world,
      { disk = string_('a'), [writes.fence] = writes.fenced('7', writes.ann, '1') })
  end)
end)
