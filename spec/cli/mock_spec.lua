-- SPDX-License-Identifier: Apache-2.0
local signal = require('posix.signal')
local socket = require('posix.sys.socket')
local stat = require('posix.sys.stat')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')
local session = require('cli.session')

-- The distribution's own, for which its packages are.
local PYTHON = '/usr/bin/python3'

-- latchkey mock on a socket of its own; its process, and how to ask it something.
local function start(...)
  local path = program.folder() .. '/mock'
  local mock = program.start({ 'mock', '--url', 'unix://' .. path, ... })
  program.eventually('the mock says where it is', function()
    return utils.readfile(mock.out_file) ~= ''
  end)
  mock.path, mock.url = path, 'unix://' .. path
  function mock.ask(...)
    return (program.start_any('redis-cli', { '-s', path, ... }):wait().out:gsub('\n+$', ''))
  end
  return mock
end

-- Says which signals come, up to a SIGTERM.
local SAYS_SIGNALS = [[
package.path = arg[1] .. '/tools/?.lua;' .. package.path
local signals = require('latchkey.cli.signals').open('SIGINT', 'SIGTERM')
print('ready')
repeat
  require('posix.poll').rpoll(signals.fd, -1)
  local number = signals:take()
  print('signal ' .. number)
until number == 15]]

local function has_redis_py()
  return program.start_any(PYTHON, { '-c', 'import redis' }):wait().code == 0
end

describe('latchkey mock', function()
  after_each(program.clean)

  it('says what it is, and lists what it can be asked', function()
    local mock = start()

    assert.equal('OK', mock.ask('SET', 'k', 'v'))
    assert.equal('v', mock.ask('GET', 'k'))
    assert.truthy(mock.ask('INFO', 'server'):find('latchkey_mock:1', 1, true))
    assert.truthy(mock.ask('HELLO', '3'):find('latchkey-mock', 1, true))
    assert.truthy(mock.ask('MOCK', 'HELP'):find('MOCK ADVANCE', 1, true))
  end)

  it('ends where it could tell nobody its address', function()
    local result = program.start_any('sh', { '-c', program.path .. ' mock >/dev/full' }):wait()

    assert.equal(74, result.code)
    assert.truthy(result.err:find('the result could not be written: ', 1, true), result.err)
  end)

  it('finds a free port, and says which in one document', function()
    local mock = program.start({ 'mock', '--json' })
    local text = program.eventually('the mock says where it is', function()
      local out = utils.readfile(mock.out_file)
      return out:find('}\n$') and out
    end)

    local document = program.decode(text)
    assert.equal('latchkey/mock/1', document.schema)
    assert.equal(mock.pid, document.process)
    assert.equal('PONG\n', program.start_any('redis-cli', { '-u', document.urls[1], 'PING' })
      :wait().out)
  end)

  it('ends with a signal, and leaves no socket', function()
    for _, number in ipairs({ signal.SIGTERM, signal.SIGINT }) do
      local mock = start()
      assert.equal('PONG', mock.ask('PING'))
      mock:kill(number)

      assert.equal(0, mock:wait().code)
      assert.is_nil(stat.stat(mock.path))
    end
  end)

  it('takes the place of one that was killed, and of no other', function()
    local mock = start()
    local second = program.run({ 'mock', '--url', mock.url })
    mock:kill(signal.SIGKILL)
    mock:wait()
    local third = program.start({ 'mock', '--url', mock.url })
    program.eventually('the third answers', function()
      return mock.ask('PING') == 'PONG'
    end)

    assert.equal(69, second.code)
    assert.truthy(second.err:find('another server answers there', 1, true))
    third:kill(signal.SIGTERM)
    assert.equal(0, third:wait().code)
  end)

  it('is its user\'s alone', function()
    local mock = start()

    local mode = stat.stat(mock.path).st_mode
    assert.equal(0, mode % 64)
  end)

  it('listens nowhere but on this machine', function()
    for _, url in ipairs({ 'redis://0.0.0.0:0', 'redis://example.org', 'redis://192.168.1.1:6379',
      'rediss://127.0.0.1', 'redis://127.0.0.1:99999', 'redis://127.0.0.1/3', 'local:', 'unix:x',
      'redis://user:word@127.0.0.1' }) do
      local result = program.run({ 'mock', '--url', url })

      assert.equal(64, result.code, url)
      assert.equal('', result.out)
    end
    local result = program.run({ 'mock', '--url', 'redis://0.0.0.0:0' })
    assert.truthy(result.err:find('127.0.0.1', 1, true))
  end)

  it('refuses what would overwrite something', function()
    local file = program.folder() .. '/file'
    assert(utils.writefile(file, 'kept'))

    local result = program.run({ 'mock', '--url', 'unix://' .. file })

    assert.equal(69, result.code)
    assert.truthy(result.err:find('is no socket', 1, true))
    assert.equal('kept', utils.readfile(file))
  end)

  it('leaves a socket of another kind that somebody listens on', function()
    local file = program.folder() .. '/datagrams'
    local fd = assert(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM, 0))
    assert(socket.bind(fd, { family = socket.AF_UNIX, path = file }))

    local result = program.run({ 'mock', '--url', 'unix://' .. file })
    unistd.close(fd)

    assert.equal(69, result.code)
    assert.truthy(result.err:find('whether another server uses it is not known', 1, true))
    assert.truthy(stat.stat(file))
  end)

  it('asks for the password of its URL', function()
    local result = program.run({ 'mock', '--url', 'redis://:secret@127.0.0.1:0', '--', 'sh', '-c',
      'redis-cli -u "$LATCHKEY_URL" PING' })
    local plain = program.run({ 'mock', '--url', 'redis://:secret@127.0.0.1:0', '--', 'sh', '-c',
      'redis-cli -p "${LATCHKEY_URL##*:}" PING' })

    assert.truthy(result.out:find('^PONG\n'), result.out)
    assert.truthy(plain.out:find('NOAUTH', 1, true), plain.out)
  end)

  it('repeats no password of a URL that it refuses', function()
    for _, url in ipairs({ 'redis://h?password=secret', 'redis://127.0.0.1:0?password=secret',
      'redis://127.0.0.1?password=secret', 'redis://default:secret', 'redis://:secret',
      'redis://127.0.0.1/0?password=secret', 'redis://app:secret@127.0.0.1',
      'redis://default:secret@elsewhere', 'unix:///tmp/s?password=secret',
      'rediss://:secret@127.0.0.1' }) do
      for _, form in ipairs({ '--quiet', '--json' }) do
        local result = program.run({ 'mock', form, '--url', url })

        assert.equal(64, result.code, url)
        assert.is_nil((result.out .. result.err):find('secret', 1, true), result.err)
      end
    end
  end)

  it('leaves no password to its command that is another server\'s', function()
    local result = program.run({ 'mock', '--', program.path, 'eval', 'lock/inspect', 'job', ',' },
      { env = { LATCHKEY_PASSWORD = 'secret' } })

    assert.equal(0, result.code, result.err)
  end)

  describe('with a command', function()
    it('runs it with its URL, and ends with its exit code', function()
      local result = program.run({ 'mock', '--', 'sh', '-c', 'redis-cli -u "$LATCHKEY_URL" '
        .. 'INCRBY k 41; exit 7' })

      assert.equal('41\n', result.out)
      assert.equal(7, result.code)
      assert.equal(127, program.run({ 'mock', '--', '/no/such/program' }).code)
    end)

    it('hands it all of its words, however many', function()
      local words = { 'mock', '--', 'sh', '-c', 'echo $#', 'sh' }
      for i = 1, 9000 do
        words[#words + 1] = tostring(i)
      end

      assert.equal('9000\n', program.run(words).out)
    end)

    it('tells one that cannot be run from one that is not there', function()
      local file = program.folder() .. '/not a program'
      assert(utils.writefile(file, 'text'))

      local result = program.run({ 'mock', '--', file })

      assert.equal(126, result.code)
      assert.truthy(result.err:find('Permission denied', 1, true), result.err)
    end)

    it('hands signals on to it', function()
      local gate = program.gate('trap "exit 9" TERM')
      local result = program.start({ 'mock', '--', unpack(gate.command) })
      gate.started()
      result:kill(signal.SIGTERM)

      assert.equal(9, result:wait().code)
    end)

    it('is told of its end also where its parent wanted to hear of no child', function()
      local file = program.folder() .. '/ignores.lua'
      assert(utils.writefile(file, "local signal = require('posix.signal')\n"
        .. 'signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n'
        .. "require('posix.unistd').execp(arg[1], { unpack(arg, 2) })\n"))

      local result = program.start_any('luajit', { file, program.path, 'mock', '--', 'sh', '-c',
        'exit 3' }):wait()

      assert.equal(3, result.code)
    end)

    it('leaves a Ctrl-C to the terminal, which tells it itself', function()
      local file = program.folder() .. '/says.lua'
      assert(utils.writefile(file, SAYS_SIGNALS))
      local told = session.start({ 'mock', '--', 'luajit', file, program.root })
      told:shows('ready')
      told:press('\3')
      told:shows('signal 2')
      told.process:kill(signal.SIGTERM)

      local text = told:shows('signal 15')
      assert.equal(0, told.process:wait().code)
      local _, count = text:gsub('signal 2', '')
      assert.equal(1, count, text)
    end)
  end)

  it('has no more clients than descriptors for them, and tells the next one', function()
    local path = program.folder() .. '/mock'
    local mock = program.start_any('sh', { '-c', 'ulimit -n 40; exec "$@"', 'sh', program.path,
      'mock', '--url', 'unix://' .. path })
    program.eventually('the mock says where it is', function()
      return utils.readfile(mock.out_file) ~= ''
    end)
    local clients, answers = {}, {}
    for i = 1, 9 do
      clients[i] = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
      assert(socket.connect(clients[i], { family = socket.AF_UNIX, path = path }))
      if i < 9 then -- who is refused is so at once, and what it sends then ends it (SIGPIPE)
        socket.send(clients[i], 'PING\r\n')
      end
      answers[i] = socket.recv(clients[i], 100)
    end
    for _, fd in ipairs(clients) do
      unistd.close(fd)
    end

    assert.equal('+PONG\r\n', answers[8])
    assert.equal('-ERR max number of clients reached\r\n', answers[9])
  end)

  it('lets nobody wait for another', function()
    local mock = start()
    local waiting = program.start_any('redis-cli', { '-s', mock.path, 'WAIT', '1', '600000' })
    program.eventually('one waits', function()
      return mock.ask('INFO', 'clients'):find('blocked_clients:1', 1, true)
    end)

    assert.equal('PONG', mock.ask('PING'))
    mock.ask('MOCK', 'ADVANCE', '600000')
    assert.equal('0\n', waiting:wait().out)
  end)

  it('lets its time stand still', function()
    local mock = start('--time', 'manual')
    local before = mock.ask('TIME')

    mock.ask('SET', 'k', 'v', 'PX', '30')
    assert.equal(before, mock.ask('TIME'))
    assert.equal('30', mock.ask('PTTL', 'k'))
    mock.ask('MOCK', 'ADVANCE', '31')
    assert.equal('-2', mock.ask('PTTL', 'k'))
    assert.equal('OK', mock.ask('MOCK', 'TIME', 'REAL'))
    program.eventually('time flows', function()
      return mock.ask('TIME') ~= before
    end)
  end)

  describe('serves latchkey', function()
    it('its locks, and the loss of one', function()
      local mock = start()
      local gate = program.gate()
      local first = program.start(program.exec(mock, { 'job' }, gate.command))
      gate.started()
      local second = program.run(program.exec(mock, { '--wait', '0s', 'job' }, { 'true' }))
      local found = program.run({ 'ls', '--url', mock.url })
      mock.ask('MOCK', 'ADVANCE', '30001')
      local third = program.run(program.exec(mock, { '--wait', '0s', 'job' }, { 'true' }))
      gate.open()

      assert.equal(75, second.code)
      assert.truthy(found.out:find('job', 1, true))
      assert.equal(0, third.code, third.err)
      assert.equal(80, first:wait().code)
    end)

    it('who waits for a lock, by message', function()
      local mock = start('--time', 'manual')
      local gate = program.gate()
      local first = program.start(program.exec(mock, { 'job' }, gate.command))
      gate.started()
      local second = program.start(program.exec(mock, { '--wait', '1m', 'job' },
        { 'echo', 'mine' }))
      program.eventually('one waits', function()
        return mock.ask('PUBSUB', 'NUMSUB', 'redisson_lock__channel:{job}'):find('1$')
      end)
      gate.open()

      assert.equal(0, first:wait().code)
      assert.equal('mine\n', second:wait().out)
    end)

    local function acquire(url, owner)
      return program.run({ 'eval', '--url', url, 'lock/acquire', 'job', ',', '30000', owner, '1' })
    end

    it('whose reply gets lost', function()
      local mock = start()
      mock.ask('MOCK', 'LOSE', '1', 'lock/acquire')

      local result = acquire(mock.url, 'me:1')

      assert.equal('1) (integer) 1\n2) (integer) 1\n', result.out, result.err)
      local _, count = mock.ask('MOCK', 'CALLS', '3'):gsub('lock/acquire', '')
      assert.equal(2, count)
    end)

    it('that forgets its scripts, and refuses', function()
      local mock = start()
      acquire(mock.url, 'me:1')
      mock.ask('MOCK', 'FORGET')
      local again = acquire(mock.url, 'me:1')
      mock.ask('MOCK', 'REFUSE', 'READONLY')
      local refused = acquire(mock.url, 'me:1')

      assert.equal(0, again.code, again.err)
      assert.equal(69, refused.code)
      assert.truthy(refused.err:find('read only', 1, true), refused.err)
    end)

    it('its scripts as functions', function()
      local mock = start()

      assert.equal(0, acquire(mock.url .. '?functions=1', 'me:1').code)

      assert.truthy(mock.ask('MOCK', 'CALLS', '1'):find('^fcall\nlock/acquire\njob\n'))
    end)
  end)

  it('serves redis-py, its locks and its subscribers', function()
    if not has_redis_py() then
      return pending('redis-py is not installed')
    end
    local mock = start()
    local file = program.folder() .. '/client.py'
    assert(utils.writefile(file, [[
import sys
import redis

r = redis.Redis.from_url(sys.argv[1], decode_responses=True)
lock = r.lock("job", timeout=30)
assert lock.acquire(blocking=False)
assert not r.lock("job", timeout=30).acquire(blocking=False)
r.execute_command("MOCK", "ADVANCE", 30001)
other = r.lock("job", timeout=30)
assert other.acquire(blocking=False)
try:
    lock.release()
    assert False, "released what another holds"
except redis.exceptions.LockNotOwnedError:
    pass
other.release()

hears = r.pubsub()
hears.subscribe("news")
hears.psubscribe("n*")
kinds = []
for _ in range(2):
    kinds.append(hears.get_message(timeout=5)["type"])
assert r.publish("news", "x") == 2
for _ in range(2):
    kinds.append(hears.get_message(timeout=5)["type"])
assert kinds == ["subscribe", "psubscribe", "message", "pmessage"], kinds

with r.pipeline(transaction=True) as pipe:
    assert pipe.set("k", "v").get("k").execute() == [True, "v"]
with r.pipeline() as pipe:
    pipe.watch("k")
    r.set("k", "theirs")
    pipe.multi()
    pipe.set("k", "mine")
    try:
        pipe.execute()
        assert False, "a watched key was changed"
    except redis.exceptions.WatchError:
        pass
r.execute_command("MOCK", "REFUSE", "LOADING")
try:
    r.get("k")
    assert False, "it loads"
except redis.exceptions.BusyLoadingError:
    pass
r.execute_command("MOCK", "REFUSE", "NONE")
r.zadd("z", {"a": 1.5})
assert r.zrange("z", 0, -1, withscores=True) == [("a", 1.5)]
assert r.info()["latchkey_mock"] == 1
assert [c["name"] for c in r.client_list()].count("") >= 1
print("good")
]]))
    local result = program.start_any(PYTHON, { file, mock.url }):wait()

    assert.equal('good\n', result.out, result.err)
  end)

  it('answers many clients and long pipelines', function()
    local result = program.run({ 'mock', '--', 'sh', '-c',
      'redis-benchmark -p "${LATCHKEY_URL##*:}" -q -n 5000 -c 200 -P 16 -t set,get,lpush' })

    assert.equal(0, result.code, result.err)
    for _, name in ipairs({ 'SET', 'GET', 'LPUSH' }) do
      assert.truthy(result.out:find(name .. ': [%d.]+ requests per second'), result.out)
    end
  end)
end)
