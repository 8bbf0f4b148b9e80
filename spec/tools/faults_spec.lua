-- SPDX-License-Identifier: Apache-2.0
-- tools/faults in a scratch tree, where what would install and build only says that it was called.
local dir = require('pl.dir')
local path = require('pl.path')
local stdlib = require('posix.stdlib')
local utils = require('pl.utils')

local helper = require('helper')

local NOTES = '#!/bin/sh\necho "$0 $*" >>"$CALLED"\n'

describe('tools/faults', function()
  local tree

  before_each(function()
    tree = assert(stdlib.mkdtemp('/tmp/latchkey-faults.XXXXXX'))
    assert(dir.makepath(tree .. '/tools/lib'))
    assert(dir.copyfile(helper.root .. '/tools/faults', tree .. '/tools/faults'))
    for _, name in ipairs({ 'setup', 'lib/build.sh' }) do
      assert(utils.writefile(tree .. '/tools/' .. name, NOTES))
      assert(utils.execute(("chmod +x '%s/tools/%s'"):format(tree, name)))
    end
  end)

  after_each(function()
    dir.rmtree(tree)
  end)

  local function run(arguments, before, env)
    local _, code, out, err = utils.executeex(
      ("{ %s env %s CALLED='%s/called' bash '%s/tools/faults' %s; }"):format(before or '',
        env or 'LK_BUILD=', tree, tree, arguments))
    return code, out, err
  end

  local function was_built(folder)
    return assert(utils.readfile(tree .. '/called')):find(
      ('build.sh release %s\n'):format(folder), 1, true)
  end

  it('says how it is used without building anything', function()
    local code, out = run('--help')

    assert.equal(0, code)
    assert.truthy(out:find('usage: tools/faults', 1, true))
    assert.is_false(path.exists(tree .. '/called'))
  end)

  it('builds what is missing before it runs', function()
    local code, _, err = run('--seconds 1')

    assert.equal(69, code)
    assert.truthy(err:find('was not built', 1, true))
    assert.truthy(was_built(tree .. '/build'))
  end)

  it('builds again what is there, which may be of other sources', function()
    assert(dir.makepath(tree .. '/build/tests'))
    assert(utils.writefile(tree .. '/build/tests/faults', '#!/bin/sh\necho "ran $*"\n'))
    assert(utils.execute(("chmod +x '%s/build/tests/faults'"):format(tree)))

    local code, out = run('--seconds 1')

    assert.equal(0, code)
    assert.equal('ran --seconds 1\n', out)
    assert.truthy(was_built(tree .. '/build'))
    assert.is_nil(utils.readfile(tree .. '/called'):find('setup', 1, true))
  end)

  -- A program in this folder of the tree that says where it runs.
  local function put(build)
    local program = ('%s/%s/tests/faults'):format(tree, build)
    assert(dir.makepath(path.dirname(program)))
    assert(utils.writefile(program, '#!/bin/sh\npwd -P\n'))
    assert(utils.execute(("chmod +x '%s'"):format(program)))
    assert(dir.makepath(tree .. '/elsewhere'))
  end

  it('takes folders as they are where it is called', function()
    put('build')

    local code, out = run('--judge histories', ("cd '%s/elsewhere' &&"):format(tree))

    assert.equal(0, code)
    assert.equal(tree .. '/elsewhere\n', out)
  end)

  for _, case in ipairs({ { 'LK_BUILD=built', '' }, { 'LK_BUILD=', '--build-dir built' } }) do
    it(('takes the build from there as well, by %s%s'):format(unpack(case)), function()
      put('elsewhere/built')

      local code = run(case[2], ("cd '%s/elsewhere' &&"):format(tree), case[1])

      assert.equal(0, code)
      assert.truthy(was_built(tree .. '/elsewhere/built'))
    end)
  end
end)
