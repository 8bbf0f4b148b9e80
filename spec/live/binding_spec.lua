-- SPDX-License-Identifier: Apache-2.0
local ffi = require('ffi')

local dir = require('pl.dir')
local path = require('pl.path')
local posix_wait = require('posix.sys.wait')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local helper = require('helper')
local latchkey = require('latchkey')

local URL = os.getenv('LATCHKEY_SPEC_URL')

describe('the LuaJIT binding', function()
  local world, client

  before_each(function()
    world = helper.live_world()
    client = assert(latchkey.open(URL))
  end)

  after_each(function()
    client:close()
  end)

  describe('of replies', function()
    local function eval(script)
      return client:command('EVAL', script, 0)
    end

    it('gives integers, strings, statuses and nested arrays', function()
      assert.equal(-7, eval('return -7'))
      assert.equal('a\0b', eval('return "a\\0b"'))
      assert.same({ ok = 'PONG' }, client:command('PING'))
      assert.same({ 1, { 'x', n = 1 }, { n = 0 }, n = 3 }, eval('return {1, {"x"}, {}}'))
    end)

    it('gives nil for nil, and null inside arrays', function()
      assert.is_nil((client:command('GET', 'missing')))
      assert.same({ 1, latchkey.null, 3, n = 3 }, eval('return {1, false, 3}'))
    end)

    it('keeps a reply until all of it is copied, whenever the collector runs', function()
      local text = ('x'):rep(200)
      world:command('SET', 'job', text)
      finally(debug.sethook)

      debug.sethook(function() collectgarbage() end, 'c')
      local one, both = client:command('GET', 'job'), client:command('MGET', 'job', 'job')
      debug.sethook()

      assert.equal(text, one)
      assert.same({ text, text, n = 2 }, both)
    end)

    it('gives an error inside an array as a value', function()
      assert.same({ { err = 'LKX inner' }, n = 1 }, eval('return {redis.error_reply("LKX inner")}'))
    end)

    it('sends integers as plain decimals', function()
      assert.equal('9007199254740991', client:command('ECHO', 2 ^ 53 - 1))
      assert.has_error(function() client:command('ECHO', 1.5) end,
        'value 2 is 1.5; give a string or an integer')
      assert.has_error(function() client:command('ECHO', true) end,
        'value 2 is true; give a string or an integer')
    end)

    it('gives the least integer as a number, as it is one of Lua', function()
      local reply = eval('return -2^63')

      assert.equal('number', type(reply))
      assert.equal(-2 ^ 63, reply)
    end)
  end)

  describe('of arguments', function()
    local HOLE = ' is nil; give a string or an integer'

    it('refuses a nil among them, at their end, too, and sends nothing', function()
      local node = assert(client:nodes())[1]

      for _, server in ipairs({ client, node }) do
        assert.has_error(function() server:command('HSET', 'h', 'f', nil, 'g', 'v') end,
          'value 4' .. HOLE)
        assert.has_error(function() server:command({ 'HSET', 'h', 'f', nil, 'g', 'v' }) end,
          'value 4' .. HOLE)
        assert.has_error(function() server:command('HSET', 'h', 'f', 'v', nil) end,
          'value 5' .. HOLE)
        assert.has_error(function() server:command({ n = 4, 'HSET', 'h', 'f', nil }) end,
          'value 4' .. HOLE)
        assert.has_error(function() server:command(nil, 'h') end, 'value 1' .. HOLE)
      end

      assert.has_error(function()
        client:eval('mutex/acquire', { nil, 'h' }, { 1000, 'lk-a:1' })
      end, 'value 1' .. HOLE)
      assert.has_error(function()
        client:eval('lock/acquire', { 'h' }, { 1000, nil, 'lk-a:1' })
      end, 'value 2' .. HOLE)
      assert.has_error(function()
        client:eval('lock/acquire', { 'h' }, { n = 2, 1000 })
      end, 'value 2' .. HOLE)
      assert.has_error(function()
        client:watch('lock/renew', { 'h' }, { 1000, nil, 'lk-a:1' }, { lease_ms = 1000 })
      end, 'value 2' .. HOLE)
      assert.left(world, {})
    end)

    it('takes words one by one or as one list, not as both', function()
      assert.equal('LK_INVALID', select(2, client:command()).status)
      assert.equal('LK_INVALID', select(2, client:command({})).status)
      assert.has_error(function() client:command({ 'SET', 'job' }, 'value') end,
        'words stand behind a list of words; give all in the list, or all one by one')
      assert.left(world, {})
    end)

    it('refuses a text with a NUL byte, at which C would end it', function()
      local function refuses(what, call)
        assert.has_error(call, what .. ' has a NUL byte at 4, where a text of C ends; '
          .. 'give one without')
      end

      refuses('name', function() client:lock('lock', 'job\0one') end)
      refuses('channel', function() client:wait('job\0one') end)
      refuses('script', function() client:eval('job\0one', {}, {}) end)
      refuses('script', function() client:watch('job\0one', {}, {}, { lease_ms = 1000 }) end)
      refuses('url', function() latchkey.open('job\0one') end)
      refuses('label', function() latchkey.open(URL, { label = 'job\0one' }) end)
      assert.has_error(function() client:lock('lock', nil) end, 'name is nil; give a string')
      assert.equal('PUBLISH', client:publish_verb('job\0one'))
    end)

    it('refuses what is no integer where C takes one, so that nothing is cut off', function()
      local lock = assert(client:lock('lock', 'job'))
      local silence = assert(client:wait('nobody speaks here'))
      local function refuses(what, call)
        assert.has_error(call, what .. '; give an integer up to 2^53, or an int64_t of ffi')
      end

      refuses('lease_ms is 0.9', function() client:lock('lock', 'job', { lease_ms = 0.9 }) end)
      refuses('lease_ms is 100', function() client:lock('lock', 'job', { lease_ms = '100' }) end)
      refuses('min_replicas is true', function()
        client:lock('lock', 'job', { min_replicas = true })
      end)
      refuses('command_ms is 1.5', function() latchkey.open(URL, { command_ms = 1.5 }) end)
      refuses('lease_ms is 1000.5', function()
        client:watch('lock/renew', { 'job' }, { 1000, 'lk-a:1' }, { lease_ms = 1000.5 })
      end)
      refuses('wait_ms is 0.5', function() lock:acquire(0.5) end)
      refuses('wait_ms is -0.5', function() lock:acquire(-0.5) end)
      refuses('wait_ms is inf', function() lock:acquire(math.huge) end)
      refuses('wait_ms is 1e+19', function() lock:acquire(1e19) end)
      refuses('wait_ms is true', function() lock:acquire(true) end)
      refuses('timeout_ms is 0.9', function() silence:sleep(0.9) end)
      assert.left(world, {})
    end)

    it('takes integers of C, and constants by their name', function()
      local lock = assert(client:lock('lock', 'job', { lease_ms = ffi.new('int64_t', 30000),
        renew = true, wait_mode = 'LK_WAIT_SPIN' }))

      assert.is_true(lock:acquire(ffi.new('int64_t', 0)))

      assert.equal(30000, lock:lease_ms())
      assert.is_true(lock:release())
      world:messages()
    end)
  end)

  describe('of errors', function()
    it('says status, message, hint and the code of the server', function()
      local reply, err = client:command('HGET', 'one argument too few')

      assert.is_nil(reply)
      assert.equal('LK_SERVER', err.status)
      assert.equal('ERR', err.code)
      assert.matches('wrong number of arguments', err.message, 1, true)
      assert.is_string(err.hint)
      assert.is_false(err.retriable)
    end)

    it('says which script failed, in which line', function()
      world:command('SET', 'job', 'value')

      local _, err = client:eval('lock/inspect', { 'job' }, {})

      assert.equal('LK_WRONGTYPE', err.status)
      assert.equal('lock/inspect', err.script)
      assert.is_number(err.line)
    end)

    it('says that a script is unknown, and that a server cannot be reached', function()
      assert.equal('LK_NO_SCRIPT', select(2, client:eval('lock/none', { 'job' }, {})).status)
      assert.equal('LK_UNREACHABLE', select(2, latchkey.open('unix:///nowhere.sock')).status)
      assert.equal('LK_URL', select(2, latchkey.open('http://host')).status)
    end)
  end)

  describe('of locks', function()
    it('acquires, re-enters and releases', function()
      local lock = assert(client:lock('lock', 'job', { lease_ms = 30000 }))

      assert.is_true(lock:acquire())
      assert.is_true(lock:acquire())

      local owner = lock:owner()
      assert.equal(2, lock:hold_count())
      assert.is_true(lock:remaining_ms() > 0)
      assert.equal(30000, lock:lease_ms())
      assert.is_nil(lock:lost())
      assert.left(world, { job = helper.hash({ [owner] = '2' }, 30000) })

      assert.is_true(lock:release())
      assert.is_true(lock:release())

      assert.equal('', lock:owner())
      assert.equal('LK_NOT_HELD', select(2, lock:release()).status)
      world:messages()
      assert.left(world, {})
    end)

    it('tells the token of a fenced lock', function()
      local lock = assert(client:lock('fenced', 'job', { token_ttl_ms = 60000 }))

      assert.equal(0, lock:token())
      assert.is_true(lock:acquire())

      local first = lock:token()
      assert.is_true(first > 0)
      assert.is_true(lock:release())
      world:messages()
      assert.is_true(lock:acquire())
      assert.is_true(lock:token() > first)
      assert.is_true(lock:release())
      world:messages()
    end)

    it('tells callers apart', function()
      local mutex = assert(client:lock('mutex', 'job', { lease_ms = 30000 }))
      local caller = assert(client:caller())

      assert.is_true(mutex:acquire(0, caller))

      assert.equal('LK_BUSY', select(2, mutex:acquire(0)).status)
      assert.equal(0, mutex:hold_count())
      assert.left(world, { job = helper.string(mutex:owner(caller), 30000) })
    end)

    it('knows all kinds, and lets readers be several', function()
      local one, other = assert(client:caller()), assert(client:caller())
      local read, write = assert(client:lock('read', 'job')), assert(client:lock('write', 'job'))
      local fair = assert(client:lock('fair', 'queue'))

      assert.is_true(read:acquire(0, one))
      assert.is_true(read:acquire(0, other))
      assert.equal('LK_BUSY', select(2, write:acquire(0)).status)
      assert.is_true(read:release(one))
      assert.is_true(read:release(other))
      world:messages()
      assert.is_true(write:acquire(0))
      assert.equal('LK_BUSY', select(2, read:acquire(0, one)).status)
      assert.is_true(write:release())
      world:messages()
      assert.is_true(fair:acquire())
      assert.equal('LK_BUSY', select(2, fair:acquire(0, one)).status)
      assert.is_true(fair:release())
      world:messages()
    end)

    it('refuses unknown kinds and options', function()
      assert.has_error(function() client:lock('spin', 'job') end, 'no kind is named "spin"')
      assert.has_error(function() client:lock('lock', 'job', { lease = 1 }) end,
        "'struct lk_lock_options' has no member named 'lease'")
      assert.has_error(function() latchkey.open(URL, { names = 'x' }) end,
        "'struct lk_client_options' has no member named 'names'")
    end)

    -- A Lua function that C calls, on another thread or inside a call, ends the process.
    it('refuses callbacks', function()
      local function refuses(name, call)
        assert.has_error(call, name .. ' is for callbacks, and Lua has none; ask lock:lost() '
          .. 'or watch:lost()')
      end
      local function callback() end

      refuses('on_lost', function() client:lock('lock', 'job', { on_lost = callback }) end)
      refuses('on_lost', function()
        client:watch('lock/renew', { 'job' }, { 1000, 'lk-a:1' },
          { lease_ms = 1000, on_lost = callback })
      end)
      refuses('trace', function() latchkey.open(URL, { trace = callback }) end)
      refuses('callbacks', function() latchkey.open(URL, { callbacks = 1 }) end)
    end)
  end)

  it('wakes a wait when the channel has spoken, and only then', function()
    local wait = assert(client:wait('channel'))
    assert.equal('LK_TIMEOUT', select(2, wait:sleep(0)).status)

    world:command('PUBLISH', 'channel', '0')

    assert.is_true(wait:sleep(10000))
  end)

  it('tells that a watched lease was lost', function()
    local watch = assert(client:watch('lock/renew', { 'job' }, { 6000, 'lk-ann:1' },
      { lease_ms = 6000, since_ms = latchkey.now_ms() }))
    local silence = assert(client:wait('nobody speaks here'))

    repeat
      silence:sleep(10)
    until watch:lost() or watch:remaining_ms() < -10000

    assert.equal('broken', watch:lost())
  end)

  describe('of nodes', function()
    it('names the only server, which takes commands of its own', function()
      local nodes = assert(client:nodes())

      assert.equal(1, #nodes)
      assert.equal(client:target(), nodes[1]:target())
      assert.is_true(nodes[1]:is_master())
      assert.same({ ok = 'PONG' }, nodes[1]:command('PING'))
      local reply, err = nodes[1]:command('SUBSCRIBE', 'channel')
      assert.is_nil(reply)
      assert.equal('LK_INVALID', err.status)
    end)

    it('keeps their client, and is closed with it', function()
      local nodes = assert(assert(latchkey.open(URL)):nodes())

      collectgarbage()
      collectgarbage()

      assert.same({ ok = 'PONG' }, nodes[1]:command('PING'))
      nodes[1].client:close()
      assert.has_error(function() nodes[1]:command('PING') end, 'the handle is closed')
      assert.has_error(function() nodes[1]:target() end, 'the handle is closed')
    end)

    it('says in a forked child what was learnt before', function()
      local node = assert(client:nodes())[1]
      local target = node:target()

      local pid = assert(unistd.fork())
      if pid == 0 then
        local _, is_said = pcall(function()
          return node:target() == target and node:is_master()
            and select(2, node:command('PING')).status == 'LK_FORKED'
        end)
        unistd._exit(is_said == true and 0 or 1)
      end
      local _, how, code = posix_wait.wait(pid)

      assert.same({ 'exited', 0 }, { how, code })
    end)

    it('says what scripts tell a channel with', function()
      assert.equal('PUBLISH', client:publish_verb('redisson_lock__channel:{job}'))
    end)
  end)

  describe('of handles', function()
    it('closes them any number of times, and refuses to use them then', function()
      local lock = assert(client:lock('lock', 'job'))

      lock:close()
      lock:close()

      assert.has_error(function() lock:acquire() end, 'the handle is closed')
    end)

    it('lets locks outlive their client', function()
      local lock = assert(client:lock('lock', 'job'))

      client:close()

      assert.equal('LK_CLOSED', select(2, lock:acquire()).status)
    end)

    it('closes what is collected, whatever the order', function()
      local function open_and_forget()
        local owner = assert(latchkey.open(URL, { name = 'collected' }))
        assert(owner:lock('lock', 'job'))
        assert(owner:wait('channel'))
        assert(owner:caller())
      end
      local function count()
        return select(2, world:command('CLIENT', 'LIST'):gsub('name=collected ', ''))
      end
      for _ = 1, 20 do
        open_and_forget()
      end
      assert.is_true(count() > 0)

      collectgarbage()
      collectgarbage()

      local looks = 0 -- the server may see the command before it sees the ends of the connections
      repeat
        looks = looks + 1
      until count() == 0 or looks == 1000
      assert.equal(0, count())
    end)
  end)
end)

describe('the declarations that the binding is given', function()
  local declarations = latchkey.declarations()

  -- A program that prints what the compiler makes of the header, as `what number` lines.
  local function program()
    local lines = { '#include <stddef.h>', '#include <stdio.h>' }
    for _, header in ipairs(dir.getfiles(helper.root .. '/c/include/latchkey', '*.h')) do
      lines[#lines + 1] = '#include <latchkey/' .. path.basename(header) .. '>'
    end
    lines[#lines + 1] = 'int main(void) {'
    local function print_line(what, expression)
      lines[#lines + 1] = ('  printf("%%s %%lld\\n", "%s", (long long)(%s));')
        :format(what, expression)
    end
    for body, name in declarations:gmatch('typedef struct [%w_]+ (%b{}) ([%w_]+);') do
      print_line(name, ('sizeof(%s)'):format(name))
      for member in body:gmatch('[^;{}]+;') do
        local field = member:match('%(%*([%w_]+)%)') or member:match('([%w_]+)%[.-%];$')
          or member:match('([%w_]+);$')
        print_line(name .. '.' .. field, ('offsetof(%s, %s)'):format(name, field))
      end
    end
    for body in declarations:gmatch('typedef enum [%w_]+ (%b{})') do
      for constant in body:gmatch('LK_[%w_]+') do
        print_line(constant, constant)
      end
    end
    lines[#lines + 1] = '}\n'
    return table.concat(lines, '\n')
  end

  local function run(source)
    local base = os.tmpname()
    assert(utils.writefile(base .. '.c', source))
    local command = ("%s -I '%s/c/include' -o '%s' '%s.c' && '%s'")
      :format(os.getenv('CC') or 'cc', helper.root, base, base, base)
    local is_good, _, output, errors = utils.executeex(command)
    os.remove(base)
    os.remove(base .. '.c')
    return assert(is_good and output, errors)
  end

  local function in_lua(what)
    local name, field = what:match('^([%w_]+)%.([%w_]+)$')
    if field then
      return ffi.offsetof(name, field)
    elseif what:find('^LK_') then
      return tonumber(ffi.new('int', ffi.C[what]))
    end
    return ffi.sizeof(what)
  end

  it('have the sizes, offsets and numbers that the C compiler gives them', function()
    local count = 0
    for what, number in run(program()):gmatch('(%S+) (%-?%d+)\n') do
      assert.equal(tonumber(number), in_lua(what), what)
      count = count + 1
    end
    assert.is_true(count > 80)
  end)
end)
