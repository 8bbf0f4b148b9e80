-- SPDX-License-Identifier: Apache-2.0
-- The list of what was installed from a build, behind a test that installs it elsewhere. What
-- builds only fails here, so that the test is over soon.
local workshop = require('support.workshop')

if not rawget(_G, 'jit') then
  return -- once is enough: it is a program of the shell's
end

describe('the test of an installation', function()
  local tree

  before_each(function()
    tree = workshop.new('sp ace')
    tree:copy('c/tests/consumer/run.sh', 'docs/howto/install.md', 'VERSION')
    tree:write('c/examples/example.c', '')
    tree:write('build/CMakeCache.txt', '')
    for _, name in ipairs({ 'cc', 'clang', 'ninja', 'pkg-config', 'nm' }) do
      tree:program('bin/' .. name, '#!/bin/sh\nexit 1\n')
    end
    tree:program('bin/cmake', [[#!/bin/sh
      [ "$1" = --install ] || exit 1
      mkdir -p "$4/bin" && : >"$4/bin/latchkey" && echo "$4/bin/latchkey" >"$2/install_manifest.txt"
    ]])
  end)

  after_each(function()
    tree:remove()
  end)

  local function run()
    local _, said = tree:run('TMPDIR=$PWD PATH="$PWD/bin:$PATH" c/tests/consumer/run.sh build')
    assert.matches('\nok %d+ %- installs\n', said)
  end

  it('keeps the list of what somebody installed', function()
    tree:write('build/install_manifest.txt', '/usr/local/bin/latchkey\n')

    run()

    assert.equal('/usr/local/bin/latchkey\n', tree:read('build/install_manifest.txt'))
  end)

  it('leaves no list where there was none', function()
    run()

    assert.is_nil(tree:read('build/install_manifest.txt'))
  end)
end)
