-- SPDX-License-Identifier: Apache-2.0
-- tools/sim where what configures and builds only says that it was called.
local workshop = require('support.workshop')

describe('tools/sim', function()
  local tree

  before_each(function()
    tree = workshop.new()
    tree:copy('tools/sim')
    tree:write('c/tests/sim/sabotages/wrong.patch', 'Found by: simulation alone\n')
    tree:write('c/tests/torture/sabotages/other.patch', 'Found by: torture\n')
    -- A build of the simulator is a program that says how it was called.
    tree:program('bin/cmake', [[#!/bin/sh
      echo "$@" >>called
      while [ $# -gt 0 ]; do
        case $1 in -B | --build) folder=$2 ;; esac
        shift
      done
      mkdir -p "${folder=build}/tests/sim_wrong" && : >"$folder/build.ninja"
      printf '#!/bin/sh\necho "ran $0 $*"\n' >"$folder/tests/sim"
      printf '#!/bin/sh\nls nothing\n' >"$folder/tests/sim_wrong/wrong"
      chmod +x "$folder/tests/sim" "$folder/tests/sim_wrong/wrong"
    ]])
  end)

  after_each(function()
    tree:remove()
  end)

  local function run(words, env)
    return tree:run(('PATH="$PWD/bin:$PATH" %s tools/sim %s'):format(env or '', words))
  end

  for _, folder in ipairs({ 'build', 'another folder' }) do
    it('configures and builds where it is told to: ' .. folder, function()
      local code, said = run('--seed 1', folder ~= 'build' and ('LK_BUILD="%s"'):format(folder))

      assert.equal(0, code, said)
      assert.equal(('ran %s/%s/tests/sim --seed 1\n'):format(tree.root, folder), said)
      if folder ~= 'build' then
        assert.equal('', select(2, tree:run('ls build 2>/dev/null')))
      end
    end)
  end

  it('says that a wrong version was not found', function()
    local code, said = run('--sabotage wrong --starts 1 --for 1')

    assert.equal(1, code, said)
    assert.matches('\n0 of 1 wrong versions found from each of 1 starts\n$', said)
  end)

  for _, words in ipairs({ '--seed 1', '--sabotage wrong', '--determinism 4', '--help' }) do
    it('says why it could not be built, which is no violation: ' .. words, function()
      tree:program('bin/cmake', [[#!/bin/sh
        case $* in *--build*) echo 'x.c:1: error: this'; exit 1 ;; esac
        mkdir -p build && : >build/build.ninja
      ]])

      local code, said = run(words)

      assert.equal(70, code, said)
      assert.equal('x.c:1: error: this\nsim: nothing was built\n', said)
    end)
  end

  it('says why it could not be configured', function()
    tree:program('bin/cmake', '#!/bin/sh\necho "no such preset" >&2\nexit 1\n')

    local code, said = run('--seed 1')

    assert.equal(70, code, said)
    assert.equal('no such preset\nsim: nothing was built\n', said)
  end)

  it('looks for a wrong version with the options that its patch asks for', function()
    tree:write('c/tests/sim/sabotages/wrong.patch', 'Sim: --work eval --seconds 60\n')
    tree:program('build/tests/sim_wrong/wrong', '#!/bin/sh\necho "$@" >>asked\n')
    tree:program('bin/cmake', '#!/bin/sh\n')
    tree:write('build/build.ninja', '')

    run('--sabotage wrong --starts 1 --for 1')

    assert.equal('--work eval --seconds 60 --seeds 1..1000000 --hunt --for 1 --jobs 1\n',
      tree:read('asked'))
  end)

  for _, wrong in ipairs({ '--sabotage wrong --starts 0', '--sabotage wrong --starts many',
    '--sabotage wrong --for 0', '--sabotage wrong --starts', '--sabotage wrong --fast 1',
    '--sabotage nosuch', '--sabotage', '--determinism 0', '--determinism', '--determinism many',
    '--determinism 4 --seconds 0', '--determinism 4 --fast' }) do
    it('refuses ' .. wrong, function()
      local code, said = run(wrong)

      assert.equal(64, code, said)
      assert.matches('usage: tools/sim', said, 1, true)
    end)
  end
end)
