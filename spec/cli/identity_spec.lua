-- SPDX-License-Identifier: Apache-2.0
-- Whose a lock is: what the tools say of the clients behind owners' names.

local program = require('cli.program')
local session = require('cli.session')

local GONE = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:7'
local REDISSON = '8743c9c0-0795-4907-87fd-6c719a6b4586:42'

describe('the client behind an owner', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  -- A job that holds the lock; what CLIENT LIST says of it is in the tools' words.
  local function hold(name, ...)
    local job = program.start(program.exec(server, { name, ... }, { 'sleep', '60' }))
    program.eventually('the lock is held', function()
      return not server:is_free(name)
    end)
    return job.pid
  end

  local function json(command, ...)
    return program.decode(program.run({ command, '--url', server.url, '--json', ... }).out)
  end

  local function text_of(command, ...)
    return program.run({ command, '--url', server.url, ... }).out
  end

  local host

  setup(function()
    local pipe = assert(io.popen('uname -n'))
    host = pipe:read('*l')
    pipe:close()
  end)

  it('is named by host, process and label', function()
    local started = hold('job')

    local client = json('inspect', 'job').kinds[1].holders[1].client
    local listed = json('ls').locks[1].holders[1].client
    local shown = text_of('inspect', 'job')

    assert.equal(host, client.host)
    assert.equal('sleep@job', client.label)
    assert.equal(started, client.process) -- and not the keeper's
    assert.is_true(client.connected_s < 60 and client.connections >= 1)
    assert.same(client.process, listed.process)
    assert.truthy(shown:find(('  %s, process %d (sleep@job), connected from '):format(host,
      client.process), 1, true), shown)
    assert.truthy(text_of('ls'):find(('%s:%d (sleep@job)'):format(host, client.process), 1, true))
    assert.truthy(text_of('top', '--once'):find(('%s:%d (sleep@job)'):format(host, client.process),
      1, true))
  end)

  it('has the label that was given', function()
    hold('job', '--label', 'night shift')

    assert.equal('night_shift', json('inspect', 'job').kinds[1].holders[1].client.label)
  end)

  it('is asked about before a break, and named after it', function()
    hold('job')
    local process = json('inspect', 'job').kinds[1].holders[1].client.process

    local terminal = session.start({ 'break', '--url', server.url, 'job' })
    terminal:shows('Break it%?')
    local asked = terminal:text()
    terminal:press('y\r')
    terminal:shows('it was held by lk%-%S+ %(' .. host:gsub('%p', '%%%0') .. ':')

    assert.truthy(asked:find(('%s, process %d (sleep@job), connected from'):format(host, process),
      1, true), asked)
    terminal:close()
  end)

  it('is said to have gone when no connection has its name', function()
    server:command('HSET', 'job', GONE, '1')
    server:command('PEXPIRE', 'job', '30000')

    assert.is_nil(json('inspect', 'job').kinds[1].holders[1].client)
    assert.truthy(text_of('inspect', 'job'):find('no connection is its client\'s', 1, true))
    assert.truthy(text_of('ls'):find(GONE, 1, true))
  end)

  it('is not sought for an owner of Redisson\'s', function()
    server:command('HSET', 'job', REDISSON, '1')
    server:command('PEXPIRE', 'job', '30000')

    assert.truthy(text_of('inspect', 'job'):find('not a client of latchkey\'s', 1, true))
  end)

  it('is said to be hidden where CLIENT LIST is refused', function()
    hold('job')
    server:command('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-client|list')

    local result = program.run({ 'inspect', '--url', 'unix://app@' .. server.socket, 'job' },
      { env = { LATCHKEY_PASSWORD = 'secret' } })

    assert.equal(0, result.code)
    assert.truthy(result.out:find('the list of connections was refused', 1, true), result.out)
    assert.truthy(result.out:find('latchkey acl --operator', 1, true), result.out)
  end)

  it('is of one list for many locks', function()
    for i = 1, 20 do
      server:command('HSET', 'lock' .. i, GONE, '1')
    end
    server:command('CONFIG', 'RESETSTAT')

    json('ls')

    local calls = server:command('INFO', 'commandstats'):match('cmdstat_client|list:calls=(%d+)')
    assert.equal('1', calls)
  end)
end)
