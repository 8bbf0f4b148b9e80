-- SPDX-License-Identifier: Apache-2.0
local Front = require('latchkey.mock.front')
local Oracle = require('mock.oracle')
local Random = require('mock.front_random')
local World = require('latchkey.mock.world')
local frames = require('mock.frames')
local grammar = require('mock.front_grammar')
local helper = require('helper')

local FIRST_SEED = tonumber(os.getenv('LATCHKEY_SPEC_SEED')) or 1
local SEQUENCES = 40

local function new(options)
  options = options or {}
  options.world = World.new({ strict = false, time = 'frozen' })
  return Front.new(options)
end

-- What each connection is sent, as one text; "the end" where it is closed.
local function said(outputs)
  local all = {}
  for _, output in ipairs(outputs) do
    local list = frames.split(output.bytes)
    if output.close then
      list[#list + 1] = 'the end'
    end
    all[output.conn] = table.concat(list, ' ')
  end
  return all
end

-- Words to one connection; its own answer, and what others are sent.
local function ask(conn, ...)
  local all = said(conn:feed(grammar.encode({ ... })))
  return all[conn], all
end

local function script(name)
  local file = assert(io.open(('%s/%s.lua'):format(helper.scripts, name)))
  local source = file:read('*a')
  file:close()
  return source
end

describe('a front', function()
  local front, conn

  before_each(function()
    front = new()
    conn = front:connect()
  end)

  it('says what it is, in its greeting and in INFO', function()
    assert.matches('"server" "latchkey%-mock"', (ask(conn, 'HELLO')))
    assert.matches('\nlatchkey_mock:1', (ask(conn, 'INFO')))
  end)

  it('tells of calls of commands in INFO where that is asked for', function()
    local function has(...)
      return ask(conn, 'INFO', ...):find('# Commandstats', 1, true) ~= nil
    end

    assert.same({ false, false, true, true, true, false }, { has(), has('default'), has('all'),
      has('everything'), has('commandstats'), has('server') })
  end)

  it('counts its seconds and days by its own time', function()
    ask(conn, 'MOCK', 'ADVANCE', '86400000')
    local info = ask(conn, 'INFO', 'server')

    assert.equal('86400', info:match('uptime_in_seconds:(%d+)'))
    assert.equal('1', info:match('uptime_in_days:(%d+)'))
  end)

  it('knows the keys of a command', function()
    for words, keys in pairs({
      ['GET k'] = 'k', ['SET k v'] = 'k', ['DEL a b c'] = 'a b c', ['MSET a 1 b 2'] = 'a b',
      ['LMOVE a b LEFT RIGHT'] = 'a b', ['EVALSHA sha 2 a b v'] = 'a b', ['EVAL source 0 v'] = '',
      ['EVAL source 3 a'] = 'a', ['PUBLISH news text'] = '',
      ['SINTERCARD 2 a b LIMIT 1'] = 'a b', ['SINTERCARD 3 a'] = 'a', ['SINTERCARD x a'] = '',
    }) do
      local argv = {}
      for word in words:gmatch('%S+') do
        argv[#argv + 1] = word
      end

      assert.equal(keys, table.concat(Front.keys(front:find(argv), argv), ' '), words)
    end
  end)

  it('tells the keys of a command, and where they stand', function()
    for line, keys in pairs({ ['SET a'] = '-ERR Invalid number of arguments specified for command',
      ['SET a b'] = '*["a"]', ['EVAL x 0'] = '*[]', ['EVAL x 5 k'] = '*[]',
      ['EVAL x 1 k b'] = '*["k"]',
      ['PING a'] = '-ERR The command has no key arguments', ['NOSUCH a'] = '-ERR Invalid command '
        .. 'specified', ['ZINTERCARD 2 a b'] = '-MOCK the keys of ZINTERCARD are not modelled' }) do
      assert.equal(keys, said(conn:feed('COMMAND GETKEYS ' .. line .. '\r\n'))[conn])
    end
    local places = { SPUBLISH = ':1 :1 :1', SSUBSCRIBE = ':1 :-1 :1', SUNSUBSCRIBE = ':1 :-1 :1' }
    for name, place in pairs(places) do
      assert.truthy(ask(conn, 'COMMAND', 'INFO', name):find(place, 1, true), name)
    end
  end)

  it('lists commands of any kind, and none that it has not', function()
    local names, listed = {}, ask(conn, 'COMMAND')
    for name in listed:gmatch('%["([^"]+)" :%-?%d') do
      names[name] = true
    end

    assert.same({ true, true, true, true }, { names.get, names.subscribe, names.client,
      names.info })
    assert.is_nil(names.move)
    assert.is_nil(names.object)
  end)

  it('takes a line of a length up to 65,536 bytes', function()
    local line = '*' .. ('1'):rep(65535)

    assert.same({}, conn:feed(line))
    assert.matches('too big mbulk count string', conn:feed('1')[1].bytes)
    local other = front:connect()
    assert.equal('+PONG', said(other:feed('PING\r\n'))[other])
    assert.same({}, other:feed(line))
    assert.same({}, other:feed(''))
  end)

  it('has the settings at which clients look before they trust a server', function()
    assert.equal('*["appendfsync" "everysec" "appendonly" "no" "databases" "1" "hz" "10" '
      .. '"lua-time-limit" "5000" "maxclients" "10000" "maxmemory" "0" "maxmemory-policy" '
      .. '"noeviction" "min-replicas-to-write" "0" "notify-keyspace-events" "" '
      .. '"proto-max-bulk-len" "536870912" "replica-read-only" "yes" "save" "" "timeout" "0"]',
      (ask(conn, 'CONFIG', 'GET', '*')))
  end)

  it('has no replicas and no append-only file that a write could reach', function()
    assert.equal('*[:0 :0]', (ask(conn, 'WAITAOF', '0', '0', '0')))
    assert.equal(':0', (ask(conn, 'WAIT', '0', '0')))
  end)

  it('writes a double in the newer protocol, and a text in the older', function()
    conn:feed('ZADD z 1.5 a\r\n')

    assert.equal('$3\r\n1.5\r\n', conn:feed('ZSCORE z a\r\n')[1].bytes)
    conn:feed('HELLO 3\r\n')
    assert.equal(',1.5\r\n', conn:feed('ZSCORE z a\r\n')[1].bytes)
  end)

  it('writes sets, texts for people and pairs in the newer protocol, and arrays in the older',
    function()
      for _, line in ipairs({ 'SADD s 1 2', 'SADD t 2', 'HSET h f v g w' }) do
        conn:feed(line .. '\r\n')
      end
      local function all()
        local list = {}
        for _, line in ipairs({ 'SMEMBERS s', 'SUNION s t', 'SINTER s t', 'SDIFF s t', 'SPOP t 1',
          'SPOP t', 'HRANDFIELD h 5 WITHVALUES', 'HRANDFIELD h 1' }) do
          list[#list + 1] = said(conn:feed(line .. '\r\n'))[conn]
        end
        for _, line in ipairs({ 'INFO server', 'CLIENT LIST', 'CLIENT INFO' }) do
          list[#list + 1] = conn:feed(line .. '\r\n')[1].bytes:match('^[$=]')
        end
        return table.concat(list, ' ')
      end

      assert.equal('*["1" "2"] *["1" "2"] *["2"] *["1"] *["2"] $-1 *["f" "v" "g" "w"] *["f"] '
        .. '$ $ $', all())
      conn:feed('HELLO 3\r\nSADD t 2\r\n')
      assert.equal('~["1" "2"] ~["1" "2"] ~["2"] ~["1"] ~["2"] _ *[*["f" "v"] *["g" "w"]] *["f"] '
        .. '= = =', all())
      assert.matches('^=%d+\r\ntxt:# Server\r\n', conn:feed('INFO server\r\n')[1].bytes)
      conn:feed('MULTI\r\nSMEMBERS s\r\n')
      assert.equal('*[~["1" "2"]]', (ask(conn, 'EXEC')))
    end)

  it('reads commands in pieces of any size', function()
    local bytes = grammar.encode({ 'SET', 'k', ('x'):rep(300) }) .. 'GET k\r\n\r\n'
      .. grammar.encode({ 'STRLEN', 'k' })
    for size = 1, 40 do
      local fresh = new():connect()
      local got = {}
      for at = 1, #bytes, size do
        for _, output in ipairs(fresh:feed(bytes:sub(at, at + size - 1))) do
          got[#got + 1] = output.bytes
        end
      end

      assert.equal('+OK\r\n$300\r\n' .. ('x'):rep(300) .. '\r\n:300\r\n', table.concat(got))
    end
  end)

  it('takes an argument of 20 MB that comes in small pieces', function()
    local piece = ('x'):rep(16384)
    conn:feed(('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n'):format(#piece * 1280))
    for _ = 1, 1280 do
      assert.same({}, conn:feed(piece))
    end

    assert.same({ [conn] = '+OK' }, said(conn:feed('\r\n')))
    assert.equal(':20971520', (ask(conn, 'STRLEN', 'k')))
  end)

  it('tells subscribers, in the form that each of them speaks', function()
    local old, newer = front:connect(), front:connect()
    ask(old, 'SUBSCRIBE', 'news')
    ask(newer, 'HELLO', '3')
    ask(newer, 'PSUBSCRIBE', 'n*')

    local own, all = ask(conn, 'PUBLISH', 'news', 'x')

    assert.equal(':2', own)
    assert.equal('*["message" "news" "x"]', all[old])
    assert.equal('>["pmessage" "n*" "news" "x"]', all[newer])
  end)

  it('tells subscribers what a script publishes, and the script how many there are', function()
    local other = front:connect()
    ask(other, 'SSUBSCRIBE', 'news')

    local own, all = ask(conn, 'EVAL', "return redis.call('SPUBLISH', 'news', 'x')", '0')

    assert.equal(':1', own)
    assert.equal('*["smessage" "news" "x"]', all[other])
  end)

  it('forgets who has gone', function()
    local other = front:connect()
    ask(other, 'SUBSCRIBE', 'news')
    other:close()

    local own, all = ask(conn, 'PUBLISH', 'news', 'x')

    assert.equal(':0', own)
    assert.is_nil(all[other])
    assert.equal('*[]', (ask(conn, 'PUBSUB', 'CHANNELS')))
  end)

  it('forgets what who has gone has watched', function()
    local other = front:connect()
    ask(other, 'WATCH', 'k', 'j')
    other:close()

    assert.is_nil(front.watchers)
  end)

  it('says in its greeting that it is a replica, where it is one', function()
    ask(conn, 'MOCK', 'REFUSE', 'READONLY')

    assert.matches('"role" "replica"', (ask(conn, 'HELLO')))
  end)

  it('has everybody say the password, if there is one', function()
    local guarded = new({ password = 'secret', users = { app = 'word' } })
    local one, two = guarded:connect(), guarded:connect()

    assert.matches('^%-NOAUTH', (ask(one, 'GET', 'k')))
    assert.matches('^%-WRONGPASS', (ask(one, 'AUTH', 'wrong')))
    assert.matches('^%-NOAUTH', (ask(one, 'GET', 'k')))
    assert.equal('+OK', (ask(one, 'AUTH', 'secret')))
    assert.equal('$-1', (ask(one, 'GET', 'k')))
    assert.matches('"proto" :3', (ask(two, 'HELLO', '3', 'AUTH', 'app', 'word')))
    assert.same({ [two] = '+RESET' }, said(two:feed('RESET\r\n')))
    assert.matches('^%-NOAUTH', (ask(two, 'GET', 'k')))
    assert.same({ [two] = '-ERR Protocol error: unauthenticated bulk length the end' },
      said(two:feed('*1\r\n$16385\r\n')))
  end)

  it('lets who waits wait, and nobody else', function()
    local other = front:connect()

    assert.same({}, said(conn:feed('WAIT 1 100\r\nPING\r\n')))
    assert.equal('+PONG', (ask(other, 'PING')))
    assert.equal(front:now_ms() + 100, front:due_ms())
    front:advance(99)
    assert.same({}, front:tick())
    front:advance(1)
    assert.same({ [conn] = ':0 +PONG' }, said(front:tick()))
    assert.is_nil(front:due_ms())
  end)

  it('lists clients by what they are', function()
    ask(front:connect(), 'SUBSCRIBE', 'news')
    local counts = {}
    for i, kind in ipairs({ 'normal', 'pubsub', 'master', 'replica', 'slave', 'other' }) do
      local said_of = ask(conn, 'CLIENT', 'LIST', 'TYPE', kind)
      counts[i] = said_of:sub(1, 1) == '"' and select(2, said_of:gsub(' addr=', '')) or said_of
    end

    assert.same({ 1, 1, 0, 0, 0, "-ERR Unknown client type 'other'" }, counts)
  end)

  it('lets one client end the waiting of another, or the other itself', function()
    local other = front:connect()
    local id = (ask(conn, 'CLIENT', 'ID')):sub(2)
    conn:feed('WAIT 1 0\r\n')

    local own, all = ask(other, 'CLIENT', 'UNBLOCK', id)
    assert.equal(':1', own)
    assert.equal(':0', all[conn])
    own, all = ask(other, 'CLIENT', 'KILL', 'ID', id)
    assert.equal(':1', own)
    assert.equal('the end', all[conn])
    assert.same({}, conn:feed('PING\r\n'))
  end)

  it('undoes nothing of a transaction whose keys were left alone, and does none of the others',
    function()
      local other = front:connect()
      for _, disturbed in ipairs({ false, true }) do
        ask(conn, 'WATCH', 'k')
        if disturbed then
          ask(other, 'EVAL', "return redis.call('SET', KEYS[1], 'theirs')", '1', 'k')
        end
        ask(conn, 'MULTI')
        ask(conn, 'SET', 'k', 'mine')
        assert.equal(disturbed and '*-1' or '*[+OK]', (ask(conn, 'EXEC')))
      end
      assert.equal('"theirs"', (ask(conn, 'GET', 'k')))
    end)

  it('is not disturbed by commands that change nothing', function()
    local other = front:connect()
    for _, line in ipairs({ 'ZADD z 1 a', 'SETBIT b 7 1', 'SET k v' }) do
      other:feed(line .. '\r\n')
    end
    for _, line in ipairs({ 'ZADD z 1 a', 'ZADD z NX 2 a', 'ZADD z XX 2 b', 'ZINCRBY z 0 a',
      'ZPOPMIN z 0', 'ZPOPMAX z 0', 'GETEX k PERSIST', 'SETBIT b 7 1', 'SETBIT b 3 0' }) do
      ask(conn, 'WATCH', 'z', 'b', 'k')
      other:feed(line .. '\r\n')
      ask(conn, 'MULTI')
      assert.equal('*[]', (ask(conn, 'EXEC')), line)
    end
    for _, line in ipairs({ 'ZADD z CH 2 a', 'ZADD z 2 b', 'ZINCRBY z 1 a', 'ZPOPMIN z',
      'SETBIT b 7 0', 'SETBIT b 8 0', 'SETBIT new 0 0', 'GETEX k PX 1000', 'GETEX k PERSIST' }) do
      ask(conn, 'WATCH', 'z', 'b', 'k', 'new')
      other:feed(line .. '\r\n')
      ask(conn, 'MULTI')
      assert.equal('*-1', (ask(conn, 'EXEC')), line)
    end
  end)

  it('notices that a watched key has ended by its lease', function()
    ask(conn, 'SET', 'k', 'v', 'PX', '100')
    ask(conn, 'WATCH', 'k')
    front:advance(101)
    ask(conn, 'MULTI')
    ask(conn, 'PING')

    assert.equal('*-1', (ask(conn, 'EXEC')))
  end)

  it('answers no array to who asks for none of the entries of a stream', function()
    ask(conn, 'XADD', 'x', '1-1', 'f', 'v')
    assert.equal('*-1', (ask(conn, 'XRANGE', 'x', '-', '+', 'COUNT', '0')))
    assert.equal('*-1', (ask(conn, 'XREVRANGE', 'x', '+', '-', 'COUNT', '0')))
    assert.equal('*[]', (ask(conn, 'XRANGE', 'none', '-', '+', 'COUNT', '0')))
  end)

  it('says nothing to who wants no replies', function()
    assert.is_nil((ask(conn, 'CLIENT', 'REPLY', 'OFF')))
    assert.is_nil((ask(conn, 'PING')))
    assert.equal('*["subscribe" "news" :1]', (ask(conn, 'SUBSCRIBE', 'news')))
    ask(conn, 'UNSUBSCRIBE', 'news')
    assert.equal('+OK', (ask(conn, 'CLIENT', 'REPLY', 'ON')))
    assert.is_nil((ask(conn, 'CLIENT', 'REPLY', 'SKIP')))
    assert.is_nil((ask(conn, 'PING')))
    assert.equal('+PONG', (ask(conn, 'PING')))
  end)

  it('says nothing to who wants no replies and has waited', function()
    for _, word in ipairs({ 'SKIP', 'OFF' }) do
      assert.same({}, said(conn:feed('CLIENT REPLY ' .. word .. '\r\nWAIT 1 100\r\nPING\r\n')))
      front:advance(100)
      assert.equal(word == 'SKIP' and '+PONG' or nil, said(front:tick())[conn])
    end
  end)

  it('does the same again, byte for byte', function()
    local function play()
      local own = new()
      local conns, all = {}, {}
      for i, step in ipairs(Random.sequence(7)) do
        local at = conns[step.place]
        if not at or at.is_closed then
          at = own:connect()
          conns[step.place] = at
        end
        for _, output in ipairs(at:feed(step.bytes)) do
          all[#all + 1] = ('%d %d %s'):format(i, output.conn.id, output.bytes)
        end
      end
      return table.concat(all)
    end

    assert.equal(play(), play())
  end)

  it('is one of several in one process', function()
    local other = new():connect()

    ask(conn, 'SET', 'k', 'v')
    local sha = ask(conn, 'SCRIPT', 'LOAD', 'return 1'):sub(2, -2)

    assert.equal('$-1', (ask(other, 'GET', 'k')))
    assert.matches('^%-NOSCRIPT', (ask(other, 'EVALSHA', sha, '0')))
    assert.equal(':1', (ask(other, 'CLIENT', 'ID')))
  end)

  it('can be given commands and a gate', function()
    local own = new({
      commands = { CLUSTER = { arity = -2, serve = function(_, _, argv)
        return { 'asked', argv[2] }
      end } },
      gate = function(_, _, command, argv)
        local key = Front.keys(command, argv)[1]
        return key == 'elsewhere' and 'MOVED 7 127.0.0.1:7001' or nil
      end,
    }):connect()

    assert.equal('*["asked" "SLOTS"]', (ask(own, 'CLUSTER', 'SLOTS')))
    assert.equal('-MOVED 7 127.0.0.1:7001', (ask(own, 'GET', 'elsewhere')))
    assert.equal('-MOVED 7 127.0.0.1:7001', (ask(own, 'EVAL', 'return 1', '1', 'elsewhere')))
    assert.equal('$-1', (ask(own, 'GET', 'here')))
  end)
end)

describe('the faults of a front', function()
  local front, conn, other

  before_each(function()
    front = new()
    conn, other = front:connect(), front:connect()
  end)

  it('lose a reply to what was done', function()
    assert.equal('+OK', (ask(other, 'MOCK', 'LOSE', '1')))

    assert.equal('+PONG', (ask(conn, 'PING')))
    assert.equal('the end', (ask(conn, 'SET', 'k', 'v')))
    assert.equal('"v"', (ask(other, 'GET', 'k')))
  end)

  it('lose the replies to one script, and all that comes behind on the connection', function()
    ask(other, 'MOCK', 'LOSE', '2', 'SILENT', 'lock/acquire')
    local source = script('lock/acquire')
    local acquire = { 'EVAL', source, '1', 'job', '30000', 'me:1', '1' }

    assert.equal('+OK', (ask(conn, 'SET', 'k', 'v')))
    assert.is_nil((ask(conn, unpack(acquire))))
    assert.is_nil((ask(conn, 'PING')))
    assert.equal('*["me:1" "1"]', (ask(other, 'HGETALL', 'job')))
    assert.is_nil((ask(other, unpack(acquire))))
    assert.equal('*[:1 :1]', (ask(front:connect(), unpack(acquire))))
  end)

  it('lose the reply to a transaction that has such a command in it', function()
    for _, case in ipairs({ { '1' }, { '1', 'set' }, { '1', 'lock/acquire' }, { '1', 'exec' } }) do
      local own = front:connect()
      ask(other, 'MOCK', 'LOSE', unpack(case))
      ask(own, 'MULTI')
      ask(own, 'SET', 'k', case[2] or 'v')
      ask(own, 'EVAL', script('lock/acquire'), '1', 'job', '30000', 'me:1', '1')

      assert.equal('the end', (ask(own, 'EXEC')))
      assert.equal(('%q'):format(case[2] or 'v'), (ask(other, 'GET', 'k')))
      assert.truthy(ask(other, 'MOCK', 'STATUS'):find('"lose" :0', 1, true))
    end
    ask(other, 'MOCK', 'LOSE', '1')
    ask(conn, 'MULTI')
    ask(conn, 'PING')
    assert.equal('*[+PONG]', (ask(conn, 'EXEC')))
  end)

  it('lose no reply to a transaction that was not done', function()
    ask(conn, 'WATCH', 'k')
    ask(other, 'SET', 'k', 'theirs')
    ask(other, 'MOCK', 'LOSE', '1', 'set')
    ask(conn, 'MULTI')
    ask(conn, 'SET', 'k', 'mine')
    assert.equal('*-1', (ask(conn, 'EXEC')))
    ask(conn, 'MULTI')
    ask(conn, 'SET', 'k', 'mine')
    ask(conn, 'SET', 'k')
    assert.matches('EXECABORT', (ask(conn, 'EXEC')), 1, true)

    assert.equal('the end', (ask(conn, 'SET', 'k', 'mine')))
  end)

  it('lose a reply to any command on keys, and to a subcommand', function()
    ask(conn, 'MOCK', 'LOSE', '1')
    assert.equal('the end', (ask(other, 'SINTERCARD', '2', 'a', 'b')))
    assert.matches('"sintercard" $-1 *["a" "b"]', ask(conn, 'MOCK', 'CALLS'), 1, true)
    ask(conn, 'HRANDFIELD', 'h')
    assert.matches('"hrandfield" $-1 *["h"]', ask(conn, 'MOCK', 'CALLS'), 1, true)
    for _, name in ipairs({ 'script load', 'SCRIPT|LOAD' }) do
      ask(conn, 'MOCK', 'LOSE', '1', name)
      local third = front:connect()
      assert.equal('*[:0]', (ask(third, 'SCRIPT', 'EXISTS', 'x')))
      assert.equal('the end', (ask(third, 'SCRIPT', 'LOAD', 'return 1')))
    end
  end)

  it('refuse as a server in that state', function()
    for _, case in ipairs({
      { 'LOADING', '-LOADING', '-LOADING' }, { 'BUSY', '-BUSY', '-BUSY' },
      { 'OOM', '-OOM', '"v"' }, { 'READONLY', '-READONLY', '"v"' },
      { 'MISCONF', '-MISCONF', '"v"' },
    }) do
      ask(conn, 'SET', 'k', 'v')
      ask(other, 'MOCK', 'REFUSE', case[1])

      assert.equal(case[2], (ask(conn, 'SET', 'k', 'w')):match('^%-%u+'), case[1])
      assert.equal(case[2], (ask(conn, 'EVAL', "return redis.call('SET', 'k', 'w')", '0'))
        :match('^%-%u+'), case[1])
      assert.equal(case[3], (ask(conn, 'GET', 'k')):match('^[^ ]+'), case[1])
      ask(other, 'MOCK', 'REFUSE', 'NONE')
      assert.equal('"v"', (ask(conn, 'GET', 'k')), case[1])
    end
    ask(other, 'MOCK', 'REFUSE', 'CLUSTERDOWN', 'none', 'of', 'it')
    assert.equal('-CLUSTERDOWN none of it', (ask(conn, 'GET', 'k')))
  end)

  it('refuse a transaction for what is in it', function()
    ask(conn, 'MULTI')
    ask(conn, 'SET', 'a', '1')
    ask(other, 'MOCK', 'REFUSE', 'LOADING')
    assert.equal('-EXECABORT Transaction discarded because of: LOADING Redis is loading the '
      .. 'dataset in memory', (ask(conn, 'EXEC')))
    ask(conn, 'MULTI')
    ask(conn, 'PUBLISH', 'news', 'x')
    assert.equal('*[:0]', (ask(conn, 'EXEC')))
    ask(other, 'MOCK', 'REFUSE', 'NONE')
    assert.equal('$-1', (ask(conn, 'GET', 'a')))
  end)

  it('refuse all that is queued where memory is full', function()
    local oom = "-OOM command not allowed when used memory > 'maxmemory'."
    ask(other, 'MOCK', 'REFUSE', 'OOM')
    for _, words in ipairs({ { 'GET', 'a' }, { 'EVAL', 'return 1', '0' }, { 'PING' } }) do
      ask(conn, 'MULTI')
      assert.equal(oom, (ask(conn, unpack(words))))
      assert.equal('-EXECABORT Transaction discarded because of previous errors.',
        (ask(conn, 'EXEC')))
    end
    ask(conn, 'MULTI')
    assert.equal('*[]', (ask(conn, 'EXEC')))
    assert.equal('$-1', (ask(conn, 'GET', 'a')))
  end)

  it('refuse a PING where the disk is broken, as writes, in the words of a server', function()
    ask(other, 'MOCK', 'REFUSE', 'MISCONF')
    for _, words in ipairs({ { 'PING' }, { 'SET', 'k', 'v' } }) do
      assert.equal("-MISCONF Redis is configured to save RDB snapshots, but it's currently unable "
        .. 'to persist to disk. Commands that may modify the data set are disabled, because this '
        .. 'instance is configured to report errors during writes if RDB snapshotting fails '
        .. '(stop-writes-on-bgsave-error option). Please check the Redis logs for details about '
        .. 'the RDB error.', (ask(conn, unpack(words))))
    end
  end)

  it('refuse in the words that they are given', function()
    for _, words in ipairs({ { 'MOVED 3999 My-Host:6381' }, { 'MOVED', '3999 My-Host:6381' },
      { 'MOVED', '3999', 'My-Host:6381' } }) do
      assert.equal('+OK', (ask(other, 'MOCK', 'REFUSE', unpack(words))))
      assert.equal('-MOVED 3999 My-Host:6381', (ask(conn, 'GET', 'k')))
    end
    assert.equal('+OK', (ask(other, 'MOCK', 'REFUSE', 'none')))
    assert.matches('^%-ERR a refusal is', (ask(other, 'MOCK', 'REFUSE', 'moved 1 x')))
  end)

  it('hold replies and messages back', function()
    ask(other, 'SUBSCRIBE', 'news')
    front.faults:delay(50)

    assert.same({}, said(conn:feed('PUBLISH news x\r\nPING\r\n')))
    front:advance(49)
    assert.same({}, front:tick())
    front:advance(1)
    assert.same({ [conn] = ':1 +PONG', [other] = '*["message" "news" "x"]' }, said(front:tick()))
    assert.is_nil(front:due_ms())
  end)

  it('answer at once who asks for them, whatever they hold back', function()
    assert.equal('+OK', (ask(other, 'MOCK', 'DELAY', '100')))
    assert.is_nil((ask(conn, 'PING')))
    assert.matches('^%-ERR', (ask(other, 'MOCK', 'NOSUCH')))
    local own, all = ask(other, 'MOCK', 'ADVANCE', '100')
    assert.matches('^:%d+$', own)
    assert.equal('+PONG', all[conn])

    ask(conn, 'PING')
    assert.is_nil((ask(conn, 'MOCK', 'DELAY', '0')))
    assert.same({}, said(conn:feed('PING\r\n')))
    assert.matches('^%+PONG %+OK %+PONG :%d+$', (ask(conn, 'MOCK', 'ADVANCE', '100')))
  end)

  it('end connections, but not that of who asks', function()
    ask(other, 'SUBSCRIBE', 'news')
    local third = front:connect()

    local own, all = ask(conn, 'MOCK', 'CLOSE', 'PUBSUB')
    assert.equal(':1', own)
    assert.equal('the end', all[other])
    own, all = ask(conn, 'MOCK', 'CLOSE')
    assert.equal(':1', own)
    assert.equal('the end', all[third])
  end)

  it('forget scripts', function()
    local sha = ask(conn, 'SCRIPT', 'LOAD', 'return 1'):sub(2, -2)
    ask(conn, 'MOCK', 'FORGET')

    assert.matches('^%-NOSCRIPT', (ask(conn, 'EVALSHA', sha, '0')))
  end)

  it('forget the settings of libraries, as SCRIPT FLUSH does', function()
    local source = 'local digits = cjson.encode_number_precision() '
      .. 'cjson.encode_number_precision(3) return digits'
    local library = "#!lua name=l\nredis.register_function('f', function() " .. source .. ' end)'
    for _, words in ipairs({ { 'SCRIPT', 'FLUSH' }, { 'MOCK', 'FORGET' }, { 'MOCK', 'RESET' } }) do
      assert.equal(':14', (ask(conn, 'EVAL', source, '0')))
      assert.equal(':3', (ask(conn, 'EVAL', source, '0')))
      ask(conn, unpack(words))
    end
    for _, words in ipairs({ { 'MOCK', 'FORGET', 'FUNCTIONS' }, { 'MOCK', 'RESET' } }) do
      ask(conn, 'FUNCTION', 'LOAD', library)
      assert.equal(':14', (ask(conn, 'FCALL', 'f', '0')))
      assert.equal(':3', (ask(conn, 'FCALL', 'f', '0')))
      ask(conn, unpack(words))
    end
  end)

  it('keep nothing of scripts that are forgotten', function()
    ask(conn, 'EVAL', 'return 1', '0')
    ask(conn, 'MOCK', 'FORGET')

    assert.same({}, front.world.library.compiled)
  end)

  it('move time, by which leases end', function()
    ask(conn, 'SET', 'k', 'v', 'PX', '30000')
    local before = tonumber(ask(conn, 'MOCK', 'ADVANCE', '30000'):sub(2))
    assert.equal('"v"', (ask(conn, 'GET', 'k')))
    local after = tonumber(ask(conn, 'MOCK', 'ADVANCE', '1'):sub(2))

    assert.equal(1, after - before)
    assert.equal('$-1', (ask(conn, 'GET', 'k')))
    assert.matches('^%*%[:%d+ "manual"%]$', (ask(conn, 'MOCK', 'TIME')))
    assert.matches('^%-ERR', (ask(conn, 'MOCK', 'TIME', 'REAL')))
  end)

  it('stop time where it flows, and let it flow again', function()
    front.flows = true

    for _, word in ipairs({ 'manual', 'real' }) do
      assert.equal('+OK', (ask(conn, 'MOCK', 'TIME', word)))
      assert.matches('"' .. word .. '"', (ask(conn, 'MOCK', 'TIME')), 1, true)
    end
  end)

  it('say what was called', function()
    local source = script('lock/acquire')
    local sha = ask(conn, 'SCRIPT', 'LOAD', source):sub(2, -2)
    ask(conn, 'MOCK', 'FORGET', 'CALLS')
    ask(conn, 'EVALSHA', sha, '1', 'job', '30000', 'me:1', '1')
    ask(other, 'DEL', 'a', 'b')
    ask(other, 'LPOP', 'job')

    assert.equal(('*[*["evalsha" "lock/acquire" *["job"] :1 :%.0f $-1] '
      .. '*["del" $-1 *["a" "b"] :2 :%.0f $-1] *["lpop" $-1 *["job"] :2 :%.0f '
      .. '"WRONGTYPE Operation against a key holding the wrong kind of value"]]')
      :gsub('%%.0f', ('%.0f'):format(front:now_ms())), (ask(conn, 'MOCK', 'CALLS')))
    assert.matches('^%*%[%*%["lpop"', (ask(conn, 'MOCK', 'CALLS', '1')))
  end)

  it('remember so many calls as they are told', function()
    local small = new({ journal = 3 }):connect()
    for i = 1, 5 do
      ask(small, 'GET', 'k' .. i)
    end

    local calls = ask(small, 'MOCK', 'CALLS')
    local keys = {}
    for key in calls:gmatch('"(k%d)"') do
      keys[#keys + 1] = key
    end
    assert.same({ 'k3', 'k4', 'k5' }, keys)
  end)

  it('say what is switched on', function()
    local function status()
      return (ask(conn, 'MOCK', 'STATUS'):gsub('"now_ms" :%d+ ', ''))
    end

    assert.equal('*["time" "manual" "lose" :0 "lose_how" $-1 "lose_name" $-1 "delay_ms" :0 '
      .. '"refuse" $-1 "calls" :0 "connections" :2]', status())

    ask(conn, 'MOCK', 'LOSE', '2', 'SILENT', 'lock/acquire')
    ask(conn, 'MOCK', 'REFUSE', 'OOM')
    assert.equal('*["time" "manual" "lose" :2 "lose_how" "silent" "lose_name" "lock/acquire" '
      .. '"delay_ms" :0 "refuse" "OOM" "calls" :0 "connections" :2]', status())

    ask(conn, 'MOCK', 'REFUSE', 'CLUSTERDOWN', 'for', 'a', 'while')
    assert.truthy(status():find('"refuse" "CLUSTERDOWN for a while"', 1, true))

    ask(other, 'MOCK', 'DELAY', '7')
    assert.truthy(status():find('"delay_ms" :7', 1, true))
  end)

  it('start anew', function()
    ask(conn, 'SET', 'k', 'v')
    ask(conn, 'MOCK', 'LOSE', '3')
    ask(conn, 'MOCK', 'REFUSE', 'OOM')
    ask(conn, 'MOCK', 'RESET')

    assert.equal('+OK', (ask(conn, 'SET', 'other', 'v')))
    assert.equal('*["other"]', (ask(conn, 'KEYS', '*')))
  end)

  it('take numbers up to the greatest that they know', function()
    assert.matches('^:%d+$', (ask(conn, 'MOCK', 'ADVANCE', '2199023255552')))
    assert.matches('^%-ERR value is not', (ask(conn, 'MOCK', 'ADVANCE', '2199023255553')))
    assert.matches('^%-ERR value is not', (ask(conn, 'MOCK', 'DELAY', '2199023255553')))
    assert.equal('+OK', (ask(conn, 'MOCK', 'LOSE', '1000000')))
    assert.matches('^%-ERR value is not', (ask(conn, 'MOCK', 'LOSE', '1000001')))
    assert.matches('^%*', (ask(conn, 'MOCK', 'CALLS', '1000000')))
    assert.matches('^%-ERR value is not', (ask(conn, 'MOCK', 'CALLS', '1000001')))
    assert.matches('^%-ERR syntax', (ask(conn, 'MOCK', 'CALLS', '1', '2')))
    assert.matches('^%-ERR syntax', (ask(conn, 'MOCK', 'LOSE', '1', 'SILENT', 'lock/acquire', 'x')))
    assert.matches('^%-ERR syntax', (ask(conn, 'MOCK', 'FORGET', 'CALLS', 'x')))
  end)

  it('refuse what they do not know', function()
    assert.matches('^%-ERR unknown subcommand', (ask(conn, 'MOCK', 'NOSUCH')))
    assert.matches('^%-ERR a refusal is', (ask(conn, 'MOCK', 'REFUSE', 'nosuch')))
    assert.matches('^%-ERR value is not', (ask(conn, 'MOCK', 'ADVANCE', '-1')))
    assert.matches('^%-ERR value is not', (ask(conn, 'MOCK', 'LOSE', 'x')))
    assert.matches('^%-ERR unknown command', (ask(new({ control = false }):connect(), 'MOCK',
      'HELP')))
  end)
end)

describe('random steps of connections', function()
  local oracle, missing, random

  setup(function()
    oracle, missing = Oracle.start()
    if oracle and not oracle.is_model then
      oracle:stop()
      oracle, missing = nil, 'the texts are those of Redis 7.0, the server is another'
    end
    random = oracle and Random.new(oracle)
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  it('do the same on a front and on a server', function()
    if not oracle then
      return pending(missing)
    end
    for seed = FIRST_SEED, FIRST_SEED + SEQUENCES - 1 do
      local report = random:try(seed)
      if report then
        error(report, 0)
      end
    end
    for kind, counts in pairs(random.covered) do
      assert.is_true(counts.replies > 20 and counts.errors > 20, kind)
    end
  end)
end)
