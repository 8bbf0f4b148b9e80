-- SPDX-License-Identifier: Apache-2.0
-- Servers that are broken in one way each, and engines that are no Redis: what doctor says of them.
local path = require('pl.path')

local fleet = require('cli.fleet')
local program = require('cli.program')

-- The way, the check that finds it, and a part of what is said, and of what is to be done.
local WAYS = {
  { 'shebang', 'trial', 'it refuses scripts that begin with "#!lua"', 'Redis 7.0' },
  { 'full', 'trial', 'no memory for scripts', 'maxmemory' },
  { 'forgets', 'trial', 'forgets scripts at once', 'proxy' },
  { 'read_only', 'trial', 'it is read-only', 'name the master' },
  { 'no_evalsha', 'trial', 'does not know EVALSHA', 'rename-command' },
  { 'no_script', 'trial', 'does not know SCRIPT LOAD', 'rename-command' },
  { 'wrong_answer', 'trial', 'does not run', 'latchkey needs Redis 7.0' },
  { 'loses', 'trial', 'it loses scripts', 'SCRIPT FLUSH' },
  { 'no_room', 'trial', 'no memory for new holds', 'maxmemory' },
  { 'changes', 'trial', 'under another SHA1', 'proxy' },
  { 'renamed', 'commands', 'does not know PUBLISH:', 'rename-command' },
  { 'no_subscribe', 'messages', "unknown command 'SUBSCRIBE'", 'no proxy without it' },
  { 'hangs_up', 'messages', 'nobody can listen for a release', 'no proxy without it' },
  { 'deaf', 'messages', 'did not come within 2.0 s', 'no proxy that keeps messages' },
  { 'evicts', 'memory', 'volatile-lru', 'noeviction' },
  { 'clock', 'clock', 'ahead', 'time service' },
  { 'old', 'version', 'too old', 'update' },
}

local ENGINES = {
  ['dragonfly_version:df-v1.21.0'] = 'Dragonfly df-v1.21.0',
  ['kvrocks_version:2.9.0'] = 'Kvrocks 2.9.0',
  ['garnet_version:1.0.40'] = 'Garnet 1.0.40',
  ['executable:/usr/bin/keydb-server'] = 'KeyDB 7.0.15',
  ['os:Amazon ElastiCache'] = 'Redis 7.0.15 (Amazon ElastiCache)',
  ['os:Amazon MemoryDB'] = 'Redis 7.0.15 (Amazon MemoryDB)',
  ['rlec_version:7.8.2-34'] = 'Redis 7.0.15 (Redis Enterprise 7.8.2-34)',
}

describe('latchkey doctor of a broken server', function()
  after_each(program.clean)

  local function server(way, more)
    local at = program.folder() .. '/s'
    program.start_any('luajit', { program.root .. '/spec/cli/broken_server.lua', at, way, more })
    program.eventually('the server listens', function()
      return path.exists(at)
    end)
    return 'unix://' .. at
  end

  -- The findings of this check, and the exit code.
  local function examine(url, check, ...)
    local result = program.run({ 'doctor', '--url', url, '--json', ... })
    local found = {}
    for _, finding in ipairs(program.decode(result.out).findings) do
      if finding.check == check then
        found[#found + 1] = finding
      end
    end
    return found, result.code
  end

  for _, row in ipairs(WAYS) do
    local way, check, said, advice = unpack(row)
    it(('names it, and what to do: %s'):format(way), function()
      local found, code = examine(server(way), check)

      assert.equal(1, code)
      assert.equal(1, #found)
      assert.equal('problem', found[1].level)
      assert.truthy(found[1].message:find(said, 1, true), found[1].message)
      assert.truthy(found[1].advice:find(advice, 1, true), found[1].advice)
    end)
  end

  it('names one whose scripts may not publish, as locks are tried', function()
    local found, code = examine(server('no_publish'), 'trial', '--family', 'fair')

    assert.equal(1, code)
    assert.equal('good', found[1].level)
    assert.equal('problem', found[2].level)
    assert.truthy(found[2].message:find('fair: a lock was not taken', 1, true), found[2].message)
    assert.truthy(found[2].message:find('PUBLISH', 1, true), found[2].message)
  end)

  it('tries no lock where no script runs', function()
    assert.equal(1, #examine(server('shebang'), 'trial'))
    assert.equal(2, #examine(server('not'), 'trial'))
  end)

  -- Servers that are broken, as far as a real one can be made so.
  it('names a real server whose PUBLISH has another name', function()
    local real = program.server('--appendonly', 'yes', '--rename-command', 'PUBLISH', '')
    local found, code = examine(real.url, 'commands')
    local tried = examine(real.url, 'trial', '--family', 'lock')

    assert.equal(1, code)
    assert.truthy(found[1].message:find('it does not know PUBLISH:', 1, true), found[1].message)
    assert.truthy(tried[2].message:find('lock: a lock was not released', 1, true),
      tried[2].message)
  end)

  for name, row in pairs({
    INFO = { 'server', 'problem', 'does not know INFO' },
    TIME = { 'clock', 'problem', 'does not know TIME' },
    PUBSUB = { 'commands', 'note', 'does not know PUBSUB' },
    PING = { 'commands', 'note', 'does not know PING' },
  }) do
    it('names a real server that does not know ' .. name, function()
      local real = program.server('--appendonly', 'yes', '--rename-command', name, '')

      local found, code = examine(real.url, row[1])

      assert.equal(row[2] == 'problem' and 1 or 0, code)
      assert.equal(row[2], found[1].level)
      assert.truthy(found[1].message:find(row[3], 1, true), found[1].message)
      assert.truthy(found[1].advice:find('rename-command', 1, true), found[1].advice)
    end)
  end

  it('names all that is not known of what locks do without', function()
    local real = program.server('--appendonly', 'yes', '--rename-command', 'PING', '',
      '--rename-command', 'PUBSUB', '')

    local found, code = examine(real.url, 'commands')

    assert.same({ 0, 2, 'note', 'note' }, { code, #found, found[1].level, found[2].level })
  end)

  it('says of a server without the replicas that it needs what it lacks', function()
    local real = program.server('--min-replicas-to-write', '1')

    local found, code = examine(real.url, 'trial')

    assert.equal(1, code)
    assert.equal(1, #found)
    assert.truthy(found[1].message:find('fewer replicas than it needs', 1, true), found[1].message)
    assert.truthy(found[1].advice:find('min-replicas-to-write', 1, true), found[1].advice)
  end)

  it('keeps what it has found where a later question is not answered', function()
    local real = program.server()
    real:command('CLIENT', 'PAUSE', '60000', 'WRITE')

    local result = program.run({ 'doctor', '--url', real.url })

    assert.equal(1, result.code)
    assert.truthy(result.out:find('a restart forgets every lock', 1, true), result.out)
    assert.truthy(result.err:find('in time', 1, true), result.err)
  end)

  it('names a cluster whose SPUBLISH has another name', function()
    local port = fleet.free_port()
    local real = program.server('--appendonly', 'yes', '--port', port, '--bind', '127.0.0.1',
      '--cluster-enabled', 'yes', '--rename-command', 'SPUBLISH', '')
    real:command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    program.eventually('the cluster is whole', function()
      return real:command('CLUSTER', 'INFO'):find('cluster_state:ok', 1, true)
    end)
    local url = 'redis-cluster://127.0.0.1:' .. port
    local found, code = examine(url, 'commands')
    local single = examine('redis://127.0.0.1:' .. port, 'topology')

    assert.equal(1, code)
    assert.truthy(found[1].message:find('it does not know SPUBLISH:', 1, true), found[1].message)
    assert.equal('problem', single[1].level)
    assert.truthy(single[1].advice:find('redis-cluster://', 1, true))
  end)

  it('finds nothing wrong with the same server when it is not broken', function()
    local found, code = examine(server('not'), 'trial')

    assert.equal(0, code)
    assert.equal('good', found[1].level)
  end)

  it('hears the release of a lock, of the first family that has a message for all', function()
    for _, family in ipairs({ 'lock', 'mutex', 'fenced', 'rw', 'semaphore', 'permit',
      'countdown' }) do
      local real = program.server('--appendonly', 'yes')
      local found, code = examine(real.url, 'messages', '--family', family)

      assert.equal(0, code)
      assert.equal(1, #found)
      assert.equal('good', found[1].level, family .. ': ' .. found[1].message)
    end
    assert.same({}, (examine(server('not'), 'messages', '--family', 'fair')))
  end)

  it('does not call it a problem that a user may not listen, and says so', function()
    local real = program.server('--appendonly', 'yes')
    real:command('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-subscribe')

    local found = examine((real.url:gsub('^unix://', 'unix://app:secret@')), 'messages')

    assert.equal(1, #found)
    assert.equal('note', found[1].level)
    assert.truthy(found[1].message:find('this user may not listen (SUBSCRIBE)', 1, true),
      found[1].message)
  end)

  it('says which engine it is, and that it is not tested', function()
    for more, title in pairs(ENGINES) do
      local found = examine(server('not', more), 'version')

      assert.equal('note', found[1].level)
      assert.equal(title .. ': latchkey is not tested with it', found[1].message)
    end
  end)

  it('knows Redict as one that it is tested with', function()
    local found = examine(server('not', 'redict_version:7.3.1'), 'version')

    assert.same({ check = 'version', level = 'good', message = 'Redict 7.3.1' }, found[1])
  end)

  it('names an engine by what HELLO says, where INFO says nothing', function()
    local found = examine(server('hello'), 'version')

    assert.equal('note', found[1].level)
    assert.equal('Other 3.1: latchkey is not tested with it', found[1].message)
  end)

  it('says of managed services where their settings are, and what INFO does not show', function()
    local evicts = examine(server('evicts', 'os:Amazon ElastiCache'), 'memory')
    local keeps = examine(server('not', 'os:Amazon MemoryDB'), 'persistence')

    assert.equal('CONFIG is closed in Amazon ElastiCache: set maxmemory-policy noeviction in its '
      .. 'own settings (parameter group), or use a server of its own for locks', evicts[1].advice)
    assert.equal(1, #keeps)
    assert.equal('note', keeps[1].level)
    assert.truthy(keeps[1].message:find('keeps writes in a log of its own', 1, true))
  end)

  it('says of a replica which master it has, and whether it follows it', function()
    local port = fleet.free_port()
    local master = program.server('--appendonly', 'yes', '--port', port, '--bind', '127.0.0.1')
    local replica = program.server('--replicaof', '127.0.0.1', port)
    program.eventually('it follows', function()
      return replica:command('INFO', 'replication'):find('master_link_status:up', 1, true)
    end)

    local role, code = examine(replica.url, 'role')
    local link = examine(replica.url, 'replicas')
    assert.equal(1, code)
    assert.equal('name the master in the URL, 127.0.0.1:' .. port, role[1].advice)
    assert.equal('good', link[1].level)
    assert.equal('a replica', examine(replica.url, 'topology')[1].message)

    master.process:kill(require('posix.signal').SIGKILL)
    program.eventually('the link is down', function()
      return replica:command('INFO', 'replication'):find('master_link_status:down', 1, true)
    end)
    link = examine(replica.url, 'replicas')
    assert.equal('problem', link[1].level)
    assert.truthy(link[1].message:find('its link to the master is down', 1, true))
  end)

  it('takes a lock of each family, and leaves nothing that stays', function()
    local real = program.server('--appendonly', 'yes')
    local found, code = examine(real.url, 'trial')
    local named = examine(real.url, 'trial', '--family', 'rw')

    assert.equal(0, code)
    assert.same({ 'good', 'good' }, { found[1].level, found[2].level })
    assert.equal('one of each was taken and released: countdown, fair, fenced, lock, mutex, '
      .. 'period, permit, rw, semaphore', found[2].message)
    assert.equal('one of each was taken and released: rw', named[2].message)
    for key in real:command('KEYS', '*'):gmatch('[^\n]+') do
      local left_ms = tonumber(real:command('PTTL', key))
      assert.is_true(left_ms == -2 or left_ms > 0 and left_ms <= 60000, key .. ' ' .. left_ms)
    end
  end)

  it('loads three scripts of latchkey\'s own, those of the lock it tries, no others', function()
    local real = program.server('--appendonly', 'yes')
    local trial = examine(real.url, 'trial', '--family', 'mutex')

    local scripts = examine(real.url, 'scripts', '--family', 'mutex')
    local cached = real:command('INFO', 'memory'):match('number_of_cached_scripts:(%d+)')
    local missing, all = scripts[1].message:match('^(%d+) of (%d+) scripts')

    assert.matches('(3 tried)', trial[1].message, 1, true)
    assert.equal('4', cached) -- mutex/release is one of the three
    assert.equal(4, all - missing)
  end)

  it('agrees with what acl prints for a family', function()
    local real = program.server('--appendonly', 'yes')
    for _, family in ipairs({ 'mutex', 'rw', 'permit' }) do
      local words = {}
      for word in program.run({ 'acl', 'app', '--family', family, '--names', 'orders:*' }).out
        :gmatch('%S+') do
        words[#words + 1] = word
      end
      words[#words + 1] = '>secret'
      real:command(unpack(words))
      local url = real.url:gsub('^unix://', 'unix://app:secret@')

      local found, code = examine(url, 'trial', '--family', family, '--name', 'orders:1')
      local asked = examine(real.url, 'permissions', '--user', 'app', '--family', family,
        '--name', 'orders:1')
      local other = examine(url, 'trial')

      assert.equal(0, code, family)
      assert.equal('one of each was taken and released: ' .. family, found[2].message)
      assert.equal('good', asked[1].level, asked[1].message)
      assert.equal('note', other[#other].level, other[#other].message)
      assert.truthy(other[#other].message:find(family, 1, true), other[#other].message)
    end
  end)

  it('is shown by status without what a terminal obeys', function()
    local url = server('well', 'valkey_version:8.0.1\27[2J\194\155')

    local result = program.run({ 'status', '--url', url })

    assert.truthy(result.out:find('version 8.0.1\\x1b[2J\\xc2\\x9b', 1, true), result.out)
    assert.falsy(result.out:find('[\27\194]'))
  end)
end)
