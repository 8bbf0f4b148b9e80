-- SPDX-License-Identifier: Apache-2.0
-- What `latchkey acl` prints for a cluster, as the user of every node.
local fleet = require('cli.fleet')
local program = require('cli.program')

local OWNER = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:1'
local CHANNEL = 'redisson_lock__channel:{%s}'

describe('the rule of latchkey acl, on a cluster', function()
  local cluster

  setup(function()
    cluster = fleet.cluster()
  end)

  teardown(program.clean)

  before_each(function()
    cluster:all('FLUSHALL')
  end)

  local function users(...)
    local result = program.run({ 'acl', 'app', '--url', cluster.url, ... })
    local words = {}
    assert.equal(0, result.code, result.err)
    for word in result.out:gmatch('%S+') do
      words[#words + 1] = word
    end
    words[#words + 1] = '>secret'
    cluster:all('ACL', 'DELUSER', 'app')
    assert.equal('OK', cluster:all(unpack(words)))
    return result.out
  end

  local function as_user(command, ...)
    local url = cluster.url:gsub('//', '//app@')
    return { command, '--url', url, ... }, { env = { LATCHKEY_PASSWORD = 'secret' } }
  end

  local function run(...)
    return program.run(as_user(...))
  end

  local function may(...)
    return cluster.masters[1]:command('ACL', 'DRYRUN', 'app', ...) == 'OK'
  end

  it('is derived from the URL, or asked for', function()
    local derived = users('--family', 'mutex')
    local asked = program.run({ 'acl', 'app', '--cluster', '--family', 'mutex' })

    assert.equal(derived, asked.out)
    assert.equal('ACL SETUSER app on clearselectors resetkeys resetchannels -@all +asking '
      .. '+client|setname +cluster|slots +del +evalsha +get +pexpire +ping +pttl '
      .. '+publish +script|load +select +set +spublish +ssubscribe +subscribe +sunsubscribe '
      .. '+unsubscribe ~* &latchkey_mutex:*\n', derived)
    assert.truthy(asked.err:find('give it to all', 1, true))
  end)

  it('lets a user take locks of every kind on each node', function()
    users('--names', 'orders:*')

    for _, kind in ipairs({ 'lock', 'mutex', 'fenced', 'fair', 'read', 'write', 'permit:1' }) do
      for _, master in ipairs(cluster.masters) do
        local name = cluster:name_on(master, 'orders:' .. kind:gsub(':.*', ''))
        local result = run('exec', '--kind', kind, name, '--', 'true')
        assert.equal(0, result.code, kind .. ': ' .. result.err)
      end
    end
  end)

  it('lets a user wait, and hear of the release', function()
    users('--names', 'orders:*')
    local name = cluster:name_on(cluster.masters[2], 'orders')
    assert.equal(0, run('eval', 'lock/acquire', '--name', name, '--lease', '10m', '--owner', OWNER,
      '--hold', '1').code)
    local job = program.start(as_user('exec', '--wait', '1m', name, '--', 'true'))
    program.eventually('it waits', function()
      return cluster.masters[2]:command('PUBSUB', 'SHARDNUMSUB', CHANNEL:format(name)):find('1$')
    end)

    local result = run('eval', 'lock/release', '--name', name, '--lease', '10m', '--owner', OWNER,
      '--hold', '0')

    assert.equal(0, result.code, result.err)
    assert.equal(0, job:wait().code)
  end)

  it('lets a user load where that is asked for', function()
    users('--load', '--names', 'orders:*')
    local loaded, status = run('load'), run('status')

    assert.equal(0, loaded.code, loaded.err)
    assert.equal(0, status.code, status.err)
  end)

  it('refuses other names, other channels and other commands', function()
    users('--names', 'orders:*', '--family', 'lock')
    local theirs, others = CHANNEL:format('orders:1'), CHANNEL:format('users:1')

    for _, master in ipairs(cluster.masters) do
      local name = cluster:name_on(master, 'users')
      local result = run('exec', name, '--', 'true')
      assert.equal(69, result.code)
      assert.equal('0', master:command('DBSIZE'))
    end
    assert.is_true(may('SSUBSCRIBE', theirs) and may('SPUBLISH', theirs, '0'))
    assert.is_false(may('SSUBSCRIBE', others) or may('SPUBLISH', others, '0'))
    for _, words in ipairs({ { 'CLUSTER', 'FAILOVER' }, { 'CLUSTER', 'RESET' },
      { 'CLUSTER', 'NODES' }, { 'CLUSTER', 'FORGET', 'x' }, { 'SCRIPT', 'FLUSH' },
      { 'MIGRATE', 'h', '1', 'orders:1', '0', '1' }, { 'READONLY' }, { 'KEYS', '*' } }) do
      assert.is_false(may(unpack(words)), words[1] .. ' ' .. (words[2] or ''))
    end
  end)

  it('is what doctor finds nothing to say against', function()
    users('--names', 'orders:*')

    local good = program.run({ 'doctor', '--url', cluster.url, '--user', 'app', '--name',
      'orders:1', '--json' })
    local findings = program.decode(good.out).findings

    local count = 0
    for _, finding in ipairs(findings) do
      if finding.check == 'permissions' then
        assert.equal('good', finding.level, finding.message)
        count = count + 1
      end
    end
    assert.equal(3, count)
  end)
end)
