-- SPDX-License-Identifier: Apache-2.0
-- Trouble that may pass: a server that is away, still starts, refuses writes or is full. A wait
-- outlasts it, from the first connection on, and whoever looks is told why nothing happens.
local cjson = require('cjson')
local signal = require('posix.signal')
local socket = require('posix.sys.socket')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey exec in trouble that may pass', function()
  after_each(program.clean)

  local function start(server, options, command)
    return program.start(program.exec(server, options, command or { 'echo', 'ran' }))
  end

  local function tells(process, text)
    program.eventually('it tells of ' .. text, function()
      return (utils.readfile(process.err_file) or ''):find(text, 1, true)
    end)
  end

  local function assert_runs(process)
    local result = process:wait()
    assert.equal(0, result.code, result.err)
    assert.equal('ran\n', result.out)
    return result
  end

  -- How a server is brought into it, what says so, and how it gets out of it.
  local troubles = {
    { 'read-only', { 'REPLICAOF', '127.0.0.1', '1' }, 'read only replica',
      { 'REPLICAOF', 'NO', 'ONE' } },
    { 'full', { 'CONFIG', 'SET', 'maxmemory', '1' }, 'maxmemory',
      { 'CONFIG', 'SET', 'maxmemory', '0' } },
    { 'without its replicas', { 'CONFIG', 'SET', 'min-replicas-to-write', '1' },
      'Not enough good replicas', { 'CONFIG', 'SET', 'min-replicas-to-write', '0' } },
  }

  for _, trouble in ipairs(troubles) do
    local name, begin, said, stop = unpack(trouble)

    it('waits for a server that is ' .. name .. ', and says so', function()
      local server = program.server()
      server:command(unpack(begin))
      local process = start(server, { 'job' })

      tells(process, 'waiting for "job": ')
      tells(process, said)

      assert.is_false(process:poll())
      server:command(unpack(stop))
      assert_runs(process)
    end)

    it('ends at once without a wait when the server is ' .. name, function()
      local server = program.server()
      server:command(unpack(begin))

      local result = start(server, { '--wait', '0ms', 'job' }):wait()

      assert.equal(69, result.code)
      assert.truthy(result.err:find(said, 1, true), result.err)
      assert.falsy(result.err:find('waiting', 1, true))
    end)
  end

  it('names a server that takes connections and answers nothing, however short the wait', function()
    local folder = program.folder()
    local at = folder .. '/silent'
    local listener = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
    assert(socket.bind(listener, { family = socket.AF_UNIX, path = at }))
    assert(socket.listen(listener, 8))

    local result = program.run({ 'exec', '--url', 'unix://' .. at, '--wait', '100ms', 'job', '--',
      'echo', 'ran' })

    unistd.close(listener)
    assert.equal(69, result.code, result.err)
    assert.equal('', result.out)
    assert.truthy(result.err:find('unix://' .. at, 1, true), result.err)
    assert.truthy(result.err:find('has not answered the hand-shake', 1, true), result.err)
  end)

  it('waits for a server that is not there yet', function()
    local server = program.server()
    server.process:kill(signal.SIGKILL)
    server.process:wait()
    local processes = {}
    for i, options in ipairs({ { 'job' }, { '--wait', '1h', 'other' }, { 'third' },
      { '--kind', 'permit:2', 'pool' }, { '--kind', 'fair', 'queue' } }) do
      processes[i] = start(server, options)
    end

    for _, process in ipairs(processes) do
      tells(process, 'no connection to ' .. server.url)
    end

    server:start()
    for _, process in ipairs(processes) do
      assert_runs(process)
    end
  end)

  it('waits for a server that says nothing, and tells before its patience with it ends', function()
    local server = program.server()
    server.process:kill(signal.SIGSTOP)
    local process = start(server, { 'job' })

    tells(process, 'waiting for "job": ')

    server.process:kill(signal.SIGCONT)
    assert_runs(process)
  end)

  it('waits for a server that loads its data', function()
    local server = program.server('--key-load-delay', '2000',
      '--loading-process-events-interval-bytes', '1024')
    server:command('EVAL', 'for i = 1, 3000 do redis.call("SET", i, ("x"):rep(30) .. i) end', '0')
    server:command('SAVE')
    server.process:kill(signal.SIGKILL)
    server.process:wait()
    server.process = program.start_any('redis-server', server.options)
    program.eventually('it loads', function()
      return server:command('PING'):find('LOADING', 1, true)
    end)
    local process = start(server, { 'job' })

    tells(process, 'loading the dataset')

    server:command('CONFIG', 'SET', 'key-load-delay', '0')
    assert_runs(process)
  end)

  it('ends with 69 when the trouble outlasts the wait, and says what it was', function()
    local before = program.now_ms()

    local result = program.run({ 'exec', '--url', 'unix:///nowhere/redis.sock', '--wait', '1500ms',
      'job', '--', 'echo', 'ran' })

    assert.equal(69, result.code)
    assert.equal('', result.out)
    assert.is_true(program.now_ms() - before >= 1500)
    assert.truthy(result.err:find('nowhere', 1, true))
  end)

  it('tells whenever the reason changes, and when it is another owner in the end', function()
    local server = program.server()
    server:command('HSET', 'job', 'somebody', '1')
    server:command('CONFIG', 'SET', 'maxmemory', '1')
    local process = start(server, { 'job' })

    tells(process, 'maxmemory')
    server:command('CONFIG', 'SET', 'maxmemory', '0')
    server:command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    tells(process, 'Not enough good replicas')
    server:command('CONFIG', 'SET', 'min-replicas-to-write', '0')
    tells(process, 'held by somebody')

    server:command('DEL', 'job')
    server:command('PUBLISH', 'redisson_lock__channel:{job}', '0')
    local result = assert_runs(process)
    assert.equal(1, select(2, result.err:gsub('OOM', '')), result.err)
  end)

  it('says nothing of it with --quiet', function()
    local server = program.server()
    server:command('CONFIG', 'SET', 'maxmemory', '1')

    local result = start(server, { '--wait', '2500ms', '-q', 'job' }):wait()

    assert.falsy(result.err:find('waiting', 1, true), result.err)
    assert.truthy(result.err:find('maxmemory', 1, true), result.err)
    assert.equal(69, result.code)
  end)

  it('tells it as JSON when it is to', function()
    local server = program.server()
    server:command('CONFIG', 'SET', 'maxmemory', '1')
    local process = start(server, { '--json', 'job' })

    tells(process, '\n')
    local line = cjson.decode((utils.readfile(process.err_file):match('^[^\n]+')))

    assert.equal('latchkey/exec/1', line.schema)
    assert.equal('LK_OOM', line.waiting.status)
    assert.equal('job', line.waiting.name)
    server:command('CONFIG', 'SET', 'maxmemory', '0')
    assert_runs(process)
  end)

  it('ends by a signal while it waits', function()
    local server = program.server()
    server:command('CONFIG', 'SET', 'maxmemory', '1')
    local processes = {}
    for _, number in ipairs({ signal.SIGTERM, signal.SIGINT }) do
      for _, options in ipairs({ { 'job' }, { '--kind', 'permit:2', 'pool' } }) do
        processes[start(server, options)] = number
      end
    end

    for process, number in pairs(processes) do
      tells(process, 'maxmemory')
      process:kill(number)
      local result = process:wait()

      assert.equal('', result.out)
      assert.equal(number, result.signal or result.code - 128)
    end
  end)

  it('waits for too many servers that are away, and names one', function()
    local servers = { program.server(), program.server(), program.server() }
    for i = 1, 2 do
      servers[i].process:kill(signal.SIGKILL)
      servers[i].process:wait()
    end
    local process = start({ url = ('%s %s %s'):format(servers[1].url, servers[2].url,
      servers[3].url) }, { 'job' })

    tells(process, 'no connection to ')

    servers[2]:start()
    assert_runs(process)
  end)

  it('waits inside another exec while its server is read-only', function()
    local server = program.server()
    local inner = program.exec(server, { 'job' }, { 'echo', 'ran' })
    local go = program.folder() .. '/go'
    local outer = start(server, { 'job' }, { 'sh', '-c',
      'until [ -e "$0" ]; do sleep 0.05; done; "$@"', go, program.path, unpack(inner) })
    program.eventually('the outer one holds it', function()
      return not server:is_free('job')
    end)
    server:command('REPLICAOF', '127.0.0.1', '1')
    assert(utils.writefile(go, ''))

    tells(outer, 'read only replica')

    server:command('REPLICAOF', 'NO', 'ONE')
    assert_runs(outer)
  end)
end)
