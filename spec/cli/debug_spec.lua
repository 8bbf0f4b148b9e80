-- SPDX-License-Identifier: Apache-2.0
-- The debugger as people and pipes use it; dap_spec.lua has it as editors do.
local dir = require('pl.dir')
local utils = require('pl.utils')

local program = require('cli.program')
local session = require('cli.session')

-- Without a header; its lines are counted below.
local TAKE = [[
local key = KEYS[1]
local function left()
  return tonumber(redis.call('GET', key) or ARGV[1])
end
local n = left()
if n == 0 then
  return redis.error_reply('EMPTY nothing is left')
end
redis.call('SET', key, n - 1, 'PX', 60000)
return n - 1
]]

describe('latchkey debug', function()
  local folder, screen

  before_each(function()
    folder = program.folder()
    dir.makepath(folder .. '/own')
    utils.writefile(folder .. '/own/take.lua', TAKE)
  end)

  after_each(function()
    if screen then
      screen:close()
      screen = nil
    end
    program.clean()
  end)

  local function run(lines, ...)
    local input = folder .. '/input'
    utils.writefile(input, table.concat(lines, '\n') .. '\n')
    return program.run({ ... }, { input = input })
  end

  local function take(lines, ...)
    local result = run(lines, 'debug', '--dir', folder, 'own/take', 'nails', ',', '3', ...)
    result.out = result.out:gsub(folder:gsub('%p', '%%%0'), 'DIR')
    return result
  end

  -- What is printed behind the head.
  local function told(result)
    return (result.out:gsub('^.-\n%* Stopped at 1, stop reason = start\n', ''))
  end

  it('steps through a script, and says what it asked for, was answered and changed', function()
    local result = take({ 'next', 'n', 's', '', 'print', 'continue' })

    assert.equal([[
own/take  DIR/own/take.lua
KEYS  "nails"
ARGV  "3"
* Stopped at 1, stop reason = start
-> 1   local key = KEYS[1]
* Stopped at 5, stop reason = step over
-> 5   local n = left()
<redis> GET nails
<reply> false
* Stopped at 6, stop reason = step over
-> 6   if n == 0 then
* Stopped at 9, stop reason = step over
-> 9   redis.call('SET', key, n - 1, 'PX', 60000)
<redis> SET nails 2 PX 60000
<reply> {ok = "OK"}
<key> "nails"  string  "2"  60000 ms left
* Stopped at 10, stop reason = step over
-> 10  return n - 1
<value> key = "nails"
<value> left = function (line 2)
<value> n = 3
* Ended with
(integer) 2
]], result.out)
    assert.equal('', result.err)
    assert.equal(0, result.code)
  end)

  it('goes back, and shows the keyspace as it was', function()
    local result = take({ 'break 10', 'c', 'k', 'back', 'k', 'c', 'quit' })

    assert.equal([[
  #10  return n - 1
<redis> GET nails
<reply> false
<redis> SET nails 2 PX 60000
<reply> {ok = "OK"}
<key> "nails"  string  "2"  60000 ms left
* Stopped at 10, stop reason = break point
->#10  return n - 1
+ "nails"  string  "2"  60000 ms left
* Stopped at 9, stop reason = back
-> 9   redis.call('SET', key, n - 1, 'PX', 60000)
(empty)
<redis> SET nails 2 PX 60000
<reply> {ok = "OK"}
<key> "nails"  string  "2"  60000 ms left
* Stopped at 10, stop reason = break point
->#10  return n - 1
]], (told(result):gsub('^%-> 1 [^\n]*\n', '')))
  end)

  it('says what an expression is, runs commands and Lua, and keeps what they did', function()
    local result = take({ 'until 6', 'p n + 1', 'p KEYS', 'e n = 1', 'r SET other 1',
      'advance 2s', 'p', 'next', 'back', 'p n', 'back', 'k', 'p 1 +', 'c' })

    assert.matches('<value> 4\n<value> {"nails"}\n<reply> {ok = "OK"}\n<value> key = "nails"\n'
      .. '<value> left = function %(line 2%)\n<value> n = 1\n', result.out)
    assert.matches('Stopped at 6, stop reason = back\n[^\n]*\n<value> 3\n', result.out)
    assert.matches('Stopped at 5, stop reason = back\n[^\n]*\n%(empty%)\n', result.out)
    assert.matches('<error> [^\n]*unexpected symbol', result.out)
    assert.matches('%(integer%) 2\n$', result.out)
    assert.equal(1, result.code)
  end)

  it('has a keyspace before the call: commands, scripts, and time that passed', function()
    local result = run({ 'write', 'k', 't', 'c' }, 'debug', 'lock/release', '--name', 'jobs',
      '--lease', '30s', '--owner', 'me', '--hold', '0', '--before', 'SET "an other" 1\n+2s',
      '--before', 'lock/acquire --name jobs --lease=30s --owner me --hold 1', '--before', '+5000')

    assert.matches('ARGV  lease="30000" owner="me" hold="0" '
      .. 'channel="redisson_lock__channel:{jobs}" publish="PUBLISH"\n', result.out)
    assert.matches("stop reason = write\n%-> %d+  redis.call%('DEL', lock%)\n"
      .. '  "an other"  string  "1"\n  "jobs"  hash  {me="1"}  25000 ms left\nIn %(script%):\n',
      result.out)
    assert.matches('%-%- {1, hold}: given back', result.out)
    assert.equal(0, result.code)
  end)

  it('stops at the line that fails, and exits with 1', function()
    utils.writefile(folder .. '/own/take.lua', "local a = 1\nreturn redis.call('GET')\n")

    local result = take({ 'c', 'back', 'c' })

    assert.equal('<redis> GET\n<reply> {err = "ERR Wrong number of args calling Redis command '
      .. 'from script", ignore_error_stats_update = true}\n* Stopped at 2, stop reason = error\n',
      told(result):match('(<redis>.-stop reason = error\n)'))
    assert.matches('%* Stopped at 1, stop reason = back', result.out)
    assert.matches('%* Ended with %(error%) ERR Wrong number of args', result.out)
    assert.equal(1, result.code)
  end)

  it('shows what a key was before', function()
    local result = take({ 'until 10', 'keys' }, '--before', 'SET nails 9 PX 500')

    assert.matches('\n~ "nails"  string  "8"  60000 ms left\n    was string  "9"  500 ms left\n',
      result.out)
  end)

  it('exits with 1 when the script answers with an error', function()
    local result = take({ 'c' }, '--before', 'SET nails 0')

    assert.matches('%* Ended with %(error%) EMPTY nothing is left\n$', result.out)
    assert.equal(1, result.code)
  end)

  it('watches a key, lists the source, and says where it stands', function()
    local result = take({ 'watch nails', 'watch', 'l 2 1', 'c', 'trace', 'break 3 if n', 'break',
      'break -3', 'break 0', 'watch -nails', 'watch', 'maxlen 4', 'p "a long text"', 'calls' })

    assert.matches('1 keys watched: "nails"\n', result.out)
    assert.matches('%-> 1   local key = KEYS%[1%]\n   2   local function left%(%)\n   3     return',
      result.out)
    assert.matches('stop reason = watched key\n  nails\n%-> 10  return n %- 1\nIn %(script%):\n',
      result.out)
    assert.matches('1 breakpoints set:\n  #3     return [^\n]*\n       if n\nBreakpoint removed.\n'
      .. 'All breakpoints removed.\n0 keys watched: \nvalues are shown up to 4 bytes\n'
      .. '<value> "a l %.%.%.\n<redis> GET  ?%.%.%.\n', result.out)
    assert.equal(0, result.code)
  end)

  it('shows what a script sends, and whole numbers with all of their digits', function()
    utils.writefile(folder .. '/own/take.lua', "local n = 1763900000000001\n"
      .. "redis.call('SET', KEYS[1], n)\nreturn n\n")

    local result = take({ 'n', 'n', 'print n', 'print 2 ^ 60', 'print {-0, 0.1}', 'c' })

    assert.matches('<redis> SET nails 1763900000000001\n', result.out)
    assert.matches('<value> 1763900000000001\n<value> 1152921504606846976\n'
      .. '<value> {%-0, 0%.1}\n', result.out)
  end)

  it('shows tables without an end up to some values, and asks no metatable', function()
    utils.writefile(folder .. '/own/take.lua', [[
local all = setmetatable({ 1 }, { __index = function(_, k) return k end })
local bad = setmetatable({ x = 1 }, { __index = function() error('boom') end })
local deep = {}
for i = 1, 40 do deep[i] = deep end
return all]])

    local result = take({ 'u 5', 'print all', 'print bad', 'print #deep', 'maxlen 9', 'p deep' })

    assert.matches('\n<value> {1}\n<value> {x = 1}\n<value> 40\n[^\n]*\n'
      .. '<value> {{{{{{{%.%. %.%.%.\n', result.out)
    assert.equal(0, result.code)
  end)

  it('shows no control characters of a script', function()
    utils.writefile(folder .. '/own/take.lua', 'local t = {["\27[1m"] = function()\n'
      .. '  return 1 -- \27[31mred\r\nend}\nreturn t["\27[1m"]()\n')

    local result = take({ 'break 2 if 1 -- \27', 'break', 'c', 'trace', 'whole', 'until \27' })

    assert.truthy(result.out:find('  return 1 -- \\x1b[31mred\n', 1, true), result.out)
    assert.is_nil(result.out:find('[%z\1-\9\11-\31\127]'), result.out)
  end)

  it('names the line for each mistake at the prompt', function()
    local result = take({ 'nonsense', 're', 'until 99', 'until here', 'break 5 n == 1',
      'break 1e400', 'until 0x3', 'advance 99999999999999', 'break -4', 'back', 'watch',
      'watch a b', 'r', "r GET 'x", 'r NOSUCH', 'e', 'advance soon', 'maxlen x', 'list x', 'h' })

    for _, words in ipairs({ 'there is no command "nonsense"; help lists them',
      'there is no command "re"; help lists them',
      'nothing runs at line 99 or below it', '"here" is no line', '"5 n == 1" is no line',
      '"1e400" is no line', '"0x3" is no line', 'No breakpoint in line 4.',
      'advance takes milliseconds or a duration: 99999999999999 is too far',
      'this is the first line', 'watch takes one key', 'redis takes a command',
      '<error> ERR Unknown Redis command called from script', 'eval takes Lua',
      'advance takes milliseconds or a duration', 'maxlen takes a number',
      'list takes a line, and how many around it', 'An empty line repeats' }) do
      assert.truthy(result.out:find('\n' .. words, 1, true), words)
    end
    assert.equal(1, result.code)
  end)

  it('refuses what it cannot debug, and says what to write', function()
    local function refused(words, ...)
      local result = program.run({ 'debug', ... })
      assert.truthy(result.err:find(words, 1, true), words .. ' not in ' .. result.err)
      return result.code
    end

    assert.equal(64, refused('name a script'))
    assert.equal(64, program.run({ 'debug', '--json', 'lock/release' }).code)
    assert.is_nil(program.run({ 'debug', '--help' }).out:find('--json', 1, true))
    assert.equal(64, refused('no script is named "lock/nothing"', 'lock/nothing'))
    assert.equal(64, refused('--dir /nowhere is not a folder', '--dir', '/nowhere', 'own/take'))
    assert.equal(64, refused('--lease is missing', 'lock/release', '--name', 'k'))
    assert.equal(64, refused('own/take has no header, so that --name forms nothing',
      '--dir', folder, 'own/take', '--name', 'k'))
    assert.equal(64, refused('write either --name or keys and arguments', 'lock/renew', 'k', ',',
      '--name', 'k'))
    assert.equal(64, refused('--before "GET": ERR wrong number of arguments', '--before',
      'SET a 1\nGET', 'lock/renew', 'k', ',', '1000', 'me'))
    assert.equal(64, refused('--before "+soon": soon is not a duration', '--before', '+soon',
      'lock/renew', 'k', ',', '1000', 'me'))
    assert.equal(64, refused('--before "a/b": no script is named "a/b"', '--before', 'a/b',
      'lock/renew', 'k', ',', '1000', 'me'))
    assert.equal(64, refused('--dap takes no a script', '--dap', 'lock/renew'))
    assert.equal(64, refused('is not FILE:LINE', '--trace', 'x'))
    assert.equal(64, refused('with a line from 1 on', '--trace', 'x:0'))
    assert.equal(64, refused('--trace /nowhere: No such file', '--trace', '/nowhere:1'))
    assert.equal(64, refused(' lines', '--trace', 'spec/checker/trace.jsonl:99999'))
    assert.equal(64, refused('no call was sent before', '--trace', 'spec/checker/trace.jsonl:1'))
    for _, member in ipairs({ 't', 'script', 'keys', 'args', 'call', 'copy' }) do
      local line = '{"e":"sent","t":1,"client":"c1","call":1,"copy":1,"script":"lock/acquire",'
        .. '"keys":["k"],"args":["1000","me","1"]}'
      utils.writefile(folder .. '/malformed', line .. '\n' .. line:gsub('"' .. member, '"_'))
      assert.equal(64, refused(('/malformed:2: "sent" has no member "%s"'):format(member),
        '--trace', folder .. '/malformed:2'))
    end
    assert.equal(64, refused('--library /nowhere: No such file', '--library', '/nowhere', 'f'))
  end)

  it('is wrong use of a script that is no Lua, and of a library', function()
    utils.writefile(folder .. '/bad.lua', 'return (\n')
    utils.writefile(folder .. '/library.lua', '#!lua name=bad\nreturn (\n')
    for words, call in pairs({ ['bad.lua: ERR Error compiling'] = { folder .. '/bad.lua' },
      ['/library.lua: ERR Error compiling'] = { '--library', folder .. '/library.lua', 'f' },
      ['only a script that begins with #!lua'] = { '--function', folder .. '/own/take.lua' } }) do
      local result = program.run({ 'debug', unpack(call) })

      assert.matches(words, result.err, 1, true)
      assert.equal(64, result.code, words)
    end
  end)

  it('refuses a text that the contract beside it is not of', function()
    utils.writefile(folder .. '/own/take.contract', ('name:     own/take\nversion:  1.0.0\n'
      .. 'sha1:     %s\nsummary:  Take.\nreturns:\n  - integer  what is left\n'
      .. 'cost:     at most 2 commands\ncluster:  one slot\n'):format(('0'):rep(40)))

    for _, words in ipairs({ { '--dir', folder, 'own/take', 'nails', ',', '3' },
      { '--dir', folder, 'own/take', '--name', 'nails' },
      { folder .. '/own/take.lua', 'nails', ',', '3' } }) do
      local result = program.run({ 'debug', unpack(words) })

      assert.equal(64, result.code, result.out)
      assert.matches('/own/take.contract:3: the contract is of another text', result.err, 1, true)
    end
  end)

  it('takes a file by its path, and functions of a library', function()
    assert.matches('%* Ended with\n%(integer%) 2\n$',
      run({ 'c' }, 'debug', folder .. '/own/take.lua', 'nails', ',', '3').out)
    os.rename(folder .. '/own/take.lua', folder .. '/take')
    assert.matches('%* Ended with\n%(integer%) 2\n$',
      run({ 'c' }, 'debug', folder .. '/take', 'nails', ',', '3').out)

    utils.writefile(folder .. '/library.lua', '#!lua name=own\nlocal function double(keys, args)\n'
      .. '  return args[1] * 2\nend\nredis.register_function(\'double\', double)\n')
    local result = run({ 'p args', 'c' }, 'debug', '--library', folder .. '/library.lua', 'double',
      ',', '21')
    assert.matches('%* Stopped at 3, stop reason = start\n%-> 3     return args%[1%] %* 2\n'
      .. '<value> {"21"}\n%* Ended with\n%(integer%) 42\n$', result.out)
    assert.equal(64, program.run({ 'debug', '--library', folder .. '/library.lua', 'no' }).code)
  end)

  it('runs a script as the function that bundles make of it, with the same lines', function()
    local words = { 'debug', 'mutex/release', '--name', 'k', '--owner', 'me', '--before',
      'SET k me PX 5000' }
    local as_script = run({ 'next', 'write', 'next', 'c' }, unpack(words))
    words[#words + 1] = '--function'
    local as_function = run({ 'next', 'write', 'trace', 'next', 'c' }, unpack(words))

    assert.equal(0, as_function.code)
    assert.matches('In %(function at line 2%):\n[^\n]*\n', as_function.out)
    assert.equal(as_script.out, (as_function.out:gsub('In %(function at line 2%):\n[^\n]*\n', '')))
    assert.matches('only a script that begins with #!lua and has a header runs as a function',
      program.run({ 'debug', '--function', folder .. '/own/take.lua' }).err)
  end)

  it('opens a call of a trace, after those before it', function()
    local result = run({ 'k', 'c' }, 'debug', '--trace', 'spec/checker/trace.jsonl:11')

    assert.matches('^lock/acquire  .-\nKEYS  lock="orders"\nARGV  lease="240" owner="lk%-c1:1" '
      .. 'hold="1"\n', result.out)
    assert.matches('  "orders"  hash  {lk%-c1:1="1"}  232 ms left\n', result.out)
    assert.equal(0, result.code)
  end)

  it('opens a replay of the checker at the line that broke the promise', function()
    dir.makepath(folder .. '/mine/lock')
    for _, name in ipairs(dir.getfiles(program.root .. '/scripts/lock')) do
      dir.copyfile(name, folder .. '/mine/lock')
    end
    local file = folder .. '/mine/lock/release.lua'
    local source, count = utils.readfile(file):gsub("if not redis.call%('HGET', lock, owner%) then",
      "if redis.call('DEL', lock) == 0 then")
    assert.equal(1, count)
    utils.writefile(file, source)
    local function replay(...)
      return run({ 'keys', 'n', 'keys' }, 'check', 'lock', '--scripts', folder .. '/mine',
        '--replay', ...)
    end

    local result = replay('A.acq +300 B.acq A.rel', '--debug')

    assert.matches('^G4 violated: ', result.out)
    local opened = result.out:match('(%* Stopped at %d+, stop reason = G4 violated\n.*)$')
    assert.matches("^[^\n]*\n%-> %d+  if redis.call%('DEL', lock%) == 0 then\n"
      .. '  "l"  hash  {lk%-B:1="1"}  199 ms left\n', opened)
    assert.matches('\n%- "l"  %(none%)\n    was hash  {lk%-B:1="1"}  199 ms left\n', opened)
    assert.equal(1, result.code)
    -- Where nothing is wrong, at the beginning of the last call.
    result = replay('A.acq', '--debug')
    assert.matches('lock/acquire  .*stop reason = start\n', result.out)
    assert.equal(0, result.code)
    assert.equal(64, run({}, 'check', 'lock', '--debug').code)
  end)

  it('has a prompt and completion on a terminal', function()
    screen = session.start({ 'debug', '--dir', folder, 'own/take', 'nails', ',', '3' },
      { env = { TERM = 'dumb', INPUTRC = '/dev/null', HOME = folder, XDG_STATE_HOME = false } })
    screen:shows('lua debugger>\n')

    screen:press('cont\t\n')
    screen:shows('%* Ended with\n%(integer%) 2\n')
    screen:press('back\n')
    screen:shows('Stopped at 10, stop reason = back\n')
    screen:press('quit\n')
    assert.equal(0, screen:wait().code)
    assert.truthy(utils.readfile(folder .. '/.local/state/latchkey/debug_history'))
  end)
end)
