-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey exec inside another', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  -- The outer exec runs a shell that runs the inner one; the shell ends with the inner's exit code.
  local function nested(outer, inner, command)
    local words = program.exec(server, inner, command)
    return program.start(program.exec(server, outer,
      { 'sh', '-c', '"$@"; exit $?', 'sh', program.path, unpack(words) }))
  end

  it('runs inside the hold of the outer one, and neither counts nor releases', function()
    local words = program.exec(server, { 'job' }, { 'true' })

    local outer = program.start(program.exec(server, { 'job' },
      { 'sh', '-c', '"$@" || exit; redis-cli -s ' .. server.socket .. ' HVALS job', 'sh',
        program.path, unpack(words) })):wait()

    assert.equal(0, outer.code)
    assert.equal('1\n', outer.out)
    assert.is_true(server:is_free('job'))
  end)

  it('takes other names as ever', function()
    local result = nested({ 'job' }, { 'job', 'other' },
      { 'redis-cli', '-s', server.socket, 'EXISTS', 'job', 'other' }):wait()

    assert.equal('2\n', result.out)
    assert.equal(0, result.code)
    assert.is_true(server:is_free('other'))
  end)

  it('refuses a name that the outer one holds as another kind, and never waits for it', function()
    for outer, inner in pairs({ lock = 'mutex', fenced = 'lock', mutex = 'fenced' }) do
      local result = nested({ '--kind', outer, 'job' }, { '--kind', inner, 'job' },
        { 'true' }):wait()

      assert.equal(64, result.code)
      assert.truthy(result.err:find('with --kind ' .. outer, 1, true))
    end
  end)

  describe('whose URL names the server otherwise', function()
    local otherwise

    before_each(function()
      otherwise = { url = server.url:gsub('/s$', '/./s') }
    end)

    -- Never longer: it would wait for its own parent.
    local function inner(outer, options, command, env)
      local words = program.exec(otherwise, options, command)
      local process = program.start(program.exec(server, outer,
        { 'sh', '-c', '"$@"; exit $?', 'sh', program.path, unpack(words) }), { env = env })
      local ended, result = pcall(process.wait, process, 20)
      assert.is_true(ended, result)
      return result
    end

    for _, wait in ipairs({ '0ms', 'forever' }) do
      it('runs inside the hold of the outer one with --wait ' .. wait, function()
        local file = program.folder() .. '/report'

        local result = inner({ '--kind', 'fenced', 'job' },
          { '--kind', 'fenced', '--wait', wait, '--report', file, 'job', 'other' },
          { 'sh', '-c', 'redis-cli -s ' .. server.socket .. ' HVALS job; echo $LATCHKEY_TOKEN' })

        assert.same({ 0, '' }, { result.code, result.err })
        assert.truthy(result.out:find('^1\n%d+ %d+\n$'), result.out)
        assert.same({ true, false }, { program.json(file).holds[1].nested,
          program.json(file).holds[2].nested })
        assert.is_true(server:is_free('job') and server:is_free('other'))
      end)
    end

    it('is ended when the outer hold is broken', function()
      local result = inner({ '--on-lost', 'warn', '--lease', '1s', 'job' }, { 'job' },
        { 'sh', '-c', 'redis-cli -s ' .. server.socket .. ' DEL job; exec sleep 60' })

      assert.equal(80, result.code)
    end)

    it('is refused what a hold of the outer one excludes', function()
      for _, case in ipairs({ { 'with --kind lock', '--kind', 'mutex' },
        { '--every and --at-least', '--at-least', '1s' } }) do
        local why, option, value = unpack(case)
        local result = inner({ 'job' }, { option, value, 'job' }, { 'echo', 'ran' })

        assert.same({ 64, '' }, { result.code, result.out })
        assert.truthy(result.err:find('"job" is held by the exec around this one', 1, true))
        assert.truthy(result.err:find(why, 1, true), result.err)
      end
    end)

    it('takes a lock of its own where that is another server', function()
      local here = server
      otherwise = program.server()
      local result = inner({ 'job' }, { 'job' }, { 'sh', '-c', ('redis-cli -s %s EXISTS job; '
        .. 'redis-cli -s %s HVALS job'):format(here.socket, otherwise.socket) })

      assert.same({ 0, '1\n1\n' }, { result.code, result.out })
      assert.is_true(otherwise:is_free('job'))
    end)

    it('waits for another owner as ever, and for what an exec that is gone has left', function()
      local held = program.run(program.exec(server, { '--lease', '2s', 'job' },
        { 'printenv', 'LATCHKEY_HELD' })).out:gsub('\n$', '')
      local owner = held:match('^lock,job,([^,]+),')
      server:command('HSET', 'job', owner, '1')
      server:command('PEXPIRE', 'job', '1500')

      local left = program.run(program.exec(otherwise, { 'job' }, { 'echo', 'ran' }),
        { env = { LATCHKEY_HELD = held } })
      server:command('HSET', 'job', 'another', '1')
      local busy = inner({ 'else' }, { '--wait', '0ms', 'job' }, { 'echo', 'ran' })

      assert.same({ 0, 'ran\n', 75 }, { left.code, left.out, busy.code })
    end)
  end)

  it('reports that its hold is the outer one\'s', function()
    local file = program.folder() .. '/report'

    nested({ 'job' }, { '--report', file, 'job' }, { 'true' }):wait()

    local hold = program.json(file).holds[1]
    assert.is_true(hold.nested)
    assert.truthy(hold.owner:find('^lk%-'))
  end)

  it('runs nothing when the outer hold is gone', function()
    local words = program.exec(server, { 'job' }, { 'echo', 'ran' })

    local result = program.start(program.exec(server, { 'job' }, { 'sh', '-c',
      'redis-cli -s ' .. server.socket .. ' DEL job >/dev/null; "$@"; echo $?', 'sh', program.path,
      unpack(words) })):wait()

    assert.equal('80\n', result.out)
  end)

  -- Its calls are not waiting for the server all the time, but for the next try.
  it('ends when it is told to while it waits for a server that is away', function()
    local words = program.exec(server, { 'job' }, { 'true' })

    local outer = program.start(program.exec(server, { 'job' }, { 'sh', '-c',
      'redis-cli -s ' .. server.socket .. ' SHUTDOWN NOSAVE; "$@" & inner=$!; sleep 1; '
        .. 'kill $inner; wait $inner; echo $?', 'sh', program.path, unpack(words) })):wait()

    assert.equal('143\n', outer.out)
  end)

  it('says what to do in a daemon, which the outer one has left running', function()
    local held = program.run(program.exec(server, { 'job' }, { 'printenv', 'LATCHKEY_HELD' })).out
    local words = program.exec(server, { '--json', 'job' }, { 'echo', 'ran' })

    local inside = program.run(words, { env = { LATCHKEY_HELD = held:gsub('\n$', '') } })
    local outside = program.run(words)

    assert.equal(80, inside.code)
    assert.equal('', inside.out)
    assert.truthy(cjson.decode(inside.err).error.hint:find(
      'CMD was not started.*env %-u LATCHKEY_HELD latchkey exec job'))
    assert.equal('ran\n', outside.out)
  end)

  it('applies its own --on-lost when the hold is lost', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local outer = nested({ '--lease', '1s', '--on-lost', 'warn', 'job' },
      { '--on-lost', 'kill', '--lost-exit', '81', '--report', file, 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')
    outer:wait()

    local report = program.json(file)
    assert.equal(81, report.exit)
    assert.equal(signal.SIGKILL, report.command_signal)
  end)

  local function reported(file)
    return program.eventually('the inner one has reported', function()
      local text = utils.readfile(file)
      return text and text:find('}\n$') and cjson.decode(text)
    end)
  end

  it('ends its command when the outer one is killed, before the lock is free', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local outer = nested({ 'job' }, { '--report', file, 'job' }, gate.command)
    local command = gate.started()

    outer:kill(signal.SIGKILL)
    program.eventually('the lock is free', function()
      return server:is_free('job')
    end)

    assert.is_true(program.is_gone(command))
    assert.equal(signal.SIGTERM, reported(file).command_signal)
  end)

  it('ends its command when the keeper of the outer one dies, though it could renew', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local outer = nested({ 'job' }, { '--report', file, 'job' }, gate.command)
    local command = gate.started()

    signal.kill(outer:keeper(), signal.SIGKILL)
    local result = outer:wait()
    local report = reported(file)

    assert.is_true(program.is_gone(command))
    assert.equal(80, result.code)
    assert.equal(80, report.exit)
    assert.equal('outer', report.holds[1].lost)
  end)

  -- A keeper that dies closes its link a moment before it is seen to be dead. strace makes the
  -- moment long: the front looks for dead children, and what it sees then it knows half a second
  -- later. Who is traced cannot look for leaks.
  it('ends its command as lost though it cannot see yet that the keeper of the outer one is dead',
    function()
      local file, gate = program.folder() .. '/report', program.gate()
      local blind = { 'strace', '-f', '-o', '/dev/null', '-e', 'inject=pidfd_open:error=ENOSYS' }
      for _, word in ipairs({ program.path,
        unpack(program.exec(server, { '--report', file, 'job' }, gate.command)) }) do
        table.insert(blind, word)
      end
      local outer = program.start(program.exec(server, { 'job' },
        { 'sh', '-c', '"$@"; exit $?', 'sh', unpack(blind) }),
        { env = { ASAN_OPTIONS = (os.getenv('ASAN_OPTIONS') or '') .. ':detect_leaks=0' } })
      gate.started()
      local keeper = outer:keeper()
      local slow = program.start_any('strace', { '-p', tostring(outer.pid), '-o', '/dev/null',
        '-e', 'inject=wait4:delay_enter=300000:delay_exit=500000' })
      program.eventually('strace is attached', function()
        return utils.readfile(slow.err_file):find('attached')
      end)

      outer:kill(signal.SIGCONT)
      server:command('BLPOP', 'nothing', '0.5')
      signal.kill(keeper, signal.SIGKILL)
      outer:wait()

      local report = reported(file)
      assert.equal(80, report.exit)
      assert.equal('outer', report.holds[1].lost)
    end)

  it('loses nothing when the outer one is stopped for longer than the lease', function()
    local gate = program.gate()
    local outer = nested({ '--lease', '7s', 'job' }, { 'job' }, gate.command)
    gate.started()

    outer:kill(signal.SIGSTOP)
    server:command('BLPOP', 'nothing', '8')
    outer:kill(signal.SIGCONT)
    gate.open()
    local result = outer:wait()

    assert.equal(0, result.code, result.err)
    assert.equal('', result.err)
  end)

  it('runs inside the hold of one that another PID namespace has', function()
    if program.start_any('unshare', { '-rpf', 'true' }):wait().code ~= 0 then
      return pending('this user may make no PID namespace')
    end
    local words = program.exec(server, { 'job' }, { 'echo', 'ran' })

    local outer = program.run(program.exec(server, { 'job' },
      { 'unshare', '-rpf', 'sh', '-c', '"$@"; exit $?', 'sh', program.path, unpack(words) }))

    assert.equal('ran\n', outer.out, outer.err)
    assert.equal(0, outer.code)
  end)

  it('notices that one of a hundred outer ones has ended, whichever it is', function()
    local sleepers = {}
    for i = 1, 2 do
      sleepers[i] = program.start_any('sleep', { '60' })
    end
    local names, held = {}, {}
    for i = 1, 100 do
      names[i] = ('n%03d'):format(i)
      server:command('HSET', names[i], 'lk-me:1', '1')
      held[i] = ('lock,%s,lk-me:1,3600000,%d,unix://%s%%3Fdb%%3D0,0'):format(names[i],
        sleepers[i == 100 and 2 or 1].pid, server.socket)
    end
    local gate = program.gate()
    local inner = program.start(program.exec(server, names, gate.command),
      { env = { LATCHKEY_HELD = table.concat(held, ' ') } })
    gate.started()

    sleepers[2]:kill(signal.SIGKILL)
    sleepers[2]:wait()
    local result = inner:wait()

    assert.equal(80, result.code)
    assert.truthy(result.err:find('lost "n100"', 1, true), result.err)
  end)

  it('refuses a LATCHKEY_HELD that it did not write', function()
    for _, text in ipairs({ 'job', 'lock,job,me,30000,1', 'lock,job,me,30000,1,a',
      'lock,job,me,30000,1,a,b', 'lock,job,me,30000,1,a,-1', 'lock,job,me,30000,1,a,0,c',
      'lock,job,me,30000,1,a,0,', 'lock,job,me,30000,1,a,0,1,1',
      'lock,,me,1,1,a,0', 'lock,job,me,x,1,a,0', 'lock,job,%G0,100,1,a,0',
      'lock,job,%00,100,1,a,0', 'lock,job,me,0,1,a,0', 'lock,job,me,1,99999999999,a,0',
      'fenced,job,me,1,1,a,9007199254740992' }) do
      local result = program.run(program.exec(server, { 'job' }, { 'true' }),
        { env = { LATCHKEY_HELD = text } })

      assert.equal(64, result.code, text)
    end
    assert.is_true(server:is_free('job'))
  end)
end)
