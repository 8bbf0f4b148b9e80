-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash, string_ = helper.hash, helper.string

describe('fence/admit_set', function()
  local ann, bob, key = 'lk-ann:1', 'lk-bob:1', 'latchkey_fence:{disk}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function write(token, owner, seq, value)
    return world:eval('fence/admit_set', { 'disk', key }, { token, owner, seq, value })
  end

  -- What is left when `value` was written, and by whom.
  local function written(value, token, owner, seq)
    return { disk = string_(value), [key] = hash({ token = token, owner = owner, seq = seq }) }
  end

  it('writes for the first hold, and remembers it for ever', function()
    assert.reply({ 1 }, write('7', ann, 1, 'a'))

    assert.left(world, written('a', '7', ann, '1'))
  end)

  it('writes for the same hold with a higher seq', function()
    write('7', ann, 1, 'a')

    assert.reply({ 1 }, write('7', ann, 5, 'b'))

    assert.left(world, written('b', '7', ann, '5'))
  end)

  it('writes once when the call runs twice', function()
    write('7', ann, 1, 'a')
    world:command('SET', 'disk', 'changed')

    assert.reply({ 1 }, write('7', ann, 1, 'a'))

    assert.left(world, written('changed', '7', ann, '1'))
  end)

  it('does nothing late: the same hold has written since', function()
    write('7', ann, 1, 'a')
    write('7', ann, 2, 'b')

    assert.reply({ -2 }, write('7', ann, 1, 'a'))

    assert.left(world, written('b', '7', ann, '2'))
  end)

  it('compares the seq as a number', function()
    write('7', ann, 9, 'a')

    assert.reply({ 1 }, write('7', ann, 10, 'b'))
    assert.reply({ -2 }, write('7', ann, 9, 'a'))

    assert.left(world, written('b', '7', ann, '10'))
  end)

  it('writes for a hold with a higher token, which counts anew', function()
    write('7', ann, 5, 'a')

    assert.reply({ 1 }, write('8', bob, 1, 'b'))

    assert.left(world, written('b', '8', bob, '1'))
  end)

  it('writes for a hold that was admitted without writing', function()
    world:eval('fence/admit', { key }, { '7', ann })

    assert.reply({ 1 }, write('7', ann, 1, 'a'))

    assert.left(world, written('a', '7', ann, '1'))
  end)

  it('refuses an older token and says which has been', function()
    write('8', bob, 1, 'b')

    assert.reply({ -1, 8 }, write('7', ann, 2, 'a'))

    assert.left(world, written('b', '8', bob, '1'))
  end)

  it('refuses an older token than that of a hold that was admitted without writing', function()
    write('7', ann, 1, 'a')
    world:eval('fence/admit', { key }, { '8', bob })

    assert.reply({ -1, 8 }, write('7', ann, 2, 'b'))

    assert.left(world, written('a', '8', bob, '0'))
  end)

  it('refuses an equal token of another owner', function()
    write('8', bob, 1, 'b')

    assert.reply({ -1, 8 }, write('8', ann, 2, 'a'))

    assert.left(world, written('b', '8', bob, '1'))
  end)

  it('writes any bytes', function()
    assert.reply({ 1 }, write('7', ann, 1, '\0\r\n\255'))

    assert.left(world, written('\0\r\n\255', '7', ann, '1'))
  end)

  it('ends the TTL that the string had', function()
    helper.fill(world, { disk = string_('old', 60000) })

    assert.reply({ 1 }, write('7', ann, 1, 'a'))

    assert.left(world, written('a', '7', ann, '1'))
  end)

  for _, broken in ipairs({ { token = 'x' }, { token = '7', owner = 'lk-ann:1', seq = '-1' } }) do
    it(('writes nothing when the fence holds token %s and seq %s'):format(broken.token,
      broken.seq or 'none'), function()
      helper.fill(world, { [key] = hash(broken) })

      assert.refused('LKARG', 'fence must', write('9', bob, 1, 'b'))

      assert.left(world, { [key] = hash(broken) })
    end)
  end

  it('writes nothing to a key of another type', function()
    helper.fill(world, { disk = hash({ field = 'a' }) })

    assert.refused('WRONGTYPE', 'wrong kind', write('7', ann, 1, 'a'))

    assert.left(world, { disk = hash({ field = 'a' }) })
  end)

  it('writes for the lowest token there is', function()
    assert.reply({ 1 }, write('1', ann, 1, 'a'))

    assert.left(world, written('a', '1', ann, '1'))
  end)

  it('writes for a higher token with the seq that was written last', function()
    write('7', ann, 1, 'a')

    assert.reply({ 1 }, write('8', bob, 1, 'b'))

    assert.left(world, written('b', '8', bob, '1'))
  end)

  for _, field in ipairs({ 'token', 'seq' }) do
    it('writes nothing where the fence has a ' .. field .. ' of 2^53', function()
      local before = written('a', '7', ann, '1')
      before[key].value[field] = '9007199254740992'
      helper.fill(world, before)

      assert.refused('LKARG', 'fence must', write('9', bob, 1, 'b'))

      assert.left(world, before)
    end)
  end
end)
