-- SPDX-License-Identifier: Apache-2.0
-- tools/fuzz with targets that take long, and are ended from a terminal, or cannot be listed.
local signal = require('posix.signal')

local workshop = require('support.workshop')

describe('tools/fuzz', function()
  local tree

  before_each(function()
    tree = workshop.new()
    tree:copy('tools/fuzz')
    for _, name in ipairs({ 'in_c', 'in_c_too' }) do
      tree:write(('c/tests/fuzz/%s.c'):format(name), '')
      -- As libFuzzer's programs end.
      tree:program('build/fuzz/tests/fuzz_' .. name, [[#!/bin/sh
        trap 'exit 72' INT TERM
        echo $$ >>pids
        sleep 40 & wait
      ]])
    end
    for _, name in ipairs({ 'clang', 'cmake' }) do
      tree:program('bin/' .. name, '#!/bin/sh\n')
    end
    tree:program('bin/luajit', [[#!/bin/sh
      if [ "$2" = --list ]; then
        printf 'in_lua\nin_lua_too\n'
      else
        echo $$ >>pids
        sleep 40
      fi
    ]])
  end)

  after_each(function()
    tree:remove()
  end)

  for _, case in ipairs({ { 'SIGINT', 'in_lua' }, { 'SIGTERM', 'in_lua' }, { 'SIGINT', 'in_c' },
    { 'SIGTERM', 'in_c' } }) do
    local name, target = unpack(case)
    it(('ends with its target at once when it gets a %s: %s'):format(name, target), function()
      local pid = tree:start(('PATH="$PWD/bin:$PATH" exec tools/fuzz --seconds 9 %s %s_too')
        :format(target, target))
      tree:await('pids')

      signal.kill(name == 'SIGINT' and -pid or pid, signal[name])

      assert.same({ 'exited', 130 }, { tree:ended(pid, 20) })
      local target_pid = tree:read('pids'):match('^(%d+)\n$')
      assert.not_equal(0, signal.kill(tonumber(target_pid), 0))
      assert.is_nil(tree:read('said'):find('FOUND', 1, true))
    end)
  end

  it('runs nothing when the targets in Lua cannot be listed', function()
    tree:program('bin/luajit', '#!/bin/sh\necho "luajit: no module" >&2\nexit 1\n')

    for _, words in ipairs({ '--list', '--seconds 1', 'in_c' }) do
      local code, said = tree:run(('PATH="$PWD/bin:$PATH" tools/fuzz %s'):format(words))

      assert.equal(69, code, said)
      assert.equal('luajit: no module\nfuzz: the targets in Lua cannot be listed\n', said)
    end
    assert.is_nil(tree:read('pids'))
  end)
end)
