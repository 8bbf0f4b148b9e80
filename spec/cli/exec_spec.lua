-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey exec', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function exec(options, command, settings)
    return program.run(program.exec(server, options, command), settings)
  end

  local function start(options, command, settings)
    return program.start(program.exec(server, options, command), settings)
  end

  it('holds the lock while the command runs, and frees it', function()
    local result = exec({ 'job' }, { 'redis-cli', '-s', server.socket, 'HVALS', 'job' })

    assert.equal(0, result.code)
    assert.equal('1\n', result.out)
    assert.equal('', result.err)
    assert.is_true(server:is_free('job'))
  end)

  it('gives a mutex the form that other clients of SET NX PX know', function()
    local result = exec({ '--kind', 'mutex', 'job' },
      { 'redis-cli', '-s', server.socket, 'GET', 'job' })

    assert.equal(0, result.code)
    assert.truthy(result.out:find('^lk%-%x+'))
    assert.is_true(server:is_free('job'))
  end)

  it('grants the lease that was asked for', function()
    local result = exec({ '--lease', '2m', 'job' },
      { 'redis-cli', '-s', server.socket, 'PTTL', 'job' })

    assert.equal(0, result.code)
    assert.is_true(tonumber(result.out) > 100000 and tonumber(result.out) <= 120000)
  end)

  it('renews a lease until the command ends', function()
    local gate = program.gate()
    local holder = start({ '--lease', '6s', 'job' }, gate.command)
    gate.started()

    -- Longer than the lease, by the third of it.
    local is_renewed, lease_ms = server:is_renewed('job', 3), server:lease_ms('job')
    gate.open()

    assert.is_true(is_renewed)
    assert.is_true(lease_ms <= 6000)
    assert.equal(0, holder:wait().code)
  end)

  it('ends with the exit code of the command', function()
    local result = exec({ 'job' }, { 'sh', '-c', 'exit 7' })

    assert.equal(7, result.code)
    assert.is_true(server:is_free('job'))
  end)

  it('ends by the signal that ended the command', function()
    for _, name in ipairs({ 'TERM', 'INT', 'KILL', 'SEGV', 'PIPE' }) do
      local result = exec({ 'job' }, { 'sh', '-c', 'ulimit -c 0; kill -' .. name .. ' $$' })

      assert.equal(signal['SIG' .. name], result.signal, name)
      assert.is_true(server:is_free('job'))
    end
  end)

  it('ends with 127 when there is no such command', function()
    local result = exec({ 'job' }, { '/nowhere/command' })

    assert.equal(127, result.code)
    assert.truthy(result.err:find('/nowhere/command', 1, true))
    assert.truthy(result.err:find('check its path', 1, true), result.err)
    assert.is_true(server:is_free('job'))
  end)

  it('ends with 126 when the command cannot be run', function()
    local result = exec({ 'job' }, { '/etc/passwd' })

    assert.equal(126, result.code)
    assert.truthy(result.err:find('this user may execute it', 1, true), result.err)
    assert.is_true(server:is_free('job'))
  end)

  it('tells the command which lock it runs under', function()
    local result = exec({ 'b c', 'a' },
      { 'sh', '-c', 'echo "$LATCHKEY_LOCK"; echo "$LATCHKEY_HELD"' })

    assert.equal(0, result.code)
    local names, held = result.out:match('^(a\nb c)\n(.*)\n$')
    assert.equal('a\nb c', names)
    local first, second = held:match('^(%S+) (%S+)$')
    assert.truthy(first:find('^lock,a,lk%-[%x-]+:%d+,30000,%d+,unix:'))
    assert.truthy(second:find('^lock,b%%20c,lk%-'))
  end)

  it('lets the command read the standard input', function()
    local file = program.folder() .. '/input'
    assert(utils.writefile(file, 'words\n'))

    local result = exec({ 'job' }, { 'cat' }, { input = file })

    assert.equal('words\n', result.out)
  end)

  describe('while another holds the lock', function()
    local gate, holder

    before_each(function()
      gate = program.gate()
      holder = start({ 'job' }, gate.command)
      gate.started()
    end)

    it('exits 75 at once when it is to try once', function()
      local result = exec({ '--wait', '0ms', 'job' }, { 'true' })

      assert.equal(75, result.code)
      assert.truthy(result.err:find('job', 1, true))
    end)

    it('exits 75 when the wait is over', function()
      assert.equal(75, exec({ '--wait', '200ms', 'job' }, { 'true' }).code)
    end)

    it('shows the command that says who holds it, as it can be typed', function()
      local function shown(...)
        return exec({ '--wait', ... }, { 'true' }).err:match('latchkey inspect ([^\n]*)\n')
      end

      assert.equal('job', shown('0ms', 'job'))
      assert.equal('job', shown('200ms', 'job'))
      assert.equal('NAME', shown('0ms', 'job', 'other'))
      server:command('HSET', 'a job', 'somebody', '1')
      assert.equal('NAME', shown('0ms', 'a job'))
    end)

    it('exits with the code that was asked for', function()
      assert.equal(3, exec({ '--wait', '0ms', '--busy-exit', '3', 'job' }, { 'true' }).code)
    end)

    it('says nothing of it with --quiet', function()
      local result = exec({ '--wait', '0ms', '-q', 'job' }, { 'true' })

      assert.equal(75, result.code)
      assert.equal('', result.err)
    end)

    it('says it as JSON with --json', function()
      local result = exec({ '--wait', '0ms', '--json', 'job' }, { 'true' })

      local document = cjson.decode(result.err)
      assert.equal('latchkey/exec/1', document.schema)
      assert.equal('LK_BUSY', document.error.status)
      assert.is_string(document.error.message)
      assert.is_string(document.error.hint)
    end)

    it('runs when it is woken, and asks the server nothing before', function()
      local folder = program.folder()
      -- Without -q it would ask, once, who has the lock.
      local waiter = start({ '--wait', '10s', '-q', '--report', folder .. '/waiter', 'job' },
        { 'true' })
      program.eventually('the second one waits', function()
        return server:waiters('job') == 1
      end)

      server:command('CONFIG', 'RESETSTAT')
      server:command('BLPOP', 'nothing', '1')
      local stats = server:command('INFO', 'commandstats')
      local asked_ms = program.now_ms()
      gate.open()
      local first, second = holder:wait(), waiter:wait()

      local own = { blpop = true, ['config|resetstat'] = true, info = true }
      for command in stats:gmatch('cmdstat_([^:]+)') do
        assert.is_true(own[command], command)
      end
      assert.equal(0, first.code)
      assert.equal(0, second.code)
      local report = program.json(folder .. '/waiter')
      local took_ms = report.taken_unix_ms - asked_ms
      assert.is_true(took_ms < 8000, ('handed over in %d ms'):format(took_ms))
    end)

    it('gives up when it is told to end, and leaves nothing behind', function()
      local waiter = start({ 'aaa', 'job' }, { 'true' })
      program.eventually('the second one waits', function()
        return server:waiters('job') == 1
      end)
      local first_held = server:command('EXISTS', 'aaa')

      waiter:kill(signal.SIGTERM)
      local result = waiter:wait()

      assert.equal('1', first_held)
      assert.equal(signal.SIGTERM, result.signal)
      assert.is_true(server:is_free('aaa'))
      assert.is_false(server:is_free('job'))
    end)

    it('takes all of several names or none', function()
      local result = exec({ '--wait', '0ms', 'zzz', 'job', 'aaa' }, { 'true' })

      assert.equal(75, result.code)
      assert.is_true(server:is_free('aaa'))
      assert.is_true(server:is_free('zzz'))
    end)

    it('reports that it was busy', function()
      local file = program.folder() .. '/report'

      exec({ '--wait', '0ms', '--report', file, 'job' }, { 'true' })

      local report = program.json(file)
      assert.equal('busy', report.outcome)
      assert.equal(75, report.exit)
      assert.equal('LK_BUSY', report.error.status)
      assert.equal(cjson.null, report.taken_unix_ms)
      assert.equal(cjson.null, report.command_exit)
    end)
  end)

  it('is not killed by a file that may not grow, and frees the lock', function()
    local file = program.folder() .. '/spans'
    local words = program.exec(server, { '--spans', file, 'job' }, { 'true' })

    -- The sanitizers' own files are smaller.
    local result = program.start_any('sh', { '-c', 'head -c 8388608 /dev/zero >"$0"; '
      .. 'ulimit -f 4096; exec "$@"', file, program.path, unpack(words) }):wait()

    assert.equal(0, result.code)
    assert.is_true(server:is_free('job'))
  end)

  it('takes a name that is given twice once', function()
    local result = exec({ 'job', 'job' }, { 'redis-cli', '-s', server.socket, 'HVALS', 'job' })

    assert.equal('1\n', result.out)
    assert.is_true(server:is_free('job'))
  end)

  it('never waits for itself in another order of the names', function()
    local first = program.gate()
    local one = start({ 'a', 'b' }, first.command)
    first.started()
    local two = start({ 'b', 'a' }, { 'true' })
    program.eventually('the second one waits', function()
      return server:waiters('a') == 1
    end)

    first.open()

    assert.equal(0, one:wait().code)
    assert.equal(0, two:wait().code)
  end)

  it('reports what happened', function()
    local file = program.folder() .. '/report'

    local result = exec({ '--report', file, 'job' }, { 'sh', '-c', 'exit 4' })

    local report = program.json(file)
    assert.equal(4, result.code)
    assert.equal('latchkey/exec/1', report.schema)
    assert.equal('done', report.outcome)
    assert.equal(4, report.exit)
    assert.equal(4, report.command_exit)
    assert.equal(cjson.null, report.command_signal)
    assert.equal('job', report.holds[1].name)
    assert.is_false(report.holds[1].nested)
    assert.same({ 'sh', '-c', 'exit 4' }, report.command)
    assert.is_true(report.asked_unix_ms <= report.taken_unix_ms)
    assert.is_true(report.taken_unix_ms <= report.freed_unix_ms)
    assert.equal(cjson.null, report.error)
  end)

  it('says with --verbose when it holds the lock and when not', function()
    local result = exec({ '-v', 'job' }, { 'true' })

    assert.truthy(result.err:find('held after %d+ ms'))
    assert.truthy(result.err:find('released'))
  end)
end)
