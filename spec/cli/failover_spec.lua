-- SPDX-License-Identifier: Apache-2.0
-- LATCHKEY_SPEC_FAILOVERS=10 makes ten fail-overs.
local signal = require('posix.signal')

local fleet = require('cli.fleet')
local program = require('cli.program')

describe('latchkey exec behind a sentinel', function()
  teardown(program.clean)

  local FAIL_OVERS = tonumber(os.getenv('LATCHKEY_SPEC_FAILOVERS')) or 1

  it('waits through fail-overs: no run ends with 69', function()
    local group = fleet.sentinel('sentinel down-after-milliseconds main 700',
      'sentinel failover-timeout main 4000')
    local words = { 'exec', '--url', group.url, '--wait', '60s', 'job', '--', 'true' }
    local master, replica = group.master, group.replica
    local codes, runs = {}, 0

    local function run()
      local result = program.run(words)
      codes[result.code or result.signal] = (codes[result.code or result.signal] or 0) + 1
      runs = runs + 1
    end

    for _ = 1, FAIL_OVERS do
      run()
      master.process:kill(signal.SIGKILL)
      master.process:wait()
      program.eventually('the other is the master', function()
        run()
        return replica:command('ROLE'):find('^master')
      end, 60)
      run()
      master:start()
      master:command('REPLICAOF', '127.0.0.1', replica.port) -- before the sentinel gets to it
      program.eventually('the old one follows, and the sentinel knows it', function()
        return master:command('INFO', 'replication'):find('master_link_status:up', 1, true)
          and group:command('SENTINEL', 'REPLICAS', 'main'):find('flags\nslave\n')
      end, 60)
      master, replica = replica, master
    end

    assert.same({ [0] = runs }, codes)
    assert.is_true(runs >= 3 * FAIL_OVERS)
  end)
end)
