-- SPDX-License-Identifier: Apache-2.0
local catalog = require('latchkey.script.catalog')
local header = require('latchkey.script.header')
local mock = require('latchkey.repl.mock')
local call = require('latchkey.repl.call')
local Session = require('latchkey.repl.session')

local helper = require('helper')

describe('a session of latchkey repl', function()
  local scripts = assert(catalog.read(helper.scripts))
  local session, world, said

  before_each(function()
    said = {}
    world = mock.new({ scripts = helper.scripts })
    session = Session.new(world, scripts, function(line)
      said[#said + 1] = line
    end)
  end)

  local function type_in(...)
    said = {}
    for _, line in ipairs({ ... }) do
      session:run(line)
    end
    return table.concat(said, '\n')
  end

  it('runs a script with keys formed from the name, and says what the reply means', function()
    local shown = type_in("lock.acquire('k', 1000, 'me', 1)")

    assert.equal('1) (integer) 1\n2) (integer) 1\n-- {1, hold}: the owner holds the lock with this '
      .. 'count, for at least the lease', shown)
    assert.left(world, { k = helper.hash({ me = '1' }, 1000) })
  end)

  it('forms channels and verb, and shows what was published', function()
    type_in("lock.acquire('k', '10s', 'me', 1)")

    assert.matches('\nPUBLISH redisson_lock__channel:{k}: "0"$',
      type_in("lock.release('k', '10s', 'me', 0)"))
  end)

  it('takes arguments by their names, those that are formed as well', function()
    type_in("lock.acquire{ name = 'k', lease = 500, owner = 'me', hold = 1 }")

    assert.matches('\nSPUBLISH redisson_lock__channel:{k}: "0"$', type_in(
      "lock.release{ name = 'k', lease = 500, owner = 'me', hold = 0, publish = 'SPUBLISH' }"))
  end)

  it('takes several names where a script does, with a channel for each', function()
    type_in("lock.acquire_all({ 'a{x}', 'b{x}' }, 1000, 'me', 1)")

    assert.matches('PUBLISH redisson_lock__channel:a{x}: "0"\n'
      .. 'PUBLISH redisson_lock__channel:b{x}: "0"$',
      type_in("lock.release_all({ 'a{x}', 'b{x}' }, 1000, 'me', 0)"))
  end)

  it('calls a verb that is a word of Lua, too', function()
    type_in("lock.acquire('k', 1000, 'me', 1)")

    assert.matches('%-%- {1}: broken', type_in("lock.break('k', 'me')"))
  end)

  it('moves the time, shows the keys and starts again', function()
    assert.equal('"k"  hash  {me="1"}   500 ms left',
      type_in("lock.acquire('k', 1000, 'me', 1)", 'advance(500)', 'dump()'):match('"k".*'))
    assert.equal('(empty)', type_in("advance('1s')", 'dump()'))
    assert.equal('(empty)', type_in("redis('SET', 'x', 1)", 'reset()', 'dump()'):match('%(em.*'))
  end)

  it('keeps what is assigned, and looks into replies', function()
    assert.equal('1', type_in("r = lock.acquire('k', 1000, 'me', 1)", 'r[1]'))
    assert.equal('"y"', type_in("redis('SET', 'x', 'y')", "redis('GET', 'x')"):match('"y"'))
    assert.equal('nil', type_in('r[3]'))
  end)

  it('waits for the end of what is not complete', function()
    assert.is_false((session:run('for i = 1, 2 do')))
    assert.equal('1\n2', type_in('for i = 1, 2 do\nprint(i)\nend'))
  end)

  it('waits for the end of an expression that no statement begins with', function()
    for _, line in ipairs({ "'a' ..", '1 +', '{ 1,', '-' }) do
      assert.is_false((session:run(line)), line)
    end
    assert.equal('"ab"', type_in("'a' ..\n'b'"))
  end)

  it('does not wait behind what can have no end', function()
    for _, line in ipairs({ 'end', 'print(1) end', 'return 1 2', "'a' .. )", "x = 'a' 'b' .." }) do
      local done, failed = session:run(line)

      assert.is_true(done, line)
      assert.is_true(failed, line)
    end
    assert.matches("^'<eof>' expected near 'end'$", type_in('end'))
  end)

  it('shows whole numbers with all of their digits', function()
    assert.equal('1763900000000001', type_in('1763900000000001'))
    assert.equal('0.5\n10000000000000000\ninf', type_in('0.5', '10 ^ 16', '1 / 0'))
  end)

  it('moves the time by whole milliseconds, and not beyond all measure', function()
    local now_ms = world:now_ms()

    for line, words in pairs({ ['advance()'] = '^advance takes whole milliseconds or a duration',
      ['advance(-1)'] = '^advance takes whole milliseconds', ['advance(1e400)'] = '^advance takes',
      ['advance(0 / 0)'] = '^advance takes', ['advance(0.5)'] = '^advance takes',
      ['advance(2 ^ 41 + 1)'] = '^2199023255553 is too far: 2%^41 ms %(69 years%) at most$',
      ["advance('99999999999999999999')"] = 'is too far', ["advance('2 s')"] = 'no.* duration' }) do
      assert.matches(words, type_in(line))
    end
    assert.equal(now_ms, world:now_ms())
  end)

  it('shows no control characters of an error', function()
    assert.equal('\\x1b[31mred\nsecond line', type_in('error("\\27[31mred\\nsecond line", 0)'))
    assert.is_nil(type_in('a b \27'):find('\27', 1, true))
  end)

  it('says what is wrong, and where a script failed', function()
    local _, failed = session:run('nothing')

    assert.is_true(failed)
    assert.equal('nothing is named nothing; help() says what there is', said[1])
    assert.equal('no script is named lock/steal', type_in("lock.steal('k')"))
    assert.equal('lock.acquire(name, lease, owner, hold): hold is missing',
      type_in("lock.acquire('k', 1000, 'me')"))
    assert.equal('lock.acquire(name, lease, owner, hold): one value too many',
      type_in("lock.acquire('k', 1000, 'me', 1, 2)"))
    assert.equal('lock/acquire has no argument lock',
      type_in("lock.acquire{ name = 'k', lease = 1, owner = 'me', hold = 1, lock = 2 }"))
    assert.equal('the name is empty', type_in("lock.acquire('', 1000, 'me', 1)"))
    assert.equal('unexpected symbol near \'+\'', type_in('+'))
    assert.matches('^%(error%) LKARG lease', type_in("lock.acquire('k', 1, 'me', 1)"))
    assert.matches('^%(error%) WRONGTYPE .-\n%-%- lock/acquire, line %d+$',
      type_in("redis('SET', 'k', 1)", "lock.acquire('k', 1000, 'me', 1)"):match('%(error.*'))
    assert.matches('^%(error%) ERR unknown command', type_in("redis('NOSUCH')"))
    assert.equal("redis takes a command: redis('GET', 'k')", type_in('redis()'))
    assert.equal('keys and arguments are strings or numbers', type_in("redis('GET', {})"))
    assert.matches('^1x is not a duration;', type_in("lock.acquire('k', '1x', 'me', 1)"))
  end)

  it('does not reach files or processes', function()
    for _, name in ipairs({ 'io', 'os', 'require', 'dofile', 'load', 'package', 'debug', 'ffi' }) do
      assert.matches('^nothing is named', type_in(name))
    end
  end)

  it('completes families, scripts and functions', function()
    assert.same({ 'lock.' }, session:completions('lo'))
    assert.same({ 'mutex.release(', 'mutex.renew(' }, session:completions('mutex.re'))
    assert.same({ 'redis(', 'reset()' }, session:completions('re'))
    assert.same({}, session:completions('nothing'))
  end)

  it('explains what there is', function()
    assert.matches('dump%(%)', type_in('help()'))
    assert.matches('mutex%.renew%(name, lease, owner%)\n    Extend', type_in('help(mutex)'))
    assert.matches('{1}   ', type_in("help('mutex/renew')"))
    assert.equal('no script is named mutex/none', type_in("help('mutex/none')"))
  end)

  it('ends when told', function()
    type_in('quit()')

    assert.is_true(session.over)
  end)

  describe('a script with rows of its own', function()
    local function forms(rows, ...)
      local message = rows:find(' channel ', 1, true) and 'message: value\n' or ''
      local h = assert(header.parse('#!lua\n--[[ latchkey-script\nname: acme/renew\n'
        .. 'version: 1.0.0\nsummary: Renew.\nkeys:\n  - lock  string  rw  acme:{name}\nargv:\n'
        .. rows .. 'returns:\n  - 1  done\n' .. message .. 'repeat: id\ncost: at most 1 commands\n'
        .. 'cluster: one slot\n]]\n', 'acme/renew.lua'))
      local ok, keys, args = pcall(call.form, { name = 'acme/renew', header = h }, ...)
      return ok and table.concat(keys, ' ') .. ' , ' .. table.concat(args, ' ') or keys
    end

    it('forms a channel of an argument, wherever that stands', function()
      local rows = '  - bell  channel  acme:{name}+waiter  x\n  - waiter?  text  1..9  y\n'

      assert.equal('acme:job , acme:job:w1 w1', forms(rows, 'job', 'w1'))
      assert.equal('acme:job , acme:job:w1 w1', forms(rows, { name = 'job', waiter = 'w1' }))
      assert.equal('acme.renew(name, waiter?): waiter is missing, which the name of bell needs',
        forms(rows, 'job'))
    end)

    it('refuses an argument behind one that is left out, in whose place it would be', function()
      local rows = '  - a?  text  1..9  x\n  - b?  count  0..9  y\n'
        .. '  - bell?  channel  acme:{name}  z\n'

      assert.equal('acme.renew(name, a?, b?): a is missing before b', forms(rows, 'job', nil, 5))
      assert.equal('acme.renew(name, a?, b?): b is missing before bell',
        forms(rows, { name = 'job', a = 1, bell = 'c' }))
      assert.equal('acme:job , ', forms(rows, 'job'))
      assert.equal('acme:job , 1', forms(rows, 'job', 1))
      assert.equal('acme:job , 1 5 acme:job', forms(rows, 'job', 1, 5))
    end)

    it('takes a list by its name for what stands for many', function()
      local rows = '  - ids*  id  1..9  1..9  x\n'

      assert.equal('acme:job , a b', forms(rows, { name = 'job', ids = { 'a', 'b' } }))
      assert.equal('acme:job , a b', forms(rows, 'job', 'a', 'b'))
      assert.equal('ids is a string or a number', forms(rows, 'job', 'a', {}))
      assert.equal('ids is a string or a number', forms(rows, 'job', nil, 'b'))
    end)
  end)

  for _, script in ipairs(scripts) do
    it('has a call for ' .. script.name, function()
      local values = {}
      for i, field in ipairs(script.header.argv) do
        if not (field.form or field.type == 'verb') then
          values[#values + 1] = i
        end
      end
      local needs_keys = not pcall(call.form, script, 'k', unpack(values))

      local keys = call.form(script, needs_keys and { 'a', 'b' } or 'k', unpack(values))

      assert.is_true(#keys > 0)
    end)
  end
end)
