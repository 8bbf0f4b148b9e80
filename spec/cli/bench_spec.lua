-- SPDX-License-Identifier: Apache-2.0
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey bench', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function bench(...)
    return program.run({ 'bench', '--url', server.url, ... })
  end

  -- Nothing may be left in the server.
  local function figures_of(mode, result)
    assert.equal('', result.err)
    assert.equal(0, result.code)
    assert.equal('0', server:command('DBSIZE'))
    local figures = program.decode(result.out)
    assert.equal('latchkey/bench/1', figures.schema)
    assert.equal(mode, figures.mode)
    assert.is_true(figures.seconds >= 1)
    return figures
  end

  -- One second of it.
  local function measure(mode, ...)
    return figures_of(mode, bench('--mode', mode, '--seconds', '1', '--json', ...))
  end

  local function connections_made()
    return tonumber(server:command('INFO', 'stats'):match('total_connections_received:(%d+)'))
  end

  local function assert_pairs(figures)
    assert.is_true(figures.pairs_per_s > 0)
    assert.is_true(figures.p50_us > 0)
    assert.is_true(figures.p99_us >= figures.p50_us)
    assert.is_true(figures.client_cpu_us_per_pair > 0)
  end

  local function near(expected, value, tolerance)
    assert.is_true(math.abs(value - expected) <= tolerance,
      ('%g is not %g'):format(value, expected))
  end

  for _, mode in ipairs({ 'uncontended', 'async' }) do
    it('counts two commands for a pair in mode ' .. mode, function()
      local figures = measure(mode, '--threads', '4')

      assert.equal(4, figures.threads)
      assert_pairs(figures)
      near(2, figures.commands_per_pair, 0.05)
      assert.is_nil(figures.handoffs)
    end)
  end

  it('spreads the owners over as many connections as are asked for', function()
    local function made_by(connections)
      local before = connections_made()
      measure('uncontended', '--threads', '32', '--connections', connections)
      return connections_made() - before
    end

    assert.equal(made_by('1') + 2, made_by('3'))
  end)

  it('hands one lock over inside a process with about one command', function()
    local figures = measure('contended', '--threads', '8', '--section', '1ms')

    assert_pairs(figures)
    assert.is_true(figures.handoffs > 10)
    assert.is_true(figures.handoff_p50_us > 0)
    assert.is_true(figures.handoff_p99_us >= figures.handoff_p50_us)
    near(1.1, figures.commands_per_handoff, 0.2)
  end)

  it('hands a fair lock over between processes', function()
    local figures = measure('fair', '--threads', '2', '--processes', '3', '--section', '1ms')

    assert.equal(3, figures.processes)
    assert_pairs(figures)
    assert.is_true(figures.handoffs > 10)
    assert.is_true(figures.handoff_p50_us > 0)
    near(2.1, figures.commands_per_handoff, 1)
  end)

  -- Who has a read-write lock: how, and how many.
  local function holders_of(name)
    local fields = server:command('HGETALL', name)
    local mode = ('\n' .. fields):match('\nmode\n(%l+)')
    return mode, (select(2, fields:gsub('[^\n]+\n[^\n]+', '')) - 1)
  end

  it('lets readers share a lock and writers have it alone', function()
    local process = program.start({ 'bench', '--url', server.url, '--mode', 'rw', '--threads', '4',
      '--section', '20ms', '--seconds', '4', '--json' })
    local most = {}
    program.eventually('it is read by several, and written', function()
      local name = server:command('KEYS', 'latchkey-bench-*')
      local mode, owners = holders_of(name)
      if mode then
        most[mode] = math.max(most[mode] or 0, owners)
      end
      return process:poll() or (most.read or 0) > 1 and most.write
    end)

    local figures = figures_of('rw', process:wait())

    assert.is_true((most.read or 0) > 1, most.read)
    assert.equal(1, most.write)
    assert_pairs(figures)
    assert.is_nil(figures.handoffs)
  end)

  -- The tenth turn of each is to write: the last of them waits for 12 s.
  it('waits as long as all others may write', function()
    assert_pairs(measure('rw', '--threads', '120', '--section', '100ms', '--seconds', '2'))
  end)

  it('holds locks and says how long none was renewed', function()
    local figures = measure('renew', '--threads', '100', '--lease', '3s', '--seconds', '3')

    assert.is_true(figures.renewals_per_s > 10)
    assert.is_true(figures.longest_unrenewed_ms >= 100)
    assert.is_true(figures.longest_unrenewed_ms < 3000)
    assert.is_true(figures.bytes_per_hold > 0)
    assert.is_true(figures.client_cpu_us_per_renewal > 0)
  end)

  it('takes its processes along when it is killed', function()
    local renewing = program.start({ 'bench', '--url', server.url, '--mode', 'renew', '--lease',
      '900ms', '--seconds', '60' })
    local workers = program.eventually('locks are held', function()
      return server:command('DBSIZE') == '8' and program.children(renewing.pid)
    end)

    renewing:kill(signal.SIGKILL)
    renewing:wait()

    assert.is_not_nil(next(workers))
    for worker in pairs(workers) do
      program.eventually('process ' .. worker .. ' ends', function()
        return program.is_gone(worker)
      end, 10)
    end
  end)

  it('sends nothing for those who wait', function()
    local figures = measure('wait', '--owners', '100')

    assert.equal(0, figures.commands)
    assert.is_nil(figures.script_us) -- of no script
    assert.is_true(figures.bytes_per_waiter > 0)
  end)

  -- A client that does nothing, long enough to be disturbed behind the first look at the counters.
  local function disturbed(disturb, ...)
    server:command('CONFIG', 'RESETSTAT')
    measure('uncontended')
    local idle = program.start({ 'bench', '--url', server.url, '--mode', 'idle', '--seconds', '4',
      ... })
    program.eventually('the counters were read', function()
      local clients = server:command('CLIENT', 'LIST')
      return clients:find('name=latchkey%-bench [^\n]*idle=1 [^\n]*cmd=info')
    end)
    disturb()
    return idle:wait()
  end

  it('leaves out what it cannot know of a server whose counters were reset, or of two', function()
    local figures = program.decode(disturbed(function()
      server:command('CONFIG', 'RESETSTAT')
    end, '--json').out)
    local said = disturbed(function()
      server:restart()
    end).out

    assert.is_nil(figures.commands)
    assert.is_nil(figures.server_cpu_percent)
    assert.equal(1, figures.threads_added)
    assert.truthy(said:find('\n  commands in all +none: a server was restarted or replaced, or its '
      .. 'counters were reset\n'), said)
  end)

  it('adds one thread and sends nothing when idle', function()
    local figures = measure('idle')

    assert.equal(1, figures.threads_added)
    assert.equal(0, figures.commands)
  end)

  it('measures calls that sleep until their reply comes, too', function()
    assert_pairs(measure('uncontended', '--threads', '1', '--poll', '-1'))
  end)

  it('says it to people', function()
    local result = bench('--seconds', '1', '--threads', '2')

    assert.equal(0, result.code)
    assert.truthy(result.out:find('^uncontended, 2 owners in each of 1 processes'))
    assert.truthy(result.out:find('\n  pairs per second +%d+\n'))
  end)

  it('refuses what it does not understand, and touches nothing', function()
    for _, case in ipairs({
      { '--mode=slow', 'the modes are uncontended, async' },
      { '--seconds=0', 'from 1 to 86400' },
      { '--threads=1001', 'at most 1000' },
      { '--section=5', 'is not a duration' },
      { '--lease=1ms', 'must be 50 to 86400000 ms' },
      { '--poll=-2', 'from -1 to 1000' },
      { '--nonsense', 'unknown option' },
      { 'job', 'is not an option' },
      { '--mode=async', '--section=1ms', '--section means nothing in mode async' },
      { '--mode=renew', '--section=1ms', '--section means nothing in mode renew' },
      { '--section=1ms', '--mode=wait', '--section means nothing in mode wait' },
      { '--mode=idle', '--section=1ms', '--section means nothing in mode idle' },
      { '--mode=idle', '--owners=3', '--owners means nothing in mode idle' },
      { '--mode=idle', '--threads=3', '--threads means nothing in mode idle' },
      { '--mode=idle', '--lease=1s', '--lease means nothing in mode idle' },
      { '--mode=wait', '--owners=1', 'mode wait needs two owners' },
      { '--mode=contended', '--threads=1', 'mode contended needs two owners' },
      { '--mode=fair', '--threads=1', 'mode fair needs two owners' },
      { '--mode=renew', 'a third of the lease, 10000 ms, and --seconds 3 is shorter' },
    }) do
      local message = table.remove(case)
      local result = bench(unpack(case))

      assert.equal(64, result.code, message)
      assert.equal('', result.out)
      assert.truthy(result.err:find(message, 1, true), result.err)
    end
    assert.equal('0', server:command('DBSIZE'))
  end)

  it('opens one connection for a client that does nothing, however many it may', function()
    local function made_by(connections)
      local before = connections_made()
      assert.equal(1, measure('idle', '--connections', connections).threads_added)
      return connections_made() - before
    end

    assert.equal(made_by('1'), made_by('3'))
  end)

  -- Room for a part of the stacks of its threads, and memory that is given back is overwritten.
  it('ends when the system gives it no thread', function()
    if program.sanitizer() then
      return pending('a sanitizer needs more addresses than that')
    end
    for _ = 1, 10 do
      local result = program.start_any('sh', { '-c', 'ulimit -v 1000000 && exec "$@"', 'sh',
        program.path, 'bench', '--url', server.url, '--threads', '1000', '--section', '1ms',
        '--lease', '1s' }, { env = { MALLOC_PERTURB_ = '165' } }):wait()

      assert.equal(70, result.code, result.err)
      assert.truthy(result.err:find('no thread: ', 1, true), result.err)
    end
  end)

  it('refuses more than one process where there can be only one', function()
    local result = bench('--mode', 'renew', '--processes', '2')

    assert.equal(64, result.code)
    assert.truthy(result.err:find('mode renew has one process', 1, true))
  end)

  it('needs a server that is named', function()
    local result = program.run({ 'bench' })

    assert.equal(64, result.code)
    assert.truthy(result.err:find('no server is named', 1, true))
  end)

  it('reads a password file as exec does, and refuses one with a NUL byte', function()
    local file = program.folder() .. '/password'
    for text, wrong in pairs({ ['hush\0er\n'] = 'a NUL byte on its first line',
      ['\r\n'] = 'no password on its first line' }) do
      assert(utils.writefile(file, text))

      local result = bench('--password-file', file)

      assert.equal(64, result.code)
      assert.truthy(result.err:find(('--password-file %s has %s'):format(file, wrong), 1, true),
        result.err)
    end
    local long = ('x'):rep(2000)
    server:command('CONFIG', 'SET', 'requirepass', long)
    assert(utils.writefile(file, long .. '\n'))
    assert.equal(0, bench('--mode', 'idle', '--seconds', '1', '--password-file', file).code)
  end)

  it('says as JSON, too, that no server answers', function()
    local plain = program.run({ 'bench', '--url', 'unix:///nowhere/s' })
    local json = program.run({ 'bench', '--json', '--url', 'unix:///nowhere/s' })

    assert.equal(69, plain.code)
    assert.truthy(plain.err:find('^latchkey bench: '))
    assert.equal(69, json.code)
    assert.equal('LK_UNREACHABLE', program.decode(json.out).error.status)
  end)

  for _, mode in ipairs({ 'uncontended', 'contended', 'async', 'renew' }) do
    it('ends on a server that refuses writes, in mode ' .. mode, function()
      server:command('CONFIG', 'SET', 'min-replicas-to-write', '1')

      local result = program.start({ 'bench', '--url', server.url, '--mode', mode, '--seconds', '1',
        '--threads', '2', '--lease', '900ms' }):wait(60)

      assert.equal(69, result.code, result.err)
      assert.truthy(result.err:find('NOREPLICAS', 1, true), result.err)
    end)
  end

  it('explains itself', function()
    local result = program.run({ 'bench', '--help' })

    assert.equal(0, result.code)
    assert.truthy(result.out:find('^Usage: latchkey bench'))
    assert.truthy(result.out:find('--json', 1, true))
  end)

  it('tells of a wrong call whatever bytes it has', function()
    for _, words in ipairs({ { 'odd\255\27[2J' }, { '--mode', 'odd\255\27[2J' },
      { '--seconds', 'odd\255\27[2J' }, { '--odd\255\27[2J' } }) do
      local shown = bench(unpack(words))
      local document = bench('--json', unpack(words))

      assert.same({ 64, '', 64 }, { shown.code, shown.out, document.code })
      assert.truthy(shown.err:find('odd', 1, true))
      assert.falsy(shown.err:find('\27', 1, true), shown.err)
      local told = program.decode(document.out).error
      assert.equal('LK_INVALID', told.status)
      assert.truthy(told.message:find('odd', 1, true), told.message)
    end
  end)
end)
