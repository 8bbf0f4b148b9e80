-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local fleet = require('cli.fleet')
local program = require('cli.program')
local session = require('cli.session')

describe('latchkey repl', function()
  local screen

  after_each(function()
    if screen then
      screen:close()
      screen = nil
    end
    program.clean()
  end)

  local function run(lines, ...)
    local input = program.folder() .. '/input'
    utils.writefile(input, table.concat(lines, '\n') .. '\n')
    return program.run({ 'repl', ... }, { input = input })
  end

  -- A terminal that readline writes no sequences to, with a home of its own.
  local function start(home, ...)
    screen = session.start({ 'repl', ... },
      { env = { TERM = 'dumb', INPUTRC = '/dev/null', HOME = home, XDG_STATE_HOME = false } })
    screen:shows('latchkey>\n')
    return screen
  end

  it('reads a pipe without prompts, and counts what failed', function()
    local result = run({ "lock.acquire('k', 1000, 'me', 1)", 'advance(400)', 'dump()' })

    assert.equal('1) (integer) 1\n2) (integer) 1\n-- {1, hold}: the owner holds the lock with this '
      .. 'count, for at least the lease\n"k"  hash  {me="1"}   600 ms left\n', result.out)
    assert.equal('', result.err)
    assert.equal(0, result.code)

    assert.equal(1, run({ 'nothing', '1' }).code)
    assert.equal(1, run({ 'for i = 1, 2 do' }).code)
  end)

  it('stops at quit()', function()
    assert.equal('1\n', run({ '1', 'quit()', '2' }).out)
  end)

  it('looks at no variable for a server', function()
    local result = program.run({ 'repl' }, { env = { LATCHKEY_URL = 'redis://127.0.0.1:1' } })

    assert.equal(0, result.code)
  end)

  it('speaks to a server when it is told to', function()
    local server = program.server()

    local result = run({ "mutex.acquire('k', '30s', 'me')", 'dump()', "redis('GET', 'k')",
      'advance(1)', 'reset()' }, '--url', server.url)

    assert.matches('"k"  string  "me"   %d+ ms left\n"me"\nthe time of a server moves by itself\n'
      .. 'a server is not emptied from here\n$', result.out)
    assert.equal(1, result.code)
    assert.equal('me', server:command('GET', 'k'))
  end)

  it('shows the keys of all masters of a cluster', function()
    local cluster = fleet.cluster()
    local names = {}
    for i, master in ipairs(cluster.masters) do
      names[i] = cluster:name_on(master, 'orders')
      master:command('SET', names[i], 'v')
    end

    local result = run({ 'dump()' }, '--url', cluster.url)

    assert.equal(0, result.code, result.out)
    for _, name in ipairs(names) do
      assert.truthy(result.out:find(('"%s"  string  "v"'):format(name), 1, true), result.out)
    end
  end)

  it('shows a hundred fields of a hash on a server, as of lists', function()
    local server = program.server()
    server:command('EVAL', 'for i = 1, 3000 do redis.call("HSET", "h", "f" .. i, "v") end', '0')
    server:command('HSET', 'small', 'a', '1', 'b', '2')

    local result = run({ 'dump()' }, '--url', server.url)

    assert.equal(100, select(2, result.out:gsub('f%d+="v"', '')))
    assert.truthy(result.out:find('"small"  hash  {a="1",b="2"}', 1, true), result.out)
  end)

  it('says what it may not read on a server, where it cannot show it', function()
    local server = program.server()
    server:command('SET', 'k', 'v')

    for _, word in ipairs({ 'scan', 'type', 'get', 'pttl' }) do
      server:command('ACL', 'SETUSER', 'default', '-' .. word)
      local result = run({ 'dump()' }, '--url', server.url)
      server:command('ACL', 'SETUSER', 'default', '+' .. word)

      assert.matches("^%(error%) NOPERM [^\n]*'" .. word .. "' command\n$", result.out)
      assert.equal(1, result.code)
    end
  end)

  it('keeps all digits of large integers of a server, and takes none that lost some', function()
    local server = program.server()

    local result = run({ "redis('SET', 'n', '9007199254740992')", "redis('INCR', 'n')",
      "r = redis('INCR', 'n')", 'r[1]', "redis('SET', 'n', '9223372036854775806')",
      "r = redis('INCR', 'n')", 'r[1]', "redis('DECRBY', 'n', 9007199254740993)" }, '--url',
      server.url)

    assert.equal('OK\n(integer) 9007199254740993\n9007199254740994\nOK\n9223372036854775807\n'
      .. 'numbers from 2^53 on lose digits; write this one in quotes: 9007199254740992\n',
      result.out)
    assert.equal(1, result.code)
    assert.equal('9223372036854775807', server:command('GET', 'n'))
  end)

  it('refuses --json, which its help does not have, and folders that are none', function()
    assert.equal(64, program.run({ 'repl', '--json' }).code)
    assert.is_nil(program.run({ 'repl', '--help' }).out:find('--json', 1, true))
    assert.equal(64, program.run({ 'repl', '--dir', '/nowhere' }).code)
  end)

  -- A folder of scripts that answer with nothing but 1.
  local function folder_of(...)
    local folder = program.folder()
    for _, name in ipairs({ ... }) do
      dir.makepath(folder .. '/' .. name:match('^[^/]+'))
      utils.writefile(('%s/%s.lua'):format(folder, name), ('#!lua\n--[[ latchkey-script\n'
        .. 'name:     %s\nversion:  1.0.0\nsummary:  Nothing.\nkeys:\n'
        .. '  - one  any  r  {name}  what\nreturns:\n  - {1}  done\ncost:     at most 1 command\n'
        .. 'cluster:  one slot\n]]\nreturn {1}\n'):format(name))
    end
    return folder
  end

  it('calls scripts whose verbs are words of Lua', function()
    local folder = folder_of('own/end', 'own/return', 'own/repeat', 'own/not')

    local result = run({ "own.end('k')", "own.return'k'", "x = own.repeat{ name = 'k' }",
      "own.not('k')[1]", "'own.end (' .. tostring(nil ==not (1))" }, '--dir', folder)

    assert.equal('', result.err)
    assert.equal(('1) (integer) 1\n-- {1}: done\n'):rep(2)
      .. '1\n"own.end (false"\n', result.out)
  end)

  it('calls scripts whose families are called like something of Lua or of the prompt', function()
    local names = { 'call/take', 'dump/take', 'end/take', 'redis/take', 'string/take', 'type/take' }
    local folder = folder_of('own/take', unpack(names))
    local lines = { 'help()', "help('string')", "type('x')", "redis('SET', 'k', 'v')" }
    for _, name in ipairs(names) do
      lines[#lines + 1] = ("call('%s', 'k')"):format(name)
    end

    local result = run(lines, '--dir', folder)

    assert.equal(0, result.code, result.out)
    for _, name in ipairs(names) do
      assert.matches(("\ncall('%s', ...) "):format(name), result.out, 1, true)
    end
    assert.is_nil(result.out:find("call('own/take'", 1, true))
    assert.equal("\ncall('string/take', name)\n    Nothing.\n\"string\"\nOK\n"
      .. ('1) (integer) 1\n-- {1}: done\n'):rep(#names),
      result.out:match("\ncall%('string/take', name.*$"))
  end)

  it('has a prompt, completion and history on a terminal', function()
    local home = program.folder()
    start(home)

    screen:press("mutex.ac\t'k', 1000, 'me')\n")
    screen:shows("mutex.acquire%('k', 1000, 'me'%)\n1%) %(integer%) 1\n")
    screen:press('for i = 1, 1 do\n')
    screen:shows('%.%.%.%.%.%.%.%.%.\n')
    screen:press('print(40 + 2) end\n')
    screen:shows('\n42\n')
    screen:press('\4')
    assert.equal(0, screen:wait().code)
    screen:close()

    start(home)
    screen:press('\16\16\16\n') -- three lines back, with control-P
    screen:shows("mutex.acquire%('k', 1000, 'me'%)\n1%) %(integer%) 1\n")
    screen:press('quit()\n')
    assert.equal(0, screen:wait().code)
  end)
end)
