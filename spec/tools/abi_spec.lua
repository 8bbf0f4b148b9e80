-- SPDX-License-Identifier: Apache-2.0
-- tools/abi finds what breaks programs: with small libraries in the place of latchkey's.
local dir = require('pl.dir')
local utils = require('pl.utils')

local helper = require('helper')

local HEADER = 'typedef struct { int size; %s long lease_ms; } lk_options;\n'
  .. 'int lk_open(lk_options *options);\nint lk_close(int client);\n%s'
local SOURCE = '#include <latchkey/latchkey.h>\nint lk_open(lk_options *o) { return o->size; }\n%s'
local CLOSE = 'int lk_close(int client) { return client; }\n'

describe('tools/abi', function()
  local root

  local function shell(line)
    local ok, code, out, err = utils.executeex(("cd '%s' && %s"):format(root, line))
    return ok, out .. err, code
  end

  -- A library with this member, these declarations and these functions.
  local function build(member, more, functions, soname, debug)
    utils.writefile(root .. '/c/include/latchkey/latchkey.h', HEADER:format(member, more))
    utils.writefile(root .. '/a.c', SOURCE:format(functions))
    assert(shell(('cc %s -shared -fPIC -Ic/include -Wl,-soname,%s a.c -o b/liblatchkey.so'):format(
      debug or '-g', soname or 'liblatchkey.so.0')))
  end

  before_each(function()
    root = os.tmpname()
    os.remove(root)
    dir.makepath(root .. '/c/include/latchkey')
    dir.makepath(root .. '/tools')
    dir.makepath(root .. '/b')
    assert(utils.execute(("cp '%s/tools/abi' '%s/tools/'"):format(helper.root, root)))
    utils.writefile(root .. '/VERSION', '0.1.0\n')
    utils.writefile(root .. '/CHANGELOG.md', '## Unreleased\n')
    build('', '', CLOSE)
  end)

  after_each(function()
    dir.rmtree(root)
  end)

  local function kept()
    if not shell('command -v abidiff') then
      pending('libabigail is not installed')
      return false
    end
    local ok, said = shell('tools/abi --write b')
    assert.is_true(ok, said)
    return true
  end

  it('is silent about what it has kept', function()
    if not kept() then return end

    local ok, said = shell('tools/abi b')

    assert.is_true(ok, said)
    assert.equal('', said)
  end)

  for title, case in pairs({
    ['a function that is gone'] = { '', '', '', 'lk_close' },
    ['a member in the middle of a structure'] = { 'long kind;', '', CLOSE, 'kind' },
  }) do
    it('finds ' .. title, function()
      if not kept() then return end
      build(case[1], case[2], case[3])

      local _, said, code = shell('tools/abi b')

      assert.equal(1, code, said)
      assert.truthy(said:find(case[4], 1, true), said)
      assert.truthy(said:find('tools/abi --write', 1, true))
    end)
  end

  it('refuses a library without debug information, of which it would see no types', function()
    if not kept() then return end
    build('long kind;', '', CLOSE, nil, '-g0')

    local _, said, code = shell('tools/abi b')

    assert.equal(69, code, said)
    assert.truthy(said:find('no debug information', 1, true), said)
  end)

  it('finds a new function, which breaks nothing', function()
    if not kept() then return end
    build('', 'int lk_new(void);\n', CLOSE .. 'int lk_new(void) { return 0; }\n')

    local _, said, code = shell('tools/abi b')

    assert.equal(1, code)
    assert.truthy(said:find('lk_new', 1, true), said)
    assert.is_nil(said:find('may not run', 1, true))
  end)

  it('keeps a break of a released version only under the next soname', function()
    if not kept() then return end
    utils.writefile(root .. '/CHANGELOG.md', '## 0.1.0\n')
    build('', '', '')

    local _, said, code = shell('tools/abi --write b')
    assert.equal(1, code)
    assert.truthy(said:find('raise SOVERSION', 1, true), said)

    build('', '', '', 'liblatchkey.so.1')
    assert.is_true((shell('tools/abi --write b')))
    assert.is_true((shell('tools/abi b')))
  end)

  it('keeps nothing over a file that cannot be compared', function()
    if not kept() then return end
    local file = root .. '/c/include/liblatchkey.abi'
    local text = assert(utils.readfile(file))
    utils.writefile(root .. '/CHANGELOG.md', '## 0.1.0\n')
    build('', '', '')

    for _, broken in ipairs({ (text:gsub('\n', '\n<<<<<<< HEAD\n', 4)), text:sub(1, -200), '',
      'no XML\n' }) do
      utils.writefile(file, broken)
      for _, words in ipairs({ 'tools/abi --write b', 'tools/abi b' }) do
        local _, said, code = shell(words)

        assert.equal(69, code, words .. '\n' .. said)
        assert.truthy(said:find('cannot compare c/include/liblatchkey.abi', 1, true), said)
        assert.is_nil(said:find('if it is meant', 1, true), said)
        assert.equal(broken, utils.readfile(file))
      end
    end
  end)
end)
