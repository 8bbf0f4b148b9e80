-- SPDX-License-Identifier: Apache-2.0
-- What LuaJIT alone would read is refused there; under Lua 5.1 it is what it is on a server. What
-- the library answers is in cases/language.lua.
local World = require('latchkey.mock.world')

describe('a script', function()
  local jit = rawget(_G, 'jit')
  for _, code in ipairs({ "return '\\x41'", "return '\\u{48}'", "return #'\\z  a'",
    'do goto out end ::out:: return 1', 'return 0xffLL', 'return 1i', 'return 0b1' }) do
    it('with ' .. code .. ' is not run as LuaJIT would', function()
      local reply, err = World.new():eval_source(code, {}, {})

      if jit then
        assert.is_nil(reply)
        assert.matches('MOCK line 1: ', err.message)
      else
        assert.is_not.equal('A', reply)
      end
    end)
  end

  it('that loads what only LuaJIT reads is refused', function()
    local reply, err = World.new():eval_source("return loadstring('return 0b1') == nil", {}, {})

    if jit then
      assert.matches('MOCK line 1: 0b1 is no number of Lua 5.1', err.message)
    else
      assert.equal(1, reply)
    end
  end)
end)
