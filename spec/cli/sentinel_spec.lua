-- SPDX-License-Identifier: Apache-2.0
-- The tools on a master that a sentinel names.
local fleet = require('cli.fleet')
local program = require('cli.program')

local OWNER = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:1'

describe('behind a sentinel', function()
  local group

  setup(function()
    group = fleet.sentinel()
  end)

  teardown(program.clean)

  before_each(function()
    group.master:command('FLUSHALL')
  end)

  local function run_at(url, command, ...)
    return program.run({ command, '--url', url, ... })
  end

  local function run(command, ...)
    return run_at(group.url, command, ...)
  end

  -- Makes users by the lines that acl prints: of both servers, and of the sentinel.
  local function users(...)
    local result = program.run({ 'acl', 'app', '--url', group.url, ... })
    assert.equal(0, result.code, result.err)
    local servers, sentinel = result.out:match('^([^\n]+)\n([^\n]+)\n$')
    local function make(server, line)
      local words = {}
      for word in line:gmatch('%S+') do
        words[#words + 1] = word
      end
      server:command('ACL', 'DELUSER', 'app')
      words[#words + 1] = '>secret'
      assert.equal('OK', server:command(unpack(words)))
    end
    make(group.master, servers)
    make(group.replica, servers)
    make(group, sentinel)
    return (group.url:gsub('//', '//app:secret@')) .. '?sentinel_user=app&sentinel_password=secret'
  end

  local function levels(result)
    local found = {}
    for _, finding in ipairs(program.decode(result.out).findings) do
      found[finding.check] = finding
    end
    return found
  end

  it('load takes the master and its replica, and status names them', function()
    local loaded, status = run('load'), run('status')

    assert.equal(0, loaded.code, loaded.err)
    assert.truthy(loaded.out:find(group.master.tcp .. ' (master): ', 1, true))
    assert.truthy(loaded.out:find(('%s (replica of %s): '):format(group.replica.tcp,
      group.master.tcp), 1, true))
    assert.equal(0, status.code)
    assert.falsy(status.out:find('missing', 1, true))
  end)

  it('ls, inspect, break and eval work on the master', function()
    assert.equal(0, run('eval', 'lock/acquire', '--name', 'orders', '--lease', '1m', '--owner',
      OWNER, '--hold', '1').code)

    local listed, inspected = run('ls'), run('inspect', 'orders')
    local top = run('top', '--once')
    local broken = run('break', '--yes', 'orders')

    assert.truthy(listed.out:find(OWNER, 1, true))
    assert.equal(0, inspected.code)
    assert.truthy(top.out:find(OWNER, 1, true))
    assert.equal(0, broken.code)
    assert.is_true(group.master:is_free('orders'))
  end)

  it('doctor asks the sentinels, and tells of one that is of no use', function()
    local found = levels(run('doctor', '--json'))
    local more = levels(run_at(group.url:gsub('/main', ',127.0.0.1:1/main'), 'doctor', '--json'))

    assert.equal('note', found.sentinels.level)
    assert.truthy(found.sentinels.message:find('there is 1 sentinel', 1, true))
    assert.equal('note', more.sentinels.level)
    local shown = run_at(group.url:gsub('/main', ',127.0.0.1:1/main'), 'doctor')
    assert.equal(1, shown.code)
    assert.truthy(shown.out:find('PROBLEM  sentinels    a sentinel is of no use: .*127.0.0.1:1'))
  end)

  it('an application\'s users may take locks, and nothing else', function()
    local url = users('--names', 'orders:*')

    local taken = run_at(url, 'exec', '--kind', 'fenced', 'orders:1', '--', 'true')
    local refused = run_at(url, 'exec', 'users:1', '--', 'true')

    assert.equal(0, taken.code, taken.err)
    assert.equal(69, refused.code)
    for _, words in ipairs({ { 'SENTINEL', 'MASTERS' }, { 'SENTINEL', 'FAILOVER', fleet.MASTER },
      { 'SHUTDOWN' }, { 'SUBSCRIBE', '+sdown' }, { 'PUBLISH', '+switch-master', 'x' } }) do
      local answer = group:command('ACL', 'DRYRUN', 'app', unpack(words))
      assert.truthy(answer:find('no permissions', 1, true), answer)
    end
  end)

  it('doctor says what either user lacks', function()
    local url = users()
    group.master:command('ACL', 'SETUSER', 'app', '-role', '+acl|whoami', '+acl|dryrun', '+info',
      '+command|info')
    local server = run('doctor', '--user', 'app', '--json')
    group.master:command('ACL', 'SETUSER', 'app', '+role')
    group:command('ACL', 'SETUSER', 'app', '-subscribe')
    local sentinel = run_at(url, 'doctor', '--json')

    assert.equal('the user app lacks +role', levels(server).permissions.message)
    assert.equal('problem', levels(sentinel).sentinels.level)
    assert.truthy(levels(sentinel).sentinels.message:find("'subscribe'", 1, true))
  end)
end)
