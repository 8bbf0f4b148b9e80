-- SPDX-License-Identifier: Apache-2.0
-- A job that is to run once in a period, and a lock that stays for a while: --every, --at-least.
local cjson = require('cjson')
local signal = require('posix.signal')
local utils = require('pl.utils')

local fleet = require('cli.fleet')
local program = require('cli.program')

local RAN = 'echo ran >>"$0"'

describe('latchkey exec --every', function()
  local server, file

  before_each(function()
    server = program.server()
    file = program.folder() .. '/ran'
  end)

  after_each(program.clean)

  local function start(options, script, at)
    return program.start(program.exec(at or server, { '--every', '1h', unpack(options) },
      { 'sh', '-c', script or RAN, file }))
  end

  local function run(options, script)
    return start(options, script):wait()
  end

  local function count()
    return select(2, (utils.readfile(file) or ''):gsub('ran', ''))
  end

  it('refuses a period that is none, or too short or long', function()
    for _, period in ipairs({ '0', '0ms', '999ms', '8785h' }) do
      local result = run({ '--every', period, 'job' })

      assert.same({ period, 64 }, { period, result.code })
      assert.truthy(result.err:find('--every must be 1s to 8784h', 1, true), result.err)
      assert.is_nil(utils.readfile(file))
    end
  end)

  it('runs once in a period; who comes later says by whom and when, and ends with 0', function()
    assert.equal(0, run({ 'job' }).code)
    local second = run({ 'job' })

    assert.equal(1, count())
    assert.equal(0, second.code)
    local host = assert(utils.readfile('/proc/sys/kernel/hostname')):gsub('%s', '')
    assert.truthy(second.err:find(('"job" was done by %s at %s'):format(host,
      os.date('%Y-%m-')), 1, true), second.err)
    assert.equal('', run({ '-q', 'job' }).err)
    assert.is_true(server:is_free('job'))
  end)

  it('ends with the code that it is to when it finds the job done', function()
    run({ 'job' })

    assert.equal(9, run({ '--done-code', '9', 'job' }).code)
    assert.equal(0, run({ '--done-code', '9', 'other' }).code)
  end)

  it('runs again when it failed, or was killed', function()
    assert.equal(3, run({ 'job' }, RAN .. '; exit 3').code)
    assert.is_not.equal(0, run({ 'job' }, RAN .. '; kill -9 $$').code)
    assert.equal(0, run({ 'job' }).code)
    assert.equal(0, run({ 'job' }).code)

    assert.equal(3, count())
  end)

  it('does not take a job for done that was asked to end and says that all is well', function()
    local gate = program.gate(('trap "exit 0" TERM; echo ran >>%s'):format(file))
    local words = program.exec(server, { '--every', '1h', 'job' }, gate.command)
    local process = program.start(words)
    gate.started()

    process:kill(signal.SIGTERM)
    process:wait()

    assert.equal(0, run({ 'job' }).code)
    assert.equal(2, count())
  end)

  it('runs once on many machines at once', function()
    local processes = {}
    for i = 1, 6 do
      processes[i] = start({ 'job' }, RAN .. '; sleep 0.3')
    end

    for _, process in ipairs(processes) do
      assert.equal(0, process:wait().code, process.result.err)
    end
    assert.equal(1, count())
  end)

  it('leaves it to another that waits when it fails', function()
    local first = start({ 'job' }, 'sleep 0.5; exit 1')
    program.eventually('it holds the lock', function()
      return not server:is_free('job')
    end)
    local second = start({ 'job' })

    assert.equal(1, first:wait().code)
    assert.equal(0, second:wait().code)
    assert.equal(1, count())
  end)

  it('runs again in the next period', function()
    local words = program.exec(server, { '--every', '1s', 'job' }, { 'sh', '-c', RAN, file })
    for n = 1, 3 do
      program.eventually('it runs again', function()
        program.run(words)
        return count() == n
      end)
    end
  end)

  it('runs again when its machine died in it', function()
    local gate = program.gate()
    local process = program.start(program.exec(server, { '--every', '1h', '--lease', '1s', 'job' },
      gate.command))
    gate.started()
    for _, pid in ipairs({ process:keeper(), process.pid }) do
      signal.kill(pid, signal.SIGKILL)
    end
    process:wait()

    local again = run({ '--wait', '20s', 'job' })

    assert.equal(0, again.code, again.err)
    assert.equal(1, count())
  end)

  it('says that it could not mark what was done', function()
    local result = run({ '--lease', '2s', 'job' },
      ('echo ran >>"$0"; redis-cli -s %s shutdown nosave'):format(server.socket))

    assert.truthy(result.err:find('not marked', 1, true), result.err)
    assert.equal(1, count())
  end)

  it('ends soon when it is asked to while it cannot mark what was done', function()
    local gate = program.gate()
    local process = program.start(program.exec(server, { '--every', '1h', '--lease', '1h', 'job' },
      gate.command))
    local command = gate.started()
    server.process:kill(signal.SIGKILL)
    server.process:wait()
    gate.open()
    program.eventually('exec knows that the command has ended', function()
      return program.state(command) == nil
    end)

    process:kill(signal.SIGTERM)

    local result = process:wait(20)
    assert.equal(0, result.code, result.err)
    assert.truthy(result.err:find('"job" was done, but is not marked', 1, true), result.err)
    assert.truthy(result.err:find('the release failed', 1, true), result.err)
  end)

  -- The mark is under way, and the server holds it back: it may be done, or will be.
  local function start_to_mark(report)
    local gate = program.gate()
    local process = program.start(program.exec(server, { '--every', '1h', '--lease', '1h',
      '--report', report, 'job' }, gate.command))
    gate.started()
    server:command('CLIENT', 'PAUSE', '600000', 'WRITE')
    gate.open()
    program.eventually('the mark is at the server', function()
      return server:command('CLIENT', 'LIST'):find('flags=b[^\n]+cmd=evalsha')
    end)
    return process
  end

  it('does not say of a run that may be marked that it is not', function()
    local report_file = program.folder() .. '/report'
    local process = start_to_mark(report_file)

    process:kill(signal.SIGTERM)

    local result = process:wait(20)
    assert.truthy(result.err:find('"job" was done, but it is not known whether it is marked', 1,
      true), result.err)
    local report = program.json(report_file)
    assert.equal(cjson.null, report.period.marked)
    assert.equal('done', report.outcome)
  end)

  it('does not say so either when the server is gone that may have marked it', function()
    local report_file = program.folder() .. '/report'
    local process = start_to_mark(report_file)

    server.process:kill(signal.SIGKILL)
    server.process:wait()
    local gone_ms = program.now_ms()
    program.eventually('it has tried again', function()
      return program.now_ms() > gone_ms + 1000
    end)
    process:kill(signal.SIGTERM)

    local result = process:wait(20)
    assert.truthy(result.err:find('is not known whether it is marked', 1, true), result.err)
    assert.equal(cjson.null, program.json(report_file).period.marked)
  end)

  it('does not say so either when its keeper is killed meanwhile', function()
    local report_file = program.folder() .. '/report'
    local process = start_to_mark(report_file)

    signal.kill(process:keeper(), signal.SIGKILL)

    process:wait(20)
    assert.equal(cjson.null, program.json(report_file).period.marked)
  end)

  for _, action in ipairs({ 'term', 'warn' }) do
    it(('knows that a run is not marked whose keeper was killed before its end, --on-lost %s')
      :format(action), function()
        local report_file, gate = program.folder() .. '/report', program.gate()
        local process = program.start(program.exec(server, { '--every', '1h', '--on-lost', action,
          '--report', report_file, 'job' }, gate.command))
        gate.started()

        signal.kill(process:keeper(), signal.SIGKILL)

        process:wait(20)
        assert.is_false(program.json(report_file).period.marked)
      end)
  end

  it('reports whose run counts', function()
    local report = program.folder() .. '/report'
    run({ '--report', report, 'job' })
    local own = program.json(report)
    run({ '--report', report, 'job' })
    local other = program.json(report)

    assert.equal('done', own.outcome)
    assert.is_true(own.period.marked)
    assert.equal(3600000, own.period.every_ms)
    assert.equal('skipped', other.outcome)
    assert.equal(0, other.exit)
    assert.is_false(other.period.marked)
    assert.equal(own.period.began_unix_ms, other.period.began_unix_ms)
    assert.equal(own.holds[1].owner, other.period.owner)
    assert.is_true(other.period.ended_unix_ms >= other.period.began_unix_ms)
  end)

  it('works on a cluster, and leaves nothing for ever', function()
    local cluster = fleet.cluster()
    for _ = 1, 2 do
      assert.equal(0, start({ 'job' }, nil, cluster):wait().code)
    end

    assert.equal(1, count())
    local left
    for _, master in ipairs(cluster.masters) do
      local ttl = tonumber(master:command('PTTL', 'latchkey_period:{job}')) or -2
      left = ttl > 0 and ttl or left
    end
    assert.is_true(left > 3600000 and left <= 7200000, tostring(left))
  end)

  it('refuses what it cannot be', function()
    for _, options in ipairs({ { '--every', '999ms', 'job' }, { '--every', '8785h', 'job' },
      { '--every', '1h', 'job', 'other' }, { '--every', '1h', '--kind', 'read', 'job' },
      { '--every', '1h', '--kind', 'permit:2', 'job' }, { '--every', '1 day', 'job' },
      { '--done-code', '1', 'job' }, { '--at-least', '25h', 'job' },
      { '--at-least', '1m', '--kind', 'mutex', 'job' },
      { '--at-least', '1m', '--kind', 'fair', 'job' } }) do
      local result = program.run(program.exec(server, options, { 'true' }))

      assert.equal(64, result.code, table.concat(options, ' '))
    end
    local three = { url = ('%s %s %s'):format(server.url, server.url, server.url) }
    assert.equal(64, program.run(program.exec(three, { '--every', '1h', 'job' }, { 'true' })).code)
    assert.equal(64, run({ 'job' }, ('%s exec --url %s --every 1h job -- true'):format(
      program.path, server.url)).code)
  end)
end)

describe('latchkey exec --at-least', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function run(options, command)
    return program.run(program.exec(server, options, command or { 'true' }))
  end

  for _, kind in ipairs({ 'lock', 'fenced' }) do
    it(('leaves the %s taken when the command ends sooner, also by failing'):format(kind),
      function()
        for name, command in pairs({ job = 'true', other = 'false' }) do
          run({ '--kind', kind, '--at-least', '20m', name }, { command })

          local left = server:lease_ms(name)
          assert.is_true(left > 1100000 and left <= 1200000, tostring(left))
          assert.equal(75, run({ '--kind', kind, '--wait', '0ms', name }).code)
        end
      end)
  end

  for _, kind in ipairs({ 'lock', 'fenced' }) do
    it(('leaves a %s that is listed, told of and broken as any other'):format(kind), function()
      run({ '--kind', kind, '--at-least', '20m', 'job' })
      local function ask(verb, ...)
        local result = program.run({ verb, '--url', server.url, ... })
        assert.equal(0, result.code, verb .. ': ' .. result.out .. result.err)
        return result.out
      end

      local waiting = run({ '--kind', kind, '--wait', '3s', 'job' })

      assert.truthy(waiting.err:find(':kept (released; --at-least keeps it)', 1, true),
        waiting.err)
      assert.truthy(ask('ls'):find('\njob ', 1, true))
      assert.truthy(ask('top', '--once'):find('\njob ', 1, true))
      assert.truthy(ask('inspect', 'job'):find('kept for the rest of a time (--at-least)', 1, true))
      ask('break', 'job', '--yes')
      assert.is_true(server:is_free('job'))
    end)
  end

  it('lets go as ever when the command takes longer', function()
    assert.equal(0, run({ '--at-least', '50ms', 'job' }, { 'sleep', '0.2' }).code)

    assert.is_true(server:is_free('job'))
  end)

  it('lets who waits have it as soon as the time is over', function()
    local before = program.now_ms()
    run({ '--at-least', '2s', 'job' })
    local after = program.now_ms() - before

    local second = run({ '--wait', '60s', 'job' })

    assert.equal(0, second.code)
    assert.is_true(program.now_ms() - before >= 2000)
    assert.is_true(after < 2000 or after > 20000, 'it does not wait itself')
    assert.is_true(program.now_ms() - before < 28000, 'and not for the lease')
  end)

  it('keeps the time when it is killed', function()
    local gate = program.gate()
    local process = program.start(program.exec(server, { '--lease', '1s', '--at-least', '20m',
      'job' }, gate.command))
    gate.started()

    for _, pid in ipairs({ process:keeper(), process.pid }) do
      signal.kill(pid, signal.SIGKILL)
    end
    process:wait()

    assert.is_true(server:lease_ms('job') > 1000000)
  end)

  it('keeps the time when it is asked to end', function()
    local gate = program.gate()
    local process = program.start(program.exec(server, { '--at-least', '20m', 'job' },
      gate.command))
    gate.started()

    process:kill(signal.SIGTERM)
    process:wait()

    assert.is_true(server:lease_ms('job') > 1000000)
  end)

  it('takes nothing when the command cannot be run', function()
    assert.equal(127, run({ '--at-least', '20m', 'job' }, { '/nowhere/command' }).code)

    assert.is_true(server:is_free('job'))
  end)
end)
