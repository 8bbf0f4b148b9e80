-- SPDX-License-Identifier: Apache-2.0
-- What every script keeps to that writes behind a fence: admit_set and admit_hset differ only in
-- what they write, and each says that itself.
local assert = require('luassert')

local helper = require('helper')
local hash = helper.hash

local writes = { ann = 'lk-ann:1', bob = 'lk-bob:1', fence = 'latchkey_fence:{disk}' }

local ann, bob, fence = writes.ann, writes.bob, writes.fence

---The key with what the fence holds: whose hold wrote last, with which seq.
---@return table
function writes.fenced(token, owner, seq)
  return hash({ token = token, owner = owner, seq = seq })
end

-- Each: its title; what comes before; the call; its reply; the value, token, owner and seq left.
local CASES = {
  { 'writes for the first hold, and remembers it for ever', {},
    { '7', ann, 1, 'a' }, { 1 }, { 'a', '7', ann, '1' } },
  { 'writes for the same hold with a higher seq', { { '7', ann, 1, 'a' } },
    { '7', ann, 5, 'b' }, { 1 }, { 'b', '7', ann, '5' } },
  { 'does nothing late: the same hold has written since',
    { { '7', ann, 1, 'a' }, { '7', ann, 2, 'b' } },
    { '7', ann, 1, 'a' }, { -2 }, { 'b', '7', ann, '2' } },
  { 'compares the seq as a number, upwards', { { '7', ann, 9, 'a' } },
    { '7', ann, 10, 'b' }, { 1 }, { 'b', '7', ann, '10' } },
  { 'compares the seq as a number, downwards', { { '7', ann, 10, 'b' } },
    { '7', ann, 9, 'a' }, { -2 }, { 'b', '7', ann, '10' } },
  { 'writes for a hold with a higher token, which counts anew', { { '7', ann, 5, 'a' } },
    { '8', bob, 1, 'b' }, { 1 }, { 'b', '8', bob, '1' } },
  { 'writes for a higher token with the seq that was written last', { { '7', ann, 1, 'a' } },
    { '8', bob, 1, 'b' }, { 1 }, { 'b', '8', bob, '1' } },
  { 'writes for a hold that was admitted without writing', { { '7', ann } },
    { '7', ann, 1, 'a' }, { 1 }, { 'a', '7', ann, '1' } },
  { 'refuses an older token and says which has been', { { '8', bob, 1, 'b' } },
    { '7', ann, 2, 'a' }, { -1, 8 }, { 'b', '8', bob, '1' } },
  { 'refuses an older token than that of a hold that was admitted without writing',
    { { '7', ann, 1, 'a' }, { '8', bob } },
    { '7', ann, 2, 'b' }, { -1, 8 }, { 'a', '8', bob, '0' } },
  { 'tells tokens apart by all their digits', { { '21', bob, 1, 'b' } },
    { '9', ann, 2, 'a' }, { -1, 21 }, { 'b', '21', bob, '1' } },
  { 'refuses an equal token of another owner', { { '8', bob, 1, 'b' } },
    { '8', ann, 2, 'a' }, { -1, 8 }, { 'b', '8', bob, '1' } },
  { 'writes any bytes', {},
    { '7', ann, 1, '\0\r\n\255' }, { 1 }, { '\0\r\n\255', '7', ann, '1' } },
  { 'writes for the lowest token there is', {},
    { '1', ann, 1, 'a' }, { 1 }, { 'a', '1', ann, '1' } },
}

-- Fences that no script left: none of them lets a call through.
local BROKEN = {
  { 'a token that is no number', { token = 'x' } },
  { 'a seq below 0', { token = '7', owner = ann, seq = '-1' } },
  { 'a token of 2^53', { token = '9007199254740992', owner = ann, seq = '1' } },
  { 'a seq of 2^53', { token = '7', owner = ann, seq = '9007199254740992' } },
}

---The specs that hold for both, in the describe block they are called from.
---@param it function busted's, which only spec files see
---@param write fun(world: table, token: string, owner: string, seq: integer, value: string): any
---@param content fun(value: string): table what `disk` is when `value` was written
---@param change fun(world: table) changes `disk` behind the script's back
---@param changed table what `disk` is then
---@param other table a key of another type
function writes.specs(it, write, content, change, changed, other)
  local function call(world, arguments)
    if #arguments == 2 then
      return world:eval('fence/admit', { fence }, arguments)
    end
    return write(world, unpack(arguments))
  end

  for _, case in ipairs(CASES) do
    local title, earlier, last, reply, left = unpack(case)
    it(title, function()
      local world = helper.world()
      for _, arguments in ipairs(earlier) do
        call(world, arguments)
      end

      assert.reply(reply, call(world, last))

      assert.left(world,
        { disk = content(left[1]), [fence] = writes.fenced(left[2], left[3], left[4]) })
    end)
  end

  it('writes once when the call runs twice', function()
    local world = helper.world()
    write(world, '7', ann, 1, 'a')
    change(world)

    assert.reply({ 1 }, write(world, '7', ann, 1, 'a'))

    assert.left(world, { disk = changed, [fence] = writes.fenced('7', ann, '1') })
  end)

  for _, broken in ipairs(BROKEN) do
    it('writes nothing where the fence has ' .. broken[1], function()
      local world = helper.world()
      helper.fill(world, { [fence] = hash(broken[2]) })

      assert.refused('LKARG', 'fence must', write(world, '9', bob, 1, 'b'))

      assert.left(world, { [fence] = hash(broken[2]) })
    end)
  end

  it('writes nothing to a key of another type', function()
    local world = helper.world()
    helper.fill(world, { disk = other })

    assert.refused('WRONGTYPE', 'wrong kind', write(world, '7', ann, 1, 'a'))

    assert.left(world, { disk = other })
  end)
end

return writes
