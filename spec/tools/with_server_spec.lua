-- SPDX-License-Identifier: Apache-2.0
-- What runs a command beside a server: it ends whatever becomes of the server and of the terminal.
local signal = require('posix.signal')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local workshop = require('support.workshop')

local BESIDE = 'tools/lib/test/with_server.sh'
-- All that it calls, apart from what belongs to a server.
local CALLS = 'sh env mktemp rm sleep grep cat'

describe('a command beside a server', function()
  local tree

  before_each(function()
    tree = workshop.new()
    tree:copy(BESIDE)
    tree:run(('mkdir bin tmp && for name in %s; do ln -s "$(command -v $name)" bin; done')
      :format(CALLS))
  end)

  after_each(function()
    tree:remove()
  end)

  local function left()
    local _, said = tree:run('ls tmp')
    return said
  end

  it('is refused where there is no server', function()
    local code, said = tree:run('TMPDIR=$PWD/tmp PATH=bin ' .. BESIDE .. ' echo it runs')

    assert.equal(69, code)
    assert.matches('^with_server: neither redis%-server nor valkey%-server is installed\n$', said)
    assert.equal('', left())
  end)

  it('is refused where there is a cluster to be made and no redis-cli', function()
    tree:program('bin/valkey-server', '#!/bin/sh\nexec sleep 20\n')

    local code, said = tree:run('TMPDIR=$PWD/tmp PATH=bin LK_SERVER_CLUSTER=1 LK_SERVER_PORT=11000 '
      .. BESIDE .. ' echo it runs')

    assert.equal(69, code)
    assert.matches('^with_server: neither redis%-cli nor valkey%-cli is installed\n$', said)
    assert.equal('', left())
  end)

  local function needs(...)
    local lacks = workshop.lacks(...)
    if lacks then
      pending(lacks)
    end
  end

  it('has a cluster that valkey-cli makes, too', function()
    needs('redis-server|valkey-server', 'redis-cli|valkey-cli')
    for _, name in ipairs({ 'server', 'cli' }) do
      tree:run(('ln -s "$(command -v redis-%s || command -v valkey-%s)" bin/valkey-%s'):format(name,
        name, name))
    end

    local code, said = tree:run(('TMPDIR=$PWD/tmp PATH=bin LK_SERVER_CLUSTER=1 LK_SERVER_PORT=%d '
      .. '%s sh -c "echo \\$LK_SERVER_CLUSTER"')
      :format(10000 + 2 * (unistd.getpid() % 1000), BESIDE))

    assert.equal(0, code, said)
    assert.matches('^redis%-cluster://127.0.0.1:%d+\n$', said)
    assert.equal('', left())
  end)

  for _, name in ipairs({ 'HUP', 'INT', 'TERM' }) do
    it('leaves nothing when it gets a SIG' .. name, function()
      needs('redis-server|valkey-server')
      local pid = tree:start(('exec env TMPDIR=$PWD/tmp %s sh -c \'echo >begun; exec sleep 40\'')
        :format(BESIDE))
      tree:await('begun')
      local beside = utils.readfile(('/proc/%d/task/%d/children'):format(pid, pid))
      assert.matches('^%d+ %d+ $', beside)

      signal.kill(-pid, signal['SIG' .. name])

      assert.same({ 'exited', 130 }, { tree:ended(pid, 20) })
      assert.equal('', left())
      for number in beside:gmatch('%d+') do
        assert.not_equal(0, signal.kill(tonumber(number), 0))
      end
    end)
  end
end)
