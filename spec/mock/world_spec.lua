-- SPDX-License-Identifier: Apache-2.0
local World = require('latchkey.mock.world')
local stringx = require('pl.stringx')

local SHA1_OF_RETURN_1 = 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db'

local function nothing() end

local function world(options)
  return World.new(options or { strict = false })
end

describe('time in a mock world', function()
  it('stands still until it is moved', function()
    local w = world()
    local start = w:now_ms()

    w:command('SET', 'k', 'v', 'PX', 100)
    w:advance(40)

    assert.equal(start + 40, w:now_ms())
    assert.equal(60, w:command('PTTL', 'k'))
    assert.same({ ('%.0f'):format(math.floor(w:now_ms() / 1000)),
      ('%.0f'):format(w:now_ms() % 1000 * 1000 + 456), n = 2 }, w:command('TIME'))
  end)

  it('goes forward by whole milliseconds only', function()
    local w = world()

    assert.has_error(function()
      w:advance(-1)
    end, 'the clock moves forward by whole milliseconds')
    assert.has_error(function()
      w:advance(0.5)
    end, 'the clock moves forward by whole milliseconds')
  end)

  it('ends a key after its last millisecond, not in it', function()
    local w = world()
    w:command('HSET', 'h', 'f', 'v')
    w:command('PEXPIRE', 'h', 100)

    w:advance(100)
    assert.same({ h = { type = 'hash', value = { f = 'v' }, pttl = 0 } }, w:dump())
    w:advance(1)

    assert.same({}, w:dump())
    assert.equal(0, w:command('EXISTS', 'h'))
    assert.equal(1, w:command('HSET', 'h', 'g', 'v'))
    assert.equal(-1, w:command('PTTL', 'h'))
  end)

  it('moves between two TIMEs of one script, and leaves it its keys', function()
    local w = world({ strict = false, time = 'moving' })

    local reply = w:eval_source([[
      redis.call('SET', 'k', 'v', 'PX', 1)
      local first = redis.call('TIME')
      redis.call('TIME')
      redis.call('TIME')
      local last = redis.call('TIME')
      return { tostring(first[2] == last[2]), redis.call('GET', 'k'), redis.call('PTTL', 'k') }]])

    assert.same({ 'false', 'v', 0, n = 3 }, reply)
    assert.is_nil(w:command('GET', 'k'))
  end)

  it('can stand still in a script, as from Redis 7.2 on', function()
    local w = world({ strict = false, time = 'frozen' })

    local reply = w:eval_source(
      [[return { redis.call('TIME')[2], redis.call('TIME')[2], redis.call('TIME')[2] }]])

    assert.same({ reply[1], reply[1], reply[1], n = 3 }, reply)
  end)

  it('knows no third way', function()
    assert.has_error(function()
      World.new({ time = 'wild' })
    end, 'time is "moving" or "frozen"')
  end)
end)

describe('messages of a mock world', function()
  it('are kept in order until they are taken', function()
    local w = world()

    w:command('PUBLISH', 'c', 'one')
    w:eval_source([[redis.call('SPUBLISH', 'd', 'two')]])

    assert.same({ { verb = 'PUBLISH', channel = 'c', message = 'one' },
      { verb = 'SPUBLISH', channel = 'd', message = 'two' } }, w:messages())
    assert.same({}, w:messages())
  end)

  it('are not sent twice when the failing line of a script is looked for', function()
    local w = world()

    local reply, err = w:eval_source([[
      redis.call('PUBLISH', 'c', 'm')
      redis.call('INCR', 'n')
      return redis.call('NOSUCH')]])

    assert.is_nil(reply)
    assert.equal(3, err.line)
    assert.same({ { verb = 'PUBLISH', channel = 'c', message = 'm' } }, w:messages())
    assert.same({ n = { type = 'string', value = '1', pttl = -1 } }, w:dump())
  end)
end)

describe('a mock world that starts from given keys', function()
  it('has these and no others, at the time at which worlds begin', function()
    local w = world()
    local start_ms = w:now_ms()
    w:command('SET', 'kept', 'v', 'PX', 100)
    local keys = w:keys()
    w:advance(40)
    w:replace({})
    w:command('SET', 'other', 'v')

    w:replace({ kept = keys.kept })

    assert.same({ kept = { type = 'string', value = 'v', pttl = 100 } }, w:dump())
    assert.equal(start_ms, w:now_ms())
  end)
end)

describe('a snapshot of a mock world', function()
  it('brings keys, time, messages and faults back, as often as asked', function()
    local w = world()
    w:command('SET', 'k', 'v', 'PX', 100)
    w:command('HSET', 'h', 'f', '1')
    w:command('PUBLISH', 'c', 'm')
    local before, start = w:dump(), w:now_ms()
    local snapshot = w:snapshot()

    for _ = 1, 2 do
      w:advance(1000)
      w:command('HINCRBY', 'h', 'f', 1)
      w:command('SET', 'new', 'v')
      w:messages()
      w:set_oom(true)
      w:set_readonly(true)
      w:set_denied('HINCRBY')
      w:restore(snapshot)

      assert.same(before, w:dump())
      assert.equal(start, w:now_ms())
      assert.equal(2, w:command('HINCRBY', 'h', 'f', 1))
      assert.same({ { verb = 'PUBLISH', channel = 'c', message = 'm' } }, w:messages())
    end
  end)

  describe('of a user who may not run a command', function()
    local LOOK = [[
      local reply = { redis.pcall('SET', KEYS[1], 1), redis.pcall('GET', KEYS[1]) }
      for i = 1, 2 do
        reply[i] = reply[i] and reply[i].err or 'runs'
      end
      for _, command in ipairs({ 'SET', 'set', 'GET' }) do
        reply[#reply + 1] = redis.acl_check_cmd(command, KEYS[1]) and 1 or 0
      end
      return reply]]
    local COMMAND = "ERR The user executing the script can't run this command or subcommand"
    local KEY = "ERR The user executing the script can't access at least one of the keys mentioned "
      .. 'in the command arguments'

    local function look(w, key)
      local reply = w:eval_source(LOOK, { key })
      reply.n = nil
      return reply
    end

    it('refuses it to scripts, which may ask before', function()
      local w = world()
      w:set_denied('SET')

      assert.same({ COMMAND, 'runs', 0, 0, 1 }, look(w, 'k'))

      w:set_denied()
      assert.same({ 'runs', 'runs', 1, 1, 1 }, look(w, 'k'))
    end)

    it('refuses it on one key alone', function()
      local w = world()
      w:set_denied('SET', 'k')

      assert.same({ KEY, 'runs', 0, 0, 1 }, look(w, 'k'))
      assert.same({ 'runs', 'runs', 1, 1, 1 }, look(w, 'other'))
    end)
  end)

  for _, line in ipairs({ 'APPEND s v', 'HSET h f 2', 'HDEL h f', 'LPUSH l x', 'LPOP l',
    'LSET l 0 x', 'LINSERT l AFTER a x', 'LREM l 1 a', 'LTRIM l 1 1', 'LMOVE l l LEFT RIGHT',
    'LMOVE l m LEFT RIGHT', 'ZADD z 5 a', 'ZINCRBY z 5 a', 'ZREM z a', 'ZPOPMAX z',
    'ZREMRANGEBYRANK z 0 0', 'PEXPIRE z 1000' }) do
    it('is not changed by ' .. line, function()
      local w = world()
      w:command('SET', 's', 'v')
      w:command('HSET', 'h', 'f', '1', 'g', '2')
      w:command('RPUSH', 'l', 'a', 'b', 'c')
      w:command('RPUSH', 'm', 'a')
      w:command('ZADD', 'z', 1, 'a', 2, 'b')
      local before, snapshot = w:dump(), w:snapshot()

      assert(w:command(unpack(stringx.split(line))))
      assert.not_same(before, w:dump())
      w:restore(snapshot)

      assert.same(before, w:dump())
    end)
  end
end)

describe('scripts of a mock world', function()
  it('are known by SHA1 until they are flushed', function()
    local w = world()
    w:eval_source('return 1')

    assert.equal(1, w:command('EVALSHA', SHA1_OF_RETURN_1, 0))
    w:script_flush()
    local reply, err = w:command('EVALSHA', SHA1_OF_RETURN_1, 0)

    assert.is_nil(reply)
    assert.equal('NOSCRIPT', err.code)
  end)

  it('run by name, and are loaded again after a flush', function()
    local w = World.new()
    assert.same({ 1, n = 1 }, w:eval('mutex/acquire', { 'm' }, { 1000, 'me' }))

    w:script_flush()

    assert.same({ 0, 1000, n = 2 }, w:eval('mutex/acquire', { 'm' }, { 1000, 'you' }))
  end)

  it('that are not there are an error that names the file', function()
    local reply, err = World.new():eval('lock/steal', {}, {})

    assert.is_nil(reply)
    assert.equal('MOCK', err.code)
    assert.is_truthy(err.message:find('scripts/lock/steal.lua', 1, true))
    assert.equal('lock/steal', err.script)
  end)

  it('say script and line when a command fails', function()
    local w = World.new()
    w:command('SET', 'l', 'no hash')

    local reply, err = w:eval('lock/acquire', { 'l' }, { 1000, 'me', 1 })

    assert.is_nil(reply)
    assert.equal('WRONGTYPE', err.code)
    assert.equal('lock/acquire', err.script)
    assert.is_truthy(err.message:find(('on @user_script:%d.'):format(err.line), 1, true))
  end)

  it('take strings and numbers only', function()
    assert.has_error(function()
      World.new():eval('lock/inspect', { true }, {})
    end, 'keys and arguments are strings or numbers')
  end)

  it('take no nil, also at the end, as the binding does', function()
    local w, why = World.new(), 'keys and arguments are strings or numbers'

    assert.has_error(function() w:eval('lock/acquire', { 'l' }, { 1000, 'me', nil, 1 }) end, why)
    assert.has_error(function() w:command('SET', 'l', 'me', nil) end, why)
    assert.has_error(function() w:command({ 'SET', 'l', nil, 'me' }) end, why)
    assert.same({}, w:dump())
  end)

  it('run afresh: nothing is left of the run before', function()
    local w = world()
    local source = 'local t = KEYS t[2] = "more" return { #KEYS, ARGV[1] }'

    assert.same({ 2, 'a', n = 2 }, w:eval_source(source, { 'k' }, { 'a' }))
    assert.same({ 2, n = 1 }, w:eval_source(source, { 'k' }, {}))
  end)

  it('are stopped when they do not end, wherever they hide', function()
    local jit = rawget(_G, 'jit') or { on = nothing, off = nothing }
    jit.on()
    finally(jit.off)
    local w = world({ strict = false, max_instructions = 10000 })
    local endless = {
      '\nwhile true do end',
      '\nwhile true do pcall(function() while true do end end) end',
      '\nlocal f = loadstring("while true do end") f()',
      '\nwhile true do redis.call("GET", "k") end',
      '\nlocal function f() return f() end f()',
      '\nerror(setmetatable({}, { __index = function() while true do end end }))',
      '\nwhile true do redis.call("RPUSH", "l", "v") end',
      '\nwhile true do for i = 1, 150 do end redis.call("PING") end',
    }
    for _, source in ipairs(endless) do
      local reply, err = w:eval_source(source, {}, {})

      assert.is_nil(reply)
      assert.equal('MOCK', err.code)
      assert.is_truthy(err.message:find('more than 10000 instructions', 1, true))
    end
    assert.equal(1, w:eval_source('return 1'))
  end)

  it('are stopped while they are loaded as a library, too', function()
    local w = world({ strict = false, max_instructions = 10000 })

    local _, err = w:command('FUNCTION', 'LOAD', '#!lua name=t\nwhile true do end')

    assert.equal('MOCK the script ran more than 10000 instructions', err.message)
    assert.equal('user_script:1: x', w:eval_source("return select(2, pcall(error, 'x', 2))"))
  end)

  -- What the mock does for a command is none of the script's instructions.
  it('may do a lot with few instructions', function()
    local w, members = world(), {}
    for i = 1, 3000 do
      members[i] = tostring(i)
    end

    assert.equal(3000, w:eval_source('return redis.call("SADD", "s", unpack(ARGV))', {}, members))
    for _, call in ipairs({ '"HSET", "h", i, i', '"ZADD", "z", i, i', '"RPUSH", "l", i' }) do
      local _, err = w:eval_source(('for i = 1, 3000 do redis.call(%s) end'):format(call))
      assert.is_nil(err)
    end
    assert.same({ 3000, 3000, 3000 }, { w:command('HLEN', 'h'), w:command('ZCARD', 'z'),
      w:command('LLEN', 'l') })
  end)

  it('leave the hook of a coverage tool alone', function()
    local seen = {}
    debug.sethook(function(_, line)
      seen[line] = true
    end, 'l')
    local w = world()
    w:eval_source('\n\n\n\n\n\n\n\n\n\nlocal x = 1\nerror("boom")', {}, {})
    local hook = debug.gethook()
    debug.sethook()

    assert.is_not_nil(hook)
    assert.is_true(seen[11])
  end)
end)

describe('a script that fails', function()
  local function library(w, code)
    assert(w:command('FUNCTION', 'LOAD', '#!lua name=t\n' .. code))
  end

  it('runs once, whatever its functions or libraries keep', function()
    local w = world()
    library(w, [[
      local n = 0
      redis.register_function('f', function() n = n + 1 error('x') end)
      redis.register_function('g', function() return n end)
      redis.register_function('h', function()
        n = n + 1
        return (function(f) return f({}) end)(tonumber) + 1
      end)]])
    local precision = [[
      local digits = cjson.encode_number_precision()
      cjson.encode_number_precision(digits - 1)
      error('x')]]

    assert.equal('ERR user_function:3: x script: f, on @user_function:3.',
      select(2, w:command('FCALL', 'f', 0)).message)
    assert.equal(1, w:command('FCALL', 'g', 0))
    w:command('FCALL', 'h', 0)
    assert.equal(2, w:command('FCALL', 'g', 0))
    w:eval_source(precision)
    assert.equal(13, w:eval_source('return cjson.encode_number_precision()'))
  end)

  it('ends, though it would not when it ran again', function()
    local w = world({ strict = false, max_instructions = 10000 })
    library(w, [[
      local ready = false
      redis.register_function('once', function()
        while ready do end
        ready = true
        error('first call')
      end)]])

    assert.matches('first call', select(2, w:command('FCALL', 'once', 0)).message, 1, true)
    assert.matches('more than 10000 instructions',
      select(2, w:command('FCALL', 'once', 0)).message, 1, true)
  end)

  it('ends, though it would not when it ran again for its line', function()
    local w = world({ strict = false, max_instructions = 1000000 })

    local _, err = w:eval_source([[
      local digits = cjson.encode_number_precision()
      cjson.encode_number_precision(digits - 1)
      while digits < 14 do end
      local t = { f = redis.call }
      return t.f('NOSUCH')]])

    assert.matches('ERR Unknown Redis command', err.message, 1, true)
    assert.is_nil(err.line)
  end)

  -- A look at each of its instructions would take some ten seconds.
  it('takes no longer than one that does not', function()
    local loop = 'local n = 0 for i = 1, 2000000 do n = n + i end '
    local w = world({ strict = false, max_instructions = 1e9 })
    local began = os.clock()
    w:eval_source(loop .. 'return n')
    local good = os.clock() - began

    for _, last in ipairs({ "error('x')", "redis.call('NOSUCH')", 'return redis.call()',
      "local call = redis.call call('NOSUCH')", 'local x = n.y.z', 'return ({}) .. 1' }) do
      began = os.clock()
      local _, err = w:eval_source(loop .. last)

      assert.equal(1, err.line)
      assert.is_true(os.clock() - began < 3 * good + 0.2)
    end
  end)

  it('says its line, also where that of the call is left', function()
    local w = world()
    for source, line in pairs({
      ["local t = { f = redis.call }\nreturn t.f('NOSUCH')"] = 2,
      ["local function g(f)\n  return f('NOSUCH')\nend\nlocal x = g(redis.call)"] = 2,
      ["local function g()\n  error('x')\nend\nreturn g()"] = 2,
      ["local call = redis.call\nlocal function g()\n  call('NOSUCH')\nend\ng()"] = 3,
      ["local x = 1\nlocal y = x\n  .. z"] = 3,
    }) do
      assert.equal(line, select(2, w:eval_source(source)).line)
    end
  end)
end)

-- What the mock does not do, it refuses by name.
describe('a mock world refuses', function()
  local function refused(text, ...)
    local reply, err = ...
    assert.is_nil(reply)
    assert.equal('MOCK', err.code)
    assert.is_truthy(err.message:find(text, 1, true), err.message)
  end

  it('commands that it does not model, from clients and scripts', function()
    refused('MOCK PFADD is not modelled', world():command('PFADD', 'l', 'v'))
    refused('MOCK ZUNION is not modelled', world():eval_source('redis.call("zunion", 1, "z")'))
    refused('MOCK SCRIPT|DEBUG is not modelled', world():command('SCRIPT', 'DEBUG', 'YES'))
  end)

  it('even where the script would swallow the refusal', function()
    refused('MOCK PFADD is not modelled',
      world():eval_source('pcall(redis.call, "PFADD", "l", "v") return 1'))
    refused('MOCK PFADD is not modelled',
      world():eval_source('redis.pcall("PFADD", "l", "v") return 1'))
  end)

  it('integers that a double cannot hold', function()
    local w = world()
    w:command('SET', 'k', '9007199254740991')
    w:command('HSET', 'h', 'f', '9223372036854775807')
    local big = 'MOCK integers of 2^53 and above are not modelled'

    refused(big, w:command('INCR', 'k'))
    refused(big, w:command('HINCRBY', 'h', 'f', 1))
    refused(big, w:command('INCRBY', 'n', '9007199254740992'))
    refused(big, w:command('PEXPIREAT', 'k', '9000000000000000000'))
  end)

  it('scores in hexadecimal, and ranges of members in no one order', function()
    local w = world()
    w:command('ZADD', 'z', 1, 'a', 2, 'b')

    refused('MOCK hexadecimal scores', w:command('ZADD', 'z', '0x10', 'a'))
    refused('MOCK hexadecimal scores', w:command('ZCOUNT', 'z', '(0x1', '2'))
    refused('MOCK a range of members', w:command('ZRANGEBYLEX', 'z', '-', '+'))
  end)

  it('the globals and functions of redis that it does not have', function()
    refused('math.random is not modelled', world():eval_source('return math.random()'))
    refused('redis.setresp(3) is not modelled', world():eval_source('redis.setresp(3)'))
    refused('bytecode is not modelled', world():eval_source('return loadstring("\\27Lua")()'))
  end)

  it('replies of RESP3, and very deep ones', function()
    refused('{ map = ... }', world():eval_source('return { map = { a = 1 } }'))
    refused('{ double = ... }', world():eval_source('return { 1, { double = 1.5 } }'))
    refused('nested deeper', world():eval_source('local t = {} t[1] = t return t'))
  end)

  it('to throw a table without err, of which a server dies', function()
    refused('a server of version 7.0 dies of it', world():eval_source('error({})'))
    refused('a server of version 7.0 dies of it', world():eval_source(
      'error(setmetatable({}, { __index = function() error("boom") end }))'))
  end)
end)
