-- SPDX-License-Identifier: Apache-2.0
local stat = require('posix.sys.stat')
local time = require('posix.time')

local clock = require('latchkey.doctor.clock')
local fleet = require('cli.fleet')
local program = require('cli.program')
local session = require('cli.session')

local CLIENT = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586'

describe('latchkey doctor', function()
  after_each(program.clean)

  local function run(server, ...)
    return program.run({ 'doctor', '--url', server.url, ... })
  end

  -- What was found, by check: { level, message, advice }; and the exit code.
  local function examine(server, ...)
    local result = run(server, '--json', ...)
    local document, found = program.decode(result.out), {}
    assert.equal('latchkey/doctor/1', document.schema)
    for _, finding in ipairs(document.findings) do
      found[finding.check] = finding
    end
    return found, result.code
  end

  it('finds nothing wrong with a server that keeps what it has', function()
    local server = program.server('--appendonly', 'yes')
    assert.equal(0, program.run({ 'load', '--url', server.url }).code)

    local found, code = examine(server)

    assert.equal(0, code)
    for _, check in ipairs({ 'version', 'role', 'memory', 'persistence', 'clock', 'permissions',
      'scripts', 'queues', 'messages' }) do
      assert.equal('good', found[check].level, check .. ': ' .. found[check].message)
      assert.is_nil(found[check].advice)
    end
    assert.equal('note', found.replicas.level)
    assert.truthy(found.version.message:find('%d+%.%d+%.%d+'))
  end)

  it('warns of eviction where there is a limit, and notes it where there is none', function()
    local server = program.server('--appendonly', 'yes', '--maxmemory-policy', 'volatile-lru')

    local before, code_before = examine(server)
    server:command('CONFIG', 'SET', 'maxmemory', '100mb')
    local after, code_after = examine(server)
    server:command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    local repaired = examine(server)
    server:command('CONFIG', 'SET', 'maxmemory', '1mb')
    local full = examine(server)

    assert.same({ 'note', 0 }, { before.memory.level, code_before })
    assert.same({ 'problem', 1 }, { after.memory.level, code_after })
    assert.truthy(after.memory.message:find('volatile-lru', 1, true))
    assert.truthy(after.memory.advice:find('noeviction', 1, true))
    assert.equal('good', repaired.memory.level)
    assert.equal('problem', full.memory.level)
    assert.truthy(full.memory.message:find('new holds', 1, true))
  end)

  it('says that a server cannot save, which refuses PING then, and shows its locks', function()
    local server = program.server()
    local folder = server:command('CONFIG', 'GET', 'dir'):match('\n(.*)')
    server:command('HSET', 'job', CLIENT .. ':1', '1')
    -- A folder where the dump should be.
    assert(stat.mkdir(folder .. '/dump.rdb'))
    server:command('CONFIG', 'SET', 'save', '3600 1')
    server:command('BGSAVE')
    program.eventually('it refuses', function()
      return server:command('PING'):find('MISCONF', 1, true)
    end)

    local result = run(server)
    local held = program.run({ 'inspect', '--url', server.url, 'job' })

    assert.equal(1, result.code, result.err)
    assert.truthy(result.out:find('PROBLEM  persistence  the server cannot save', 1, true))
    assert.truthy(result.out:find('trial        it cannot save', 1, true), result.out)
    assert.equal(0, held.code, held.err)
    assert.truthy(held.out:find('job is held', 1, true))
  end)

  it('says what a restart would forget', function()
    local server = program.server()

    local nothing, code = examine(server)
    server:command('CONFIG', 'SET', 'save', '3600 1')
    local snapshots = examine(server)
    server:command('CONFIG', 'SET', 'save', '')
    server:command('CONFIG', 'SET', 'appendonly', 'yes')
    server:command('CONFIG', 'SET', 'appendfsync', 'no')
    local seldom = examine(server)

    assert.same({ 'problem', 1 }, { nothing.persistence.level, code })
    assert.truthy(nothing.persistence.message:find('every lock', 1, true))
    assert.equal('note', snapshots.persistence.level)
    assert.equal('note', seldom.persistence.level)
    assert.truthy(seldom.persistence.message:find('appendfsync', 1, true))
  end)

  it('says whether a master without its replicas stops, and what a replica is not for', function()
    local port = fleet.free_port()
    local master = program.server('--port', port, '--bind', '127.0.0.1',
      '--repl-diskless-sync-delay', '0')
    local replica = program.server('--replicaof', '127.0.0.1 ' .. port)
    program.eventually('the replica has joined', function()
      return master:command('INFO', 'replication'):find('state=online', 1, true)
    end)

    local alone = examine(master).replicas
    master:command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    local guarded = examine(master).replicas
    master:command('CONFIG', 'SET', 'min-replicas-to-write', '2')
    local short = examine(master).replicas
    local beside = examine(replica).role

    assert.equal('problem', alone.level)
    assert.truthy(alone.advice:find('min-replicas-to-write 1', 1, true))
    assert.equal('good', guarded.level)
    assert.equal('problem', short.level)
    assert.truthy(short.message:find('refused', 1, true))
    assert.equal('problem', beside.level)
    assert.truthy(beside.message:find(port, 1, true))
  end)

  it('compares the clocks', function()
    local function server_ahead_by(seconds)
      return { command = function()
        local now = time.clock_gettime(time.CLOCK_REALTIME)
        return { tostring(now.tv_sec + seconds), tostring(math.floor(now.tv_nsec / 1000)), n = 2 }
      end }
    end

    local near, ahead, behind = clock.check(server_ahead_by(0)), clock.check(server_ahead_by(60)),
      clock.check(server_ahead_by(-7200))

    assert.equal('good', near[1].level)
    assert.equal('problem', ahead[1].level)
    assert.truthy(ahead[1].message:find('ahead of', 1, true))
    assert.truthy(behind[1].message:find('behind', 1, true))
  end)

  it('says what a user lacks, for all names or for one', function()
    local server = program.server()
    local rule = {}
    for word in program.run({ 'acl', 'app', '--names', 'orders:*' }).out:gmatch('%S+') do
      rule[#rule + 1] = word
    end
    server:command(unpack(rule))

    local good = examine(server, '--user', 'app').permissions
    local named = examine(server, '--user', 'app', '--name', 'orders:1').permissions
    local other, code = examine(server, '--user', 'app', '--name', 'users:1')
    server:command('ACL', 'SETUSER', 'app', '-hset', '-script|load')
    local less = examine(server, '--user', 'app').permissions
    local nobody = examine(server, '--user', 'nobody').permissions

    assert.equal('good', good.level)
    assert.equal('good', named.level)
    assert.same({ 'problem', 1 }, { other.permissions.level, code })
    assert.truthy(other.permissions.message:find(' ~users:1 ', 1, true))
    assert.truthy(other.permissions.message:find('&redisson_lock__channel:{users:1}', 1, true))
    assert.equal('the user app lacks +hset +script|load', less.message)
    assert.truthy(less.advice:find('latchkey acl app', 1, true))
    assert.equal('note', nobody.level)
  end)

  it('finds out what it may, as a user who may not ask', function()
    local server = program.server()
    server:command('ACL', 'SETUSER', 'app', 'on', '>secret', 'resetchannels', '~*', '-@all',
      '+evalsha', '+script|load', '+hlen', '+client|setname', '+ping', '+time')
    server:command('ACL', 'SETUSER', 'none', 'on', '>secret', 'resetchannels', '-@all',
      '+client|setname', '+ping')
    local function as(user)
      local result = program.run({ 'doctor', '--json', '--url', 'unix://' .. user .. '@'
        .. server.socket }, { env = { LATCHKEY_PASSWORD = 'secret' } })
      local levels = {}
      for _, finding in ipairs(program.decode(result.out).findings) do
        levels[finding.check] = finding.level
      end
      return levels, result.code
    end

    local levels, code = as('app')
    local none, none_code = as('none')

    assert.same({ server = 'note', clock = 'good', commands = 'note', permissions = 'note',
      scripts = 'note', queues = 'note', trial = 'note' }, levels)
    assert.equal(0, code)
    assert.equal('problem', none.permissions)
    assert.equal(1, none_code)
  end)

  it('says how to try a lock whose exact name is all that a user may use', function()
    local server = program.server()
    local rule = {}
    for word in program.run({ 'acl', 'app', '--names', 'nightly', '--load' }).out:gmatch('%S+') do
      rule[#rule + 1] = word
    end
    server:command(unpack(rule))
    server:command('ACL', 'SETUSER', 'app', '>secret')
    local url = 'unix://app@' .. server.socket
    local env = { env = { LATCHKEY_PASSWORD = 'secret' } }

    local result = program.run({ 'doctor', '--json', '--name', 'nightly', '--url', url }, env)

    local advice
    for _, finding in ipairs(program.decode(result.out).findings) do
      advice = finding.check == 'trial' and finding.message:find('^not tried') and finding.advice
        or advice
    end
    local words = {}
    for word in assert(advice:match('latchkey (exec .*)$')):gmatch('%S+') do
      words[#words + 1] = word
    end
    assert.equal('nightly', words[4])
    table.insert(words, 2, '--url')
    table.insert(words, 3, url)
    local tried = program.run(words, env)
    assert.equal(0, tried.code, tried.err)
  end)

  it('finds waiters that are dead', function()
    local server = program.server('--appendonly', 'yes')
    local function queue(name, serial)
      assert.equal(0, program.run({ 'eval', '--url', server.url, 'fair/acquire', '--name', name,
        '--lease', '30s', '--owner', CLIENT .. ':' .. serial, '--hold', '1', '--wait', '300s',
        '--heartbeat', '60s', '--client', CLIENT, '--ticket', serial }).code)
    end
    queue('job', '1')
    queue('job', '2')

    local alive = examine(server).queues
    server:command('ZADD', 'redisson_lock_timeout:{job}', '1', CLIENT .. ':2')
    server:command('DEL', 'latchkey_fair:{job}')
    local dead, code = examine(server)
    server:command('DEL', 'job')
    local left = examine(server).queues

    assert.equal('good', alive.level)
    assert.equal('no dead waiters in 1 fair queues', alive.message)
    assert.same({ 'problem', 1 }, { dead.queues.level, code })
    assert.truthy(dead.queues.message:find('1 of 1 waiters in the queue of job are dead', 1, true))
    assert.truthy(left.message:find('nobody holds it', 1, true))
  end)

  it('names what to do on a terminal, with colours unless NO_COLOR or TERM refuse them', function()
    local server = program.server()
    program.run({ 'load', '--url', server.url })
    local function show(env)
      local screen = session.start({ 'doctor', '--url', server.url }, { env = env })
      local result = screen:wait()
      local text = screen:text():gsub("the server's clock is [^\n]*", 'a clock')
      screen:close()
      assert.equal(1, result.code)
      return text, screen.was_shown:find('\27[31;1mPROBLEM\27[0m', 1, true)
    end

    local coloured, has_colours = show()
    local plain, has_none = show({ NO_COLOR = '1' })
    local unnamed, has_some = show({ TERM = false })

    assert.truthy(has_colours)
    assert.is_nil(has_none or has_some)
    assert.same({ coloured, coloured }, { plain, unnamed })
    assert.truthy(plain:find('\n  PROBLEM  persistence  nothing is kept', 1, true))
    assert.truthy(plain:find('\n +%-> CONFIG SET appendonly yes'))
    assert.truthy(plain:find('\n  ok       role         it is a master\n', 1, true))
  end)

  it('exits 69 when there is no server, 64 for a name that cannot be one', function()
    assert.equal(69, program.run({ 'doctor', '--url', 'unix:///nowhere' }).code)
    assert.equal(64, program.run({ 'doctor', '--url', 'unix:///nowhere', '--name', 'a}b' }).code)
  end)
end)
