-- SPDX-License-Identifier: Apache-2.0
local program = require('cli.program')

describe('latchkey exec --kind read and write', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function words(options, command)
    return program.exec(server, options, command)
  end

  local function run(options, command)
    return program.run(words(options, command))
  end

  local function try(kind)
    return run({ '--kind', kind, '--wait', '0ms', 'job' }, { 'true' }).code
  end

  -- An exec that holds `job` until its gate is opened.
  local function hold(kind)
    local gate = program.gate()
    local process = program.start(words({ '--kind', kind, 'job' }, gate.command))
    gate.started()
    return function()
      gate.open()
      assert.equal(0, process:wait().code)
    end
  end

  local function nested(outer, inner)
    return run({ '--kind', outer, 'job' },
      { program.path, unpack(words({ '--kind', inner, 'job' }, { 'echo', 'ran' })) })
  end

  it('runs those that read beside each other', function()
    local first = hold('read')
    local second = hold('read')

    assert.equal('3', server:command('HLEN', 'job'))
    assert.equal(75, try('write'))

    first()
    assert.equal(75, try('write'))
    second()
    assert.is_true(server:is_free('job'))
  end)

  it('runs one that writes alone', function()
    local finish = hold('write')

    assert.equal(75, try('write'))
    assert.equal(75, try('read'))

    finish()
    assert.equal(0, try('read'))
    assert.is_true(server:is_free('job'))
  end)

  it('starts one that waits to write when the last that reads has ended', function()
    local finish = hold('read')
    local writer = program.start(words({ '--kind', 'write', 'job' }, { 'echo', 'wrote' }))
    program.eventually('it listens', function()
      return server:command('PUBSUB', 'NUMSUB', 'redisson_rwlock:{job}'):find('1$') ~= nil
    end)

    finish()

    assert.equal('wrote\n', writer:wait().out)
  end)

  it('runs inside the exec around it that reads or writes', function()
    for _, kinds in ipairs({ { 'read', 'read' }, { 'write', 'write' }, { 'write', 'read' } }) do
      local result = nested(kinds[1], kinds[2])

      assert.equal('ran\n', result.out)
      assert.equal(0, result.code)
      assert.is_true(server:is_free('job'))
    end
  end)

  it('renews the hold of one that writes around one that reads', function()
    local inner = words({ '--kind', 'read', 'job' }, { 'sh', '-c', 'sleep 4; echo ran' })

    local result = run({ '--kind', 'write', '--lease', '3s', 'job' },
      { program.path, unpack(inner) })

    assert.equal('ran\n', result.out)
    assert.equal(0, result.code)
  end)

  it('refuses to write inside an exec that reads, and never waits for it', function()
    local result = nested('read', 'write')

    assert.equal(64, result.code)
    assert.truthy(result.err:find('with --kind read', 1, true))
    assert.is_true(server:is_free('job'))
  end)
end)
