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

  it('applies its own --on-lost when the hold is lost', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local outer = nested({ '--lease', '300ms', '--on-lost', 'warn', 'job' },
      { '--on-lost', 'kill', '--lost-exit', '81', '--report', file, 'job' }, gate.command)
    gate.started()

    server:command('DEL', 'job')
    outer:wait()

    local report = program.json(file)
    assert.equal(81, report.exit)
    assert.equal(signal.SIGKILL, report.command_signal)
  end)

  it('ends its command when the outer one dies, though it could go on renewing', function()
    local file, gate = program.folder() .. '/report', program.gate()
    local outer = nested({ 'job' }, { '--report', file, 'job' }, gate.command)
    local command = gate.started()

    outer:kill(signal.SIGKILL)
    program.eventually('the inner command is dead', function()
      return program.is_gone(command)
    end)
    local report = program.eventually('the inner one has reported', function()
      local text = utils.readfile(file)
      return text and text:find('}\n$') and cjson.decode(text)
    end)

    assert.equal(80, report.exit)
    assert.equal('outer', report.holds[1].lost)
  end)

  it('refuses a LATCHKEY_HELD that it did not write', function()
    for _, text in ipairs({ 'job', 'lock,job,me,30000,1', 'lock,job,me,30000,1,a',
      'lock,job,me,30000,1,a,b', 'lock,job,me,30000,1,a,-1', 'lock,job,me,30000,1,a,0,c',
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
