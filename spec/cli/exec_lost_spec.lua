-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local signal = require('posix.signal')
local time = require('posix.time')
local utils = require('pl.utils')

local program = require('cli.program')

-- Runs a command of which no process may send a signal through a descriptor: pidfd_send_signal, 424
-- on every processor. arg[1]: the error.
local REFUSING = [[
  local ffi = require('ffi')
  ffi.cdef('typedef struct { uint16_t code; uint8_t yes, no; uint32_t k; } filter;'
    .. 'typedef struct { uint16_t count; filter *all; } program;'
    .. 'int prctl(int, ...); int execvp(const char *, const char *const *);')
  local filters = ffi.new('filter[4]', { { 0x20, 0, 0, 0 }, { 0x15, 0, 1, 424 },
    { 0x06, 0, 0, 0x50000 + tonumber(arg[1]) }, { 0x06, 0, 0, 0x7fff0000 } })
  local long = ffi.typeof('unsigned long')
  assert(ffi.C.prctl(38, long(1), long(0), long(0), long(0)) == 0)
  assert(ffi.C.prctl(22, long(2), ffi.new('program', 4, filters)) == 0, 'no filters')
  local words = ffi.new('const char *[?]', #arg)
  for i = 2, #arg do
    words[i - 2] = arg[i]
  end
  ffi.C.execvp(words[0], words)]]
local EPERM, ENOSYS = 1, 38

-- Takes SIGTERM, and counts how often it comes again within half a second.
local COUNTING = [[
  local ffi = require('ffi')
  ffi.cdef('typedef struct { long s, n; } ts; typedef struct { uint64_t bits[16]; } set;'
    .. 'int sigprocmask(int, const set *, set *);'
    .. 'int sigtimedwait(const set *, void *, const ts *);')
  local term = ffi.new('set', { { 0x4000 } })
  assert(ffi.C.sigprocmask(0, term, nil) == 0)
  io.open(arg[1], 'w'):close()
  local told = 0
  while ffi.C.sigtimedwait(term, nil, ffi.new('ts', told > 0 and 0 or 60, 5e8)) == 15 do
    told = told + 1
  end
  print('told ' .. told)]]

describe('latchkey exec, when the lock is lost or a process dies', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function start(options, command)
    return program.start(program.exec(server, options, command))
  end

  -- A lease that leaves seconds between SIGTERM and SIGKILL.
  it('ends the command when the lock is broken, and exits 80', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--lease', '10s', '--report', file, 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')
    local result = holder:wait()

    local report = program.json(file)
    assert.equal(80, result.code)
    assert.truthy(result.err:find('lost "job"', 1, true))
    assert.equal('lost', report.outcome)
    assert.equal('LK_LOST', report.error.status)
    assert.equal('broken', report.holds[1].lost)
    assert.equal(signal.SIGTERM, report.command_signal)
  end)

  it('sends the command SIGTERM once: a second one means to many that they are to end at once',
    function()
      local ends = {
        lost = function()
          server:command('DEL', 'job')
        end,
        killed = function(holder)
          holder:kill(signal.SIGKILL)
        end
      }
      for name, ends_it in pairs(ends) do
        local folder = program.folder()
        assert(utils.writefile(folder .. '/counting.lua', COUNTING))
        local holder = start({ '--lease', '10s', 'job' },
          { 'luajit', folder .. '/counting.lua', folder .. '/started' })
        program.eventually('the command listens', function()
          return utils.readfile(folder .. '/started')
        end)

        ends_it(holder)
        local told = program.eventually('the command ends', function()
          return utils.readfile(holder.out_file):match('^told (%d+)\n')
        end)
        program.eventually('the lock is free', function()
          return server:is_free('job')
        end)

        assert.equal('1', told, name)
      end
    end)

  for name, number in pairs({ EPERM = EPERM, ENOSYS = ENOSYS }) do
    it('ends what the command left where signals through descriptors are refused with ' .. name,
      function()
        local file = program.folder() .. '/refusing.lua'
        assert(utils.writefile(file, REFUSING))
        local holder = program.start_any('luajit', { file, tostring(number), program.path,
          unpack(program.exec(server, { '--lease', '1s', '--on-lost', 'kill', 'job' },
            { 'sh', '-c', 'sleep 300 & echo $!' })) })
        local left = tonumber(program.eventually('the command has ended', function()
          return (utils.readfile(holder.out_file) or ''):match('^(%d+)\n')
        end))

        server:command('DEL', 'job')
        pcall(holder.wait, holder, 20)
        local ended = program.is_gone(left)
        signal.kill(left, signal.SIGKILL)

        assert.is_true(ended)
        assert.equal(80, holder:wait().code)
        assert.falsy(holder.result.err:find('could not be ended', 1, true), holder.result.err)
      end)
  end

  it('says so when another owner has it, and leaves that one alone', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--kind', 'mutex', '--lease', '6s', '--report', file, 'job' },
      gate.command)
    gate.started()

    server:command('SET', 'job', 'another')
    local result = holder:wait()

    assert.equal(80, result.code)
    assert.equal('taken', program.json(file).holds[1].lost)
    assert.equal('another', server:command('GET', 'job'))
  end)

  for _, kind in ipairs({ 'lock', 'permit:1' }) do
    it('names what the renewals met before, with --kind ' .. kind, function()
      local file, gate = program.folder() .. '/report', program.gate()
      local holder = start({ '--kind', kind, '--lease', '6s', '--report', file, 'job' },
        gate.command)
      gate.started()

      server:command('REPLICAOF', '127.0.0.1', '1')
      local result = holder:wait()

      assert.equal(80, result.code)
      assert.truthy(result.err:find('lost "job": it was not renewed in time (READONLY ', 1, true),
        result.err)
      local report = program.json(file)
      assert.equal('unreachable', report.holds[1].lost)
      assert.equal('LK_READONLY', report.error.cause.status)
      assert.truthy(report.error.cause.message:find('^READONLY '))
    end)
  end

  it('names no cause where renewals went well', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--lease', '6s', '--report', file, 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')

    assert.truthy(holder:wait().err:find('broken, deleted or evicted; the job was sent', 1, true))
    assert.equal(cjson.null, program.json(file).error.cause)
  end)

  it('exits with the code that was asked for', function()
    local gate = program.gate()
    local holder = start({ '--lease', '1s', '--lost-exit', '9', 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')

    assert.equal(9, holder:wait().code)
  end)

  it('kills the command with --on-lost kill', function()
    local file, gate = program.folder() .. '/report', program.gate('trap "" TERM')
    local holder = start({ '--lease', '1s', '--on-lost', 'kill', '--report', file, 'job' },
      gate.command)
    gate.started()

    server:command('DEL', 'job')
    local result = holder:wait()

    assert.equal(80, result.code)
    assert.equal(signal.SIGKILL, program.json(file).command_signal)
  end)

  it('kills a command that does not end by SIGTERM', function()
    local file, gate = program.folder() .. '/report', program.gate('trap "" TERM')
    local holder = start({ '--lease', '1s', '--report', file, 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')
    local result = holder:wait()

    assert.equal(80, result.code)
    assert.equal(signal.SIGKILL, program.json(file).command_signal)
  end)

  it('lets the command go on with --on-lost warn, and exits 80 in the end', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--lease', '1s', '--on-lost', 'warn', '--report', file, 'job' },
      gate.command)
    local command = gate.started()

    server:command('DEL', 'job')
    program.eventually('it warns', function()
      return utils.readfile(holder.err_file):find('lost "job"', 1, true)
    end)
    local goes_on = not program.is_gone(command)
    gate.open()
    local result = holder:wait()

    assert.is_true(goes_on)
    assert.equal(80, result.code)
    assert.equal(0, program.json(file).command_exit)
  end)

  it('asks what the command has left to end, also after a loss that is only warned of', function()
    local told, up = program.folder() .. '/told', program.folder() .. '/up'
    local gate = program.gate(('(trap "echo told >%s; exit" TERM; echo up >%s; '
      .. 'while :; do sleep 0.02; done) &'):format(told, up))
    local holder = start({ '--lease', '1s', '--on-lost', 'warn', '--leftover', 'end', 'job' },
      gate.command)
    gate.started()
    program.eventually('what is left is ready', function()
      return utils.readfile(up)
    end)

    server:command('DEL', 'job')
    program.eventually('it warns', function()
      return utils.readfile(holder.err_file):find('lost "job"', 1, true)
    end)
    time.nanosleep({ tv_sec = 1, tv_nsec = 0 }) -- the lease is over
    gate.open()
    holder:wait()

    assert.equal('told\n', utils.readfile(told))
  end)

  it('ends a command that is stopped', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--lease', '2s', '--report', file, 'job' }, gate.command)
    signal.kill(gate.started(), signal.SIGSTOP)

    server:command('DEL', 'job')
    holder:wait()

    assert.equal(signal.SIGTERM, program.json(file).command_signal)
  end)

  it('tells the command before the lease ends when the server answers no more', function()
    local folder = program.folder()
    local gate = program.gate(('trap \'date +%%s%%3N >"%s/told"; exit 0\' TERM'):format(folder))
    local holder = start({ '--lease', '12s', 'job' }, gate.command)
    gate.started()

    local lease_ends_ms = program.now_ms() + server:lease_ms('job')
    server.process:kill(signal.SIGSTOP)
    local stopped_ms = program.now_ms()
    local result = holder:wait()
    server.process:kill(signal.SIGCONT)

    local told_ms = tonumber(utils.readfile(folder .. '/told'))
    -- Two seconds are left to it, less what this machine is late. A renewal can have come between
    -- the look at the lease and the stop.
    local renewed = lease_ends_ms - stopped_ms < 7900
    assert.is_true(told_ms < (renewed and stopped_ms + 12000 or lease_ends_ms) - 1000)
    assert.equal(80, result.code)
  end)

  it('goes on when the server comes back within the lease', function()
    local gate = program.gate()
    local holder = start({ '--lease', '9s', 'job' }, gate.command)
    gate.started()

    server:command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    local killed_ms = program.now_ms()
    program.eventually('it renews again', function()
      return program.now_ms() + server:lease_ms('job') > killed_ms + 9200
    end)
    gate.open()

    assert.equal(0, holder:wait().code)
    assert.is_true(server:is_free('job'))
  end)

  it('takes the command with it when it is killed, and then frees the lock', function()
    local file, gate = program.folder() .. '/report', program.gate('trap "sleep 0.5; exit 3" TERM')
    local holder = start({ '--report', file, 'job' }, gate.command)
    local command = gate.started()

    holder:kill(signal.SIGKILL)
    holder:wait()
    program.eventually('the lock is free', function()
      return server:is_free('job')
    end)
    local was_gone = program.is_gone(command)
    local report = program.eventually('it is reported', function()
      local text = utils.readfile(file)
      return text:find('}\n$') and cjson.decode(text)
    end)

    assert.is_true(was_gone)
    assert.equal('interrupted', report.outcome)
    assert.equal(3, report.command_exit)
    assert.equal('LK_CANCELLED', report.error.status)
  end)

  it('keeps the lock while it is stopped itself, and goes on as if nothing had been', function()
    local gate = program.gate()
    local holder = start({ '--lease', '9s', 'job' }, gate.command)
    gate.started()

    holder:kill(signal.SIGSTOP)
    local is_renewed = server:is_renewed('job', 2)
    gate.open()
    holder:kill(signal.SIGCONT)

    assert.is_true(is_renewed)
    assert.equal(0, holder:wait().code)
    assert.is_true(server:is_free('job'))
  end)

  it('notices when it gives the locks back that one was lost', function()
    local file = program.folder() .. '/report'

    local result = start({ '--report', file, 'a', 'b' },
      { 'redis-cli', '-s', server.socket, 'DEL', 'b' }):wait()

    local report = program.json(file)
    assert.equal(80, result.code)
    assert.equal('lost', report.outcome)
    assert.equal(0, report.command_exit)
    assert.equal(cjson.null, report.holds[1].lost)
    assert.equal('broken', report.holds[2].lost)
    assert.is_true(server:is_free('a'))
  end)

  it('frees the other locks when one of several is lost', function()
    local gate = program.gate()
    local holder = start({ '--lease', '1s', 'a', 'b' }, gate.command)
    gate.started()

    server:command('DEL', 'a')
    local result = holder:wait()

    assert.equal(80, result.code)
    assert.is_true(server:is_free('b'))
  end)

  it('goes on through SCRIPT FLUSH and a full server', function()
    local gate = program.gate()
    local holder = start({ '--lease', '6s', 'job' }, gate.command)
    gate.started()

    server:command('SCRIPT', 'FLUSH')
    server:command('CONFIG', 'SET', 'maxmemory', '1')
    server:command('CONFIG', 'RESETSTAT')
    program.eventually('it has renewed', function()
      return server:command('INFO', 'commandstats'):find('cmdstat_pexpire', 1, true)
    end)
    gate.open()

    assert.equal(0, holder:wait().code)
    assert.is_true(server:is_free('job'))
  end)

  it('ends the command when the server was restarted with an empty memory', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--lease', '12s', '--report', file, 'job' }, gate.command)
    gate.started()

    server:restart()
    local result = holder:wait()

    assert.equal(80, result.code)
    assert.equal('broken', program.json(file).holds[1].lost)
  end)

  it('keeps the exit code of a command that ended in time when the lock cannot be given back',
    function()
      local gate, file = program.gate(), program.folder() .. '/report'
      local holder = start({ '--report', file, 'job' }, gate.command)
      gate.started()

      server.process:kill(signal.SIGKILL)
      server.process:wait()
      gate.open()
      local result = holder:wait()

      assert.equal(0, result.code)
      assert.truthy(result.err:find('the release failed', 1, true))
      assert.equal(cjson.null, program.json(file).freed_unix_ms)
    end)
end)
