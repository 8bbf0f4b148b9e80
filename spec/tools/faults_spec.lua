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

  local function run(arguments)
    local _, code, out, err = utils.executeex(
      ("LK_BUILD= CALLED='%s/called' bash '%s/tools/faults' %s"):format(tree, tree, arguments))
    return code, out, err
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
    assert.truthy(assert(utils.readfile(tree .. '/called')):find('build.sh release build', 1, true))
  end)

  it('builds again what is there, which may be of other sources', function()
    assert(dir.makepath(tree .. '/build/tests'))
    assert(utils.writefile(tree .. '/build/tests/faults', '#!/bin/sh\necho "ran $*"\n'))
    assert(utils.execute(("chmod +x '%s/build/tests/faults'"):format(tree)))

    local code, out = run('--seconds 1')

    assert.equal(0, code)
    assert.equal('ran --seconds 1\n', out)
    local called = assert(utils.readfile(tree .. '/called'))
    assert.truthy(called:find('build.sh release build', 1, true))
    assert.is_nil(called:find('setup', 1, true))
  end)
end)
