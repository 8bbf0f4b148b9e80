-- SPDX-License-Identifier: Apache-2.0
-- The job of an exec, one thing at a time; all ways and jobs together are in job_spec.lua.
local signal = require('posix.signal')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey exec and its job', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function start(options, command, settings)
    return program.start(program.exec(server, options, command), settings)
  end

  -- `script` before `latchkey exec`, in one process.
  local function start_under(script, options, command)
    return program.start_any('sh', { '-c', script .. '; exec "$@"', 'sh', program.path,
      unpack(program.exec(server, options, command)) })
  end

  local function let_pass(seconds)
    server:command('BLPOP', 'nothing', tostring(seconds))
  end

  local function says(holder, pattern)
    return program.eventually('it says ' .. pattern, function()
      return utils.readfile(holder.err_file):match(pattern)
    end)
  end

  describe('what CMD leaves running', function()
    local gate

    before_each(function()
      gate = program.gate()
    end)

    -- The gate in the background of a CMD that ends at once, or when `script` says.
    local function leave(options, script)
      local words = { 'sh', '-c', script or '"$@" & exit 7', 'sh', unpack(gate.command) }
      local holder = start(options, words)
      return holder, gate.started()
    end

    it('keeps the lock, and after 5 s exec says who it is', function()
      local holder, left = leave({ '--lease', '9s', 'job' })

      local left_named = says(holder, 'the lock is kept for processes that it left running: (.-)\n')
      local is_free = server:is_free('job')
      gate.open()

      assert.equal('sh (pid ' .. left .. ', uid ', left_named:match('^.*, uid '))
      assert.is_false(is_free)
      assert.equal(7, holder:wait().code)
      assert.is_true(program.is_gone(left))
      assert.is_true(server:is_free('job'))
    end)

    it('is ended with --leftover end', function()
      local holder, left = leave({ '--leftover', 'end', 'job' },
        ('"$@" & until [ -e %s ]; do sleep 0.01; done; exit 7'):format(gate.started_file))

      assert.equal(7, holder:wait().code)
      assert.is_true(program.is_gone(left))
      assert.is_true(server:is_free('job'))
    end)

    it('goes on without the lock with --leftover leave', function()
      local holder, left = leave({ '--leftover', 'leave', 'job' })

      assert.equal(7, holder:wait().code)
      assert.is_true(server:is_free('job'))
      assert.is_false(program.is_gone(left))
      gate.open()
    end)

    it('is ended by a signal that comes after CMD has ended', function()
      local holder, left = leave({ 'job' })
      program.eventually('CMD has ended', function()
        return program.children(holder:keeper())[left]
      end)

      holder:kill(signal.SIGTERM)

      assert.equal(7, holder:wait().code)
      assert.is_true(program.is_gone(left))
    end)
  end)

  it('refuses what is no way to treat it', function()
    for option, words in pairs({ leftover = 'wait, end or leave', ['on-stop'] = 'keep or end' }) do
      local result = program.run(program.exec(server, { '--' .. option, 'x', 'job' }, { 'true' }))

      assert.equal(64, result.code)
      assert.truthy(result.err:find('write ' .. words, 1, true), result.err)
    end
  end)

  describe('stopped', function()
    it('keeps the lock: CMD ignores what was to stop it', function()
      local gate = program.gate('trap "" TSTP')
      local holder = start({ '--lease', '9s', 'job' }, gate.command)
      gate.started()

      holder:kill(signal.SIGTSTP)
      local is_renewed, state = server:is_renewed('job', 2), program.state(holder.pid)
      gate.open()

      assert.equal('S', state)
      assert.is_true(is_renewed, utils.readfile(holder.err_file))
      assert.equal(0, holder:wait().code)
    end)

    it('keeps the lock: CMD stops', function()
      local gate = program.gate()
      local holder = start({ '--lease', '9s', 'job' }, gate.command)
      local command = gate.started()

      signal.kill(command, signal.SIGSTOP)
      program.eventually('exec stops', function()
        return program.state(holder.pid) == 'T'
      end)
      local is_renewed = server:is_renewed('job', 2)
      signal.kill(command, signal.SIGCONT)
      gate.open()

      assert.is_true(is_renewed, utils.readfile(holder.err_file))
      assert.equal(0, holder:wait().code)
    end)

    it('is ended with --on-stop end', function()
      local gate = program.gate()
      local holder = start({ '--on-stop', 'end', 'job' }, gate.command)

      signal.kill(gate.started(), signal.SIGSTOP)

      assert.equal(signal.SIGTERM, holder:wait().signal)
      assert.is_true(server:is_free('job'))
    end)

    it('waits for the lock no longer, until it goes on', function()
      local gate = program.gate()
      local first = start({ 'job' }, gate.command)
      gate.started()
      local folder = program.folder()
      local waiter = start({ 'job' }, { 'sh', '-c', 'echo ran >' .. folder .. '/ran' })
      program.eventually('the second one waits', function()
        return server:waiters('job') == 1
      end)

      waiter:kill(signal.SIGTSTP)
      local keeper = waiter:keeper()
      program.eventually('it stops', function()
        return program.state(waiter.pid) == 'T' and program.state(keeper) == 'T'
      end)
      gate.open()
      first:wait()
      let_pass(0.5)
      local ran, is_free = utils.readfile(folder .. '/ran'), server:is_free('job')
      waiter:kill(signal.SIGCONT)

      assert.equal(0, waiter:wait().code)
      assert.is_nil(ran)
      assert.is_true(is_free)
      assert.equal('ran\n', utils.readfile(folder .. '/ran'))
    end)
  end)

  it('ends the job in time though nobody reads its messages', function()
    local gate = program.gate('trap "" TERM')
    -- A pipe that is full, and that only this process could read.
    local pipe = program.folder() .. '/pipe'
    local holder = start_under(('mkfifo %s; exec 3<>%s; dd if=/dev/zero bs=65536 count=1 >&3 '
      .. '2>%s.dd; exec 2>&3'):format(pipe, pipe, pipe), { '--lease', '2s', 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')
    local result = holder:wait(15)

    assert.equal(80, result.code)
  end)

  it('runs without standard descriptors, and leaves CMD without them', function()
    local folder = program.folder()
    local script = ('for fd in 0 1 2; do test -e /proc/$$/fd/$fd && echo $fd; done >%s/open;'
      .. 'sleep 0.3; exit 3'):format(folder)
    for closed, open in pairs({ ['<&- 2>&-'] = '1\n', ['<&- >&- 2>&-'] = '1\n', ['>&-'] =
      '0\n1\n2\n' }) do
      local result = start_under('exec ' .. closed, { '-v', 'job' }, { 'sh', '-c', script }):wait()

      assert.equal(3, result.code, closed)
      -- The loop's output is the file, in any case.
      assert.equal(open, utils.readfile(folder .. '/open'), closed)
      assert.is_true(server:is_free('job'))
    end
  end)

  -- strace holds back each thread that has begun another one, so the lock is taken before the
  -- keeper begins to wait for it.
  it('sleeps while CMD runs, though the lock was taken before it could wait', function()
    local calls = program.folder() .. '/calls'

    local result = program.start_any('strace', { '-f', '-o', calls, '-e', 'trace=poll,clone,clone3',
      '-e', 'inject=clone,clone3:delay_exit=200000', program.path,
      unpack(program.exec(server, { 'job' }, { 'sleep', '1' })) },
      { env = { ASAN_OPTIONS = (os.getenv('ASAN_OPTIONS') or '') .. ':detect_leaks=0' } }):wait()

    assert.equal(0, result.code)
    local _, polls = utils.readfile(calls):gsub(' poll%(', '')
    assert.is_true(polls > 3 and polls < 200, polls)
  end)

  it('learns how CMD ended though SIGCHLD was ignored before', function()
    assert.equal(4, start_under('trap "" CHLD', { 'job' }, { 'sh', '-c', 'exit 4' }):wait().code)
  end)

  it('leaves children alone that the program had before it became latchkey', function()
    local gate = program.gate()
    local holder = start_under('sleep 60 & echo $!', { '--lease', '2s', 'job' }, gate.command)
    gate.started()
    local child = tonumber(utils.readfile(holder.out_file))

    signal.kill(holder:keeper(), signal.SIGKILL)
    local result = holder:wait()
    local is_gone = program.is_gone(child)
    signal.kill(child, signal.SIGKILL)

    assert.equal(80, result.code)
    assert.is_false(is_gone)
  end)

  it('passes a signal on once that its whole group is sent', function()
    local folder = program.folder()
    local holder = start({ 'job' }, { 'sh', '-c', [[trap 'echo caught' TERM; echo $$ >"$0/started"
      while ! test -e "$0/end"; do sleep 0.05; done]], folder })
    program.eventually('CMD runs', function()
      return utils.readfile(folder .. '/started')
    end)

    signal.kill(holder:keeper(), signal.SIGTERM)
    holder:kill(signal.SIGTERM)
    program.eventually('CMD has had it', function()
      return utils.readfile(holder.out_file) ~= ''
    end)
    let_pass(0.5) -- for a second one
    assert(utils.writefile(folder .. '/end', ''))

    assert.equal('caught\n', holder:wait().out)
  end)

  it('tells by which process it was left alone, and reports it', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local holder = start({ '--lease', '2s', '--lost-exit', '81', '--report', file, 'job' },
      gate.command)
    local command = gate.started()

    signal.kill(holder:keeper(), signal.SIGKILL)
    local result = holder:wait()

    local report = program.json(file)
    assert.equal(81, result.code)
    assert.truthy(result.err:find('its keeper was killed (signal 9); the command', 1, true),
      result.err)
    assert.is_true(program.is_gone(command))
    assert.equal('lost', report.outcome)
    assert.equal(81, report.exit)
    assert.equal('LK_LOST', report.error.status)
  end)

  it('tells a keeper that was silent from one that was killed', function()
    local gate = program.gate()
    local holder = start({ '--lease', '2s', 'job' }, gate.command)
    gate.started()

    signal.kill(holder:keeper(), signal.SIGSTOP)
    local result = holder:wait()

    local left_ms, side = result.err:match('its keeper was silent until (%d+) ms (%l+) the end of '
      .. 'the lease: it was stopped, or all of the machine was; the command was ended')
    assert.equal(80, result.code)
    assert.truthy(left_ms, result.err)
    assert.is_true(side == 'after' or tonumber(left_ms) <= 250, result.err)
  end)

  for what, case in pairs({
    ['silent'] = { signal.SIGSTOP, 'its keeper was silent until %d+ ms after the end of the lease: '
      .. 'it was stopped, or all of the machine was' },
    ['killed'] = { signal.SIGKILL, 'its keeper was killed %(signal 9%)' },
  }) do
    it(('says that the lease had ended when it goes on itself and its keeper was %s'):format(what),
      function()
        local file, gate = program.folder() .. '/report', program.gate()
        local holder = start({ '--lease', '2s', '--report', file, 'job' }, gate.command)
        gate.started()
        local keeper = holder:keeper()

        holder:kill(signal.SIGSTOP)
        signal.kill(keeper, signal.SIGSTOP)
        program.eventually('the lease ends', function()
          return server:is_free('job')
        end)
        signal.kill(keeper, case[1])
        program.eventually('it is so', function()
          return case[1] == signal.SIGSTOP or program.is_gone(keeper)
        end)
        holder:kill(signal.SIGCONT)
        local result = holder:wait()

        local message = case[2] .. '; the command was ended, and the lock had expired'
        assert.equal(80, result.code)
        assert.truthy(result.err:find(message), result.err)
        assert.truthy(program.json(file).error.message:find(message))
      end)
  end

  it('asks what CMD has started to end when the keeper is killed, before it is killed', function()
    local folder = program.folder()
    -- Which of its ends the front sees first, the link's or the process's, differs.
    for i = 1, 15 do
      local script = ('(trap "echo >%s/%d.told; exit" TERM; echo >%s/%d;'
        .. ' while :; do sleep 0.05; done) & wait'):format(folder, i, folder, i)
      local holder = start({ 'job' .. i }, { 'sh', '-c', script })
      program.eventually('the child runs', function()
        return utils.readfile(folder .. '/' .. i)
      end)

      signal.kill(holder:keeper(), signal.SIGKILL)

      assert.equal(80, holder:wait().code)
      assert.equal('\n', utils.readfile(('%s/%d.told'):format(folder, i)))
    end
  end)

  it('leaves alone what CMD starts when it is told to end', function()
    local folder = program.folder()
    for i = 1, 15 do
      local gate = program.gate(([[trap 'sleep 0.05 && echo done >%s/%d; exit' TERM]])
        :format(folder, i))
      local holder = start({ 'job' .. i }, gate.command)
      gate.started()

      holder:kill(signal.SIGKILL)
      holder:wait()
      program.eventually('the lock is free', function()
        return server:is_free('job' .. i)
      end)

      assert.equal('done\n', utils.readfile(('%s/%d'):format(folder, i)))
    end
  end)

  it('reaps what it adopts as the first process of a container', function()
    if unistd.geteuid() ~= 0 then
      pending('needs root')
    end
    local script = [[for i in 1 2 3; do setsid sh -c 'sleep 0.1 & sleep 0.2 &'; done
      sleep 1; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l; exit 5]]
    local result = program.start_any('unshare', { '--pid', '--fork', '--mount-proc', program.path,
      unpack(program.exec(server, { 'job' }, { 'sh', '-c', script })) }):wait()

    assert.equal(5, result.code, result.err)
    assert.equal('0\n', result.out)
  end)
end)
