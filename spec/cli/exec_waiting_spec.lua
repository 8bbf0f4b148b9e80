-- SPDX-License-Identifier: Apache-2.0
-- What exec says while it waits: who has the lock, since when it has been seen, and whether its
-- lease is renewed; in lines of their own, as JSON, or in one line of a terminal.
local cjson = require('cjson')
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')
local session = require('cli.session')

local FOREIGN = '8743c9c0-0795-4907-87fd-6c719a6b4586:42'
local CHANNEL = 'redisson_lock__channel:{job}'

describe('latchkey exec that waits', function()
  local server, host

  setup(function()
    local pipe = assert(io.popen('uname -n'))
    host = pipe:read('*l')
    pipe:close()
  end)

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function start(options, command)
    return program.start(program.exec(server, options, command or { 'true' }))
  end

  local function said(process)
    return utils.readfile(process.err_file) or ''
  end

  local function tells(process, text)
    program.eventually('it tells of ' .. text, function()
      return said(process):find(text, 1, true)
    end)
  end

  local function hold(options)
    local holder = start(options, { 'sleep', '60' })
    program.eventually('it is held', function()
      return server:command('CLIENT', 'LIST'):find('sleep@', 1, true)
        and server:command('DBSIZE') ~= '0'
    end)
    return holder
  end

  -- How often the server was asked so.
  local function calls_of(command)
    local stats = server:command('INFO', 'commandstats')
    return tonumber(stats:match('cmdstat_' .. command .. ':calls=(%d+)') or 0)
  end

  local function hold_foreign()
    server:command('HSET', 'job', FOREIGN, '1')
    server:command('PEXPIRE', 'job', '60000')
  end

  -- Who waits looks again some seconds later, as a release was told of.
  local function renew_foreign()
    server:command('PEXPIRE', 'job', '90000')
    server:command('PUBLISH', CHANNEL, '0')
  end

  it('writes nothing that a terminal obeys of a name: no orders, and nothing that turns the line',
    function()
      local name = 'a\27[2J\226\128\174b\226\128\168c\194\155d\226\129\166e\216\156'
      server:command('SET', name, 'another', 'PX', '60000')
      local process = start({ '--kind', 'mutex', '--wait', '1h', name })
      tells(process, 'waiting for "a?[2J???b???c??d???e??": ')
      process:kill(signal.SIGTERM)
      local waited = process:wait().err

      local busy = program.run(program.exec(server, { '--kind', 'mutex', '--wait', '0', name },
        { 'true' })).err

      assert.truthy(busy:find('"a?[2J???b???c??d???e??" is held', 1, true), busy)
      assert.falsy((waited .. busy):find('[%z\1-\9\11-\31\127-\255]'))
    end)

  for holding, waiting in pairs({ lock = 'lock', fenced = 'fenced', mutex = 'mutex', fair = 'fair',
    read = 'write', write = 'read' }) do
    it(('names who has the lock: %s behind %s'):format(waiting, holding), function()
      hold({ '--kind', holding, 'job' })

      local err = start({ '--kind', waiting, '--wait', '4s', 'job' }):wait().err

      assert.truthy(err:find('waiting for "job": held by ' .. host .. ' pid %d+ %(sleep@job%), '
        .. 'lease ends in 2%d s'), err)
    end)
  end

  it('says that permits are taken, whose holders have no names', function()
    hold({ '--kind', 'permit:1', 'pool' })

    local err = start({ '--kind', 'permit:1', '--wait', '4s', 'pool' }):wait().err

    assert.truthy(err:find('waiting for "pool": the permit is taken\n', 1, true), err)
  end)

  it('says nothing within the first second, and nothing at all with --quiet', function()
    hold({ 'job' })

    local short = start({ '--wait', '300ms', 'job' }):wait()
    local quiet = start({ '--wait', '1800ms', '-q', 'job' }):wait()

    assert.falsy(short.err:find('waiting', 1, true), short.err)
    assert.equal('', quiet.err)
    assert.equal(75, quiet.code)
  end)

  it('looks once when it begins to wait, and not again within ten seconds', function()
    hold({ 'job' })
    local listed, counted = calls_of('client|list'), calls_of('pubsub|numsub')

    start({ '--wait', '9500ms', 'job' }):wait()

    assert.equal(listed + 1, calls_of('client|list'))
    assert.equal(counted + 1, calls_of('pubsub|numsub'))
  end)

  it('tells when another has it', function()
    server:command('HSET', 'job', FOREIGN, '1')
    local process = start({ '--wait', '60s', 'job' })
    tells(process, 'held by ' .. FOREIGN .. ' (not a client of latchkey\'s), without a lease\n')

    -- Who takes a lock is told of by the message of the release before. It is free at no moment, or
    -- the one that waits might have it.
    local gone = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:7'
    server:command('EVAL', [[redis.call('DEL', KEYS[1])
      redis.call('HSET', KEYS[1], ARGV[1], '1')
      redis.call('PEXPIRE', KEYS[1], '60000')]], '1', 'job', gone)
    server:command('PUBLISH', CHANNEL, '0')
    tells(process, 'held by ' .. gone .. ' (its client is not connected)')
    process:kill(signal.SIGTERM)
  end)

  it('tells one that may not list connections whose name the lock is under', function()
    hold({ 'job' })
    local rule = program.run({ 'acl', 'app', '--family', 'lock', '--names', 'job' }).out
    local words = {}
    for word in rule:match('ACL SETUSER [^\n]*'):gmatch('%S+') do
      words[#words + 1] = word
    end
    words[#words + 1] = '>secret'
    server:command(unpack(words))
    local url = server.url:gsub('^unix://', 'unix://app:secret@')

    local err = program.run({ 'exec', '--url', url, '--wait', '4s', 'job', '--', 'true' }).err

    assert.truthy(err:find('held by lk%-%S+ %(whose that is, this user may not read%), lease'), err)
  end)

  it('reads no list of connections where more than sixteen wait', function()
    hold({ 'job' })
    for _ = 1, 17 do
      start({ '--wait', '60s', '-q', 'job' })
    end
    program.eventually('they wait', function()
      return server:waiters('job') == 17
    end)
    local listed = calls_of('client|list')

    local err = start({ '--wait', '3s', 'job' }):wait().err

    assert.truthy(err:find('(latchkey inspect says whose that is)', 1, true), err)
    assert.truthy(err:find('; 18 wait\n', 1, true), err)
    assert.equal(listed, calls_of('client|list'))
  end)

  it('tells it as JSON when it is to', function()
    hold({ 'job' })

    local err = start({ '--json', '--wait', '4s', 'job' }):wait().err
    local waiting = cjson.decode((err:match('^[^\n]+'))).waiting

    assert.equal('LK_BUSY', waiting.status)
    assert.equal(host, waiting.holder.host)
    assert.equal('sleep@job', waiting.holder.label)
    assert.equal(1, waiting.holder.holders)
    assert.is_true(waiting.holder.lease_left_ms > 20000)
    assert.is_false(waiting.holder.renewed)
  end)

  -- It is told again when the reason is another one: the server is full, and is not any more.
  it('tells as JSON that the lease is renewed', function()
    hold_foreign()
    local process = start({ '--json', '--wait', '60s', 'job' })
    tells(process, '"renewed":false')
    local looks = calls_of('pubsub|numsub')

    renew_foreign()
    program.eventually('it has looked again', function()
      return calls_of('pubsub|numsub') > looks
    end)
    server:command('CONFIG', 'SET', 'maxmemory', '1')
    server:command('PUBLISH', CHANNEL, '0')
    tells(process, '"LK_OOM"')
    server:command('CONFIG', 'SET', 'maxmemory', '0')

    tells(process, '"renewed":true')
    process:kill(signal.SIGTERM)
  end)

  it('tells as JSON what is left of the lease of a permit', function()
    hold({ '--kind', 'permit:1', 'pool' })

    local err = start({ '--json', '--kind', 'permit:1', '--wait', '4s', 'pool' }):wait().err
    local waiting = cjson.decode((err:match('^[^\n]+'))).waiting

    assert.equal(1, waiting.holder.holders)
    assert.is_true(waiting.holder.lease_left_ms > 20000, waiting.holder.lease_left_ms)
  end)

  it('ends at once by a signal while a server does not say who has the lock', function()
    hold({ 'job' })
    local process = start({ '--wait', '60s', 'job' })
    program.eventually('it waits', function()
      return server:waiters('job') == 1
    end)
    server.process:kill(signal.SIGSTOP)
    utils.execute('sleep 1.3')
    local before = program.now_ms()
    process:kill(signal.SIGTERM)
    process:wait()
    local took_ms = program.now_ms() - before
    server.process:kill(signal.SIGCONT)

    assert.is_true(took_ms < 3000, took_ms)
  end)

  describe('on a terminal', function()
    local screen

    after_each(function()
      screen:close()
    end)

    it('writes one line again and again, and takes it away', function()
      local holder = hold({ 'job' })

      screen = session.start({ 'exec', '--url', server.url, 'job', '--', 'echo', 'ran' },
        { columns = 100 })
      screen:shows('^waiting for "job": held by %S+ pid %d+ %(sleep@job%), lease ends in 2%d s\n')
      screen:shows('^waiting for "job": held by %S+ pid %d+ %(sleep@job%) for [23] s or more')
      holder:kill(signal.SIGTERM)
      local code = screen:wait().code

      assert.equal(0, code)
      assert.equal('ran', (screen:text():gsub('%s+$', '')))
    end)

    it('says in it that the lease is renewed', function()
      hold_foreign()
      screen = session.start({ 'exec', '--url', server.url, '--wait', '60s', 'job', '--', 'true' },
        { columns = 150 })
      screen:shows('^waiting for "job": held by [^\n]*, lease ends in 5%d s\n')

      renew_foreign()

      screen:shows('^waiting for "job": held by [^\n]* s or more, lease renewed\n')
    end)

    it('goes on with its line after ^S and ^Q, and takes it away', function()
      local holder = hold({ 'job' })
      screen = session.start({ 'exec', '--url', server.url, 'job', '--', 'echo', 'ran' },
        { columns = 100 })
      screen:shows('^waiting for "job"')

      screen:press('\19')
      utils.execute('sleep 2.3')
      screen:press('\17')
      local before = screen:text()
      program.eventually('the line goes on', function()
        return screen:text() ~= before
      end, 10)
      holder:kill(signal.SIGTERM)
      screen:wait()

      assert.equal('ran', (screen:text():gsub('%s+$', '')))
    end)

    it('says after ^Q what it could not say before, though nothing else is to be said', function()
      local gate = program.gate()
      screen = session.start(program.exec(server, { '--on-lost', 'warn', '--lease', '1s', 'job' },
        gate.command), { columns = 100 })
      gate.started()

      screen:press('\19')
      server:command('DEL', 'job')
      utils.execute('sleep 1.5')
      screen:press('\17')

      local good, message = pcall(program.eventually, 'it says so', function()
        return screen:text():find('lost "job"', 1, true)
      end, 10)
      gate.open()
      screen:wait()
      assert.is_true(good, message)
    end)

    it('cuts the line to the width of the screen', function()
      hold({ 'job' })

      screen = session.start({ 'exec', '--url', server.url, '--wait', '3s', 'job', '--', 'true' },
        { columns = 30 })
      local text = screen:shows('waiting for "job"')
      screen:wait()

      assert.equal(29, #text:match('^[^\n]*'), text)
      assert.equal('~', text:match('^[^\n]*'):sub(-1))
    end)

    it('says also there what is wrong with a server', function()
      server:command('CONFIG', 'SET', 'maxmemory', '1')

      screen = session.start({ 'exec', '--url', server.url, 'job', '--', 'echo', 'ran' },
        { columns = 100 })
      screen:shows('^waiting for "job": [^\n]*maxmemory')
      server:command('CONFIG', 'SET', 'maxmemory', '0')
      screen:wait()

      assert.equal('ran', (screen:text():gsub('%s+$', '')))
    end)

    it('writes lines of their own where the terminal can do no more', function()
      hold({ 'job' })

      screen = session.start({ 'exec', '--url', server.url, '--wait', '3s', 'job', '--', 'true' },
        { columns = 120, env = { TERM = 'dumb' } })
      screen:wait()

      assert.truthy(screen:text():find('^latchkey exec: waiting for "job": held by '))
      assert.equal(1, select(2, screen:text():gsub('waiting for', '')))
    end)
  end)
end)
