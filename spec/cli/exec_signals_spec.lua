-- SPDX-License-Identifier: Apache-2.0
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey exec, when signals come', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function start(command)
    return program.start(program.exec(server, { 'job' }, command))
  end

  -- A signal just before a shell reads is acted on after the line only, which never comes.
  local function reads(pid)
    local status = utils.readfile(('/proc/%d/stat'):format(pid))
    local children = utils.readfile(('/proc/%d/task/%d/children'):format(pid, pid))
    return status and status:find(') S ', 1, true) and children == ''
  end

  for _, name in ipairs({ 'TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'WINCH' }) do
    it(('passes SIG%s on, and ends as the command does'):format(name), function()
      local gate = program.gate(('trap "echo caught; exit 5" %s'):format(name))
      local holder = start(gate.command)
      local shell = gate.started()
      program.eventually('the shell reads', function() return reads(shell) end)

      holder:kill(signal['SIG' .. name] or 28)
      local result = holder:wait()

      assert.equal(5, result.code)
      assert.equal('caught\n', result.out)
      assert.is_true(server:is_free('job'))
    end)
  end

  -- Each release takes a second, and none of them is answered.
  it('ends soon on SIGTERM without its server, however many names it has', function()
    local function start_many(first, command, ...)
      local options = { '--lease', '1h', ... }
      for i = 1, 30 do
        options[#options + 1] = first .. i
      end
      return program.start(program.exec(server, options, command))
    end
    local gate = program.gate()
    local holder = start_many('a', gate.command)
    gate.started()
    server:command('HSET', 'z', 'another:1', '1')
    local waiter = start_many('b', { 'true' }, 'z')
    program.eventually('it waits for the last one', function()
      return server:waiters('z') == 1
    end)
    server.process:kill(signal.SIGKILL)
    server.process:wait()

    waiter:kill(signal.SIGTERM)
    holder:kill(signal.SIGTERM)

    assert.equal(signal.SIGTERM, waiter:wait(15).signal)
    local result = holder:wait(15)
    assert.equal(signal.SIGTERM, result.signal)
    assert.truthy(result.err:find('the release failed', 1, true), result.err)
  end)

  it('leaves a signal alone that was ignored before', function()
    local gate = program.gate()
    local words = program.exec(server, { 'job' }, gate.command)
    local holder = program.start_any('sh', { '-c', 'trap "" HUP; exec "$@"', 'sh', program.path,
      unpack(words) })
    local command = gate.started()

    holder:kill(signal.SIGHUP)
    signal.kill(command, signal.SIGHUP)
    gate.open()

    assert.equal(0, holder:wait().code)
  end)

  it('stops with the command and goes on with it', function()
    local gate = program.gate()
    local holder = start(gate.command)
    local command = gate.started()

    holder:kill(signal.SIGTSTP)
    program.eventually('both are stopped', function()
      return program.state(command) == 'T' and program.state(holder.pid) == 'T'
    end)
    holder:kill(signal.SIGCONT)
    program.eventually('both go on', function()
      return program.state(command) == 'S' and program.state(holder.pid) == 'S'
    end)
    gate.open()

    assert.equal(0, holder:wait().code)
    assert.is_true(server:is_free('job'))
  end)

  it('gives the command the signals as they were, a broken pipe included', function()
    local holder = start({ 'sh', '-c', 'yes | head -n 1' })

    local result = holder:wait()

    assert.equal('y\n', result.out)
    assert.equal('', result.err)
  end)
end)
