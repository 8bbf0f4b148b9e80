-- SPDX-License-Identifier: Apache-2.0
-- How the LuaJIT binding finds the library, with one of a single function.
local workshop = require('support.workshop')

if not rawget(_G, 'jit') then
  return -- it is LuaJIT's
end

describe('the library of the LuaJIT binding', function()
  local tree

  before_each(function()
    tree = workshop.new('sp ace')
    tree:copy('tools/latchkey/library.lua')
    tree:write('x.c', 'int lk_one(void);\nint lk_one(void) { return 1; }\n')
    tree:write('tools/latchkey/generated/latchkey_cdef.lua', "return 'int lk_one(void);'\n")
    tree:write('tools/latchkey/generated/soname.lua', "return 'liblatchkey.so.7'\n")
  end)

  after_each(function()
    tree:remove()
  end)

  local function call(file)
    local lacks = workshop.lacks('cc')
    if lacks then
      pending(lacks)
    end
    return tree:run(([[mkdir lib && cc -shared -fPIC -o lib/%s x.c &&
      unset LATCHKEY_LIB && LD_LIBRARY_PATH=$PWD/lib LUA_PATH="$PWD/tools/?.lua" \
      luajit -e "print(require('latchkey.library').lib.lk_one())"]]):format(file))
  end

  it('is found without the link that comes with its headers', function()
    local code, said = call('liblatchkey.so.7')

    assert.equal(0, code, said)
    assert.equal('1\n', said)
  end)

  it('is none of another binary interface', function()
    local code, said = call('liblatchkey.so')

    assert.equal(1, code, said)
    assert.matches('liblatchkey.so.7: cannot open shared object file', said, 1, true)
  end)
end)
