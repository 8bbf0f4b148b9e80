-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local hash, string_ = helper.hash, helper.string

describe('fence/admit', function()
  local ann, bob, key = 'lk-ann:1', 'lk-bob:1', 'latchkey_fence:{disk}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function admit(token, owner)
    return world:eval('fence/admit', { key }, { token, owner })
  end

  local function fence(token, owner, seq)
    return { [key] = hash({ token = token, owner = owner, seq = seq or '0' }) }
  end

  it('admits the first hold, and remembers it for ever', function()
    assert.reply({ 1 }, admit('7', ann))

    assert.left(world, fence('7', ann))
  end)

  it('admits a hold with a higher token, whose writes count anew', function()
    helper.fill(world, fence('7', ann, '5'))

    assert.reply({ 1 }, admit('8', bob))

    assert.left(world, fence('8', bob))
  end)

  it('admits the same hold again, and lets its writes count on', function()
    helper.fill(world, fence('7', ann, '5'))

    assert.reply({ 1 }, admit('7', ann))

    assert.left(world, fence('7', ann, '5'))
  end)

  it('refuses an older token and says which has been', function()
    helper.fill(world, fence('8', bob))

    assert.reply({ -1, 8 }, admit('7', ann))

    assert.left(world, fence('8', bob))
  end)

  it('refuses an older token of the same owner', function()
    helper.fill(world, fence('8', ann))

    assert.reply({ -1, 8 }, admit('7', ann))

    assert.left(world, fence('8', ann))
  end)

  it('refuses an equal token of another owner', function()
    helper.fill(world, fence('8', bob))

    assert.reply({ -1, 8 }, admit('8', ann))

    assert.left(world, fence('8', bob))
  end)

  it('compares tokens as numbers', function()
    helper.fill(world, fence('9', ann))

    assert.reply({ 1 }, admit('10', bob))

    assert.left(world, fence('10', bob))
  end)

  it('tells the greatest tokens apart', function()
    assert.reply({ 1 }, admit('9007199254740991', ann))

    assert.reply({ -1, 9007199254740991 }, admit('9007199254740990', bob))
    assert.reply({ -1, 9007199254740991 }, admit('9007199254740991', bob))

    assert.left(world, fence('9007199254740991', ann))
  end)

  it('that runs late shuts nobody out', function()
    admit('7', ann)
    admit('8', bob)

    assert.reply({ -1, 8 }, admit('7', ann))
    assert.reply({ 1 }, admit('8', bob))

    assert.left(world, fence('8', bob))
  end)

  it('shuts out an owner that was broken, once the token of the break is admitted', function()
    local keys = { 'job', 'redisson_lock_token:{job}' }
    local token = world:eval('fenced/acquire', keys, { 30000, ann, 1 })[3]
    assert.reply({ 1 }, admit(token, ann))

    local higher = world:eval('fenced/break', keys,
      { ann, 'redisson_lock__channel:{job}', 'PUBLISH' })[2]

    assert.reply({ 1 }, admit(higher, 'operator'))
    assert.reply({ -1, higher }, admit(token, ann))
  end)

  for _, token in ipairs({ 'x', '-1', '1.5', '9007199254740992' }) do
    it(('admits nobody when the fence holds the token "%s"'):format(token), function()
      helper.fill(world, fence(token, ann))

      assert.refused('LKARG', 'fence must', admit('9', bob))

      assert.left(world, fence(token, ann))
    end)
  end

  it('admits nobody when the fence is of another type', function()
    helper.fill(world, { [key] = string_('7') })

    assert.refused('WRONGTYPE', 'wrong kind', admit('9', bob))

    assert.left(world, { [key] = string_('7') })
  end)

  it('admits the lowest token there is', function()
    assert.reply({ 1 }, admit('1', ann))

    assert.left(world, fence('1', ann))
  end)
end)
