-- SPDX-License-Identifier: Apache-2.0
local fcntl = require('posix.fcntl')
local socket = require('posix.sys.socket')
local stat = require('posix.sys.stat')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

-- Nobody listens there: what is refused "before any network use" never comes so far.
local NOWHERE = 'unix:///nowhere/redis.sock'

describe('latchkey exec, called wrongly or in trouble', function()
  after_each(program.clean)

  local function refused(code, pattern, words, settings)
    local result = program.run({ 'exec', unpack(words) }, settings)
    assert.equal(code, result.code, result.err)
    assert.equal('', result.out)
    assert.truthy(result.err:find(pattern), result.err)
  end

  it('refuses to guess a server, and names both choices', function()
    refused(64, '%-%-url redis://.*local:', { 'job', '--', 'true' })
  end)

  it('takes the server from LATCHKEY_URL', function()
    refused(69, 'nowhere', { '--wait', '0ms', 'job', '--', 'true' },
      { env = { LATCHKEY_URL = NOWHERE } })
  end)

  for _, words in ipairs({ '10', '10x', 's', '', '-1s', '1.5s', '9999999999s', '10 s',
    '1s1m', '1m1m', '1m30', '00', 'FOREVER' }) do
    it(('refuses "%s" as a duration'):format(words), function()
      refused(64, 'not a duration', { '--url', NOWHERE, '--wait', words, 'job', '--', 'true' })
      refused(64, 'not a duration', { '--url', NOWHERE, '--lease', words, 'job', '--', 'true' })
    end)
  end

  for words, ms in pairs({ ['0'] = 0, ['1s250ms'] = 1250, ['250ms'] = 250 }) do
    it(('waits for as long as "%s" says'):format(words), function()
      local server = program.server()
      server:command('SET', 'job', 'another', 'PX', '60000')
      local began = program.now_ms()

      local result = program.run({ 'exec', '--url', server.url, '--kind', 'mutex', '--wait', words,
        'job', '--', 'true' })

      assert.equal(75, result.code, result.err)
      assert.is_true(program.now_ms() - began >= ms)
    end)
  end

  it('waits without end for a lock when that is written, but holds none so long', function()
    local server = program.server()
    server:command('SET', 'job', 'another', 'PX', '1500')

    assert.equal(0, program.run({ 'exec', '--url', server.url, '--kind', 'mutex', '--wait',
      'forever', 'job', '--', 'true' }).code)
    refused(64, 'not a duration', { '--url', NOWHERE, '--lease', 'forever', 'job', '--', 'true' })
  end)

  it('refuses a lease that is out of range', function()
    refused(64, '50ms to 24h', { '--url', NOWHERE, '--lease', '49ms', 'job', '--', 'true' })
    refused(64, '50ms to 24h', { '--url', NOWHERE, '--lease', '25h', 'job', '--', 'true' })
  end)

  it('refuses unknown options, kinds and actions, and options without a value', function()
    refused(64, 'unknown option %-%-nonsense', { '--nonsense', 'job', '--', 'true' })
    refused(64, 'unknown option', { '-z', 'job', '--', 'true' })
    refused(64, 'mutex and permit:N', { '--kind', 'rope', 'job', '--', 'true' })
    refused(64, 'term, kill or warn', { '--on-lost', 'cry', 'job', '--', 'true' })
    refused(64, '%-%-wait needs a value', { 'job', '--wait', '--', 'true' })
  end)

  it('refuses exit codes that are none', function()
    refused(64, '0 to 255', { '--busy-exit', '256', 'job', '--', 'true' })
    refused(64, '0 to 255', { '--lost-exit', 'x', 'job', '--', 'true' })
  end)

  it('refuses a call without a name or a command', function()
    refused(64, '1 to 100 names', { '--url', NOWHERE, '--', 'true' })
    refused(64, 'command to run is missing', { '--url', NOWHERE, 'job' })
    refused(64, 'command to run is missing', { '--url', NOWHERE, 'job', '--' })
  end)

  it('refuses names that cannot be locks before it looks for the server', function()
    for _, name in ipairs({ '', ('x'):rep(513), 'a}b', 'a{b', '{}x' }) do
      refused(64, '.', { '--url', NOWHERE, name, '--', 'true' })
    end
  end)

  it('refuses a name with a line feed, which ends a name in LATCHKEY_LOCK', function()
    refused(64, 'line feed', { '--url', NOWHERE, 'a\nb', '--', 'true' })
  end)

  it('knows options behind a name, also with POSIXLY_CORRECT', function()
    local server = program.server()

    for _, correct in ipairs({ '1', false }) do
      local result = program.run(program.exec(server, { 'nightly', '--wait', '0', 'other', '-q' },
        { 'sh', '-c', 'echo "$LATCHKEY_LOCK"' }), { env = { POSIXLY_CORRECT = correct } })

      assert.equal('nightly\nother\n', result.out)
    end
  end)

  it('refuses more names than it takes', function()
    local words = { '--url', NOWHERE }
    for i = 1, 101 do
      words[#words + 1] = 'n' .. i
    end
    words[#words + 1] = '--'
    words[#words + 1] = 'true'
    refused(64, '1 to 100 names', words)
  end)

  it('names the part of a URL that is wrong, and never shows its password', function()
    local result = program.run({ 'exec', '--url', 'redis://me:hush@host:port', 'job', '--',
      'true' })

    assert.equal(64, result.code)
    assert.truthy(result.err:find('port', 1, true))
    assert.falsy(result.err:find('hush', 1, true))
  end)

  it('writes none of the files of a command whose "--" was forgotten', function()
    local own, theirs = program.folder() .. '/own', program.folder() .. '/theirs'
    local function call(...)
      utils.writefile(own, 'mine')
      utils.writefile(theirs, 'theirs')
      local result = program.run({ 'exec', '--url', NOWHERE, ... })
      assert.equal(64, result.code, result.err)
      return { utils.readfile(own) == 'mine' and 'kept' or 'written',
        utils.readfile(theirs) == 'theirs' and 'kept' or 'written' }
    end

    for _, option in ipairs({ '--report', '--metrics' }) do
      assert.same({ 'kept', 'kept' }, call('job', './audit.sh', '-f', 'all', option, theirs))
      assert.same({ 'kept', 'kept' }, call('job', './audit.sh', option .. '=' .. theirs))
      assert.same({ 'kept', 'kept' }, call('--nonsense', option, theirs))
      assert.same({ 'written', 'kept' }, call(option, own, 'job', './audit.sh', '-f', option,
        theirs))
      assert.same({ 'written', 'kept' }, call(option, own, '--lease', '1', option, theirs, 'job'))
      assert.same({ 'written', 'kept' }, call(option, own))
      -- What stands before a "--" is exec's own.
      assert.same({ 'written', 'kept' }, call('--lease', '1', 'job', option, own, '--', 'true'))
      assert.same({ 'written', 'kept' }, call('job', option, own, '--'))
    end
  end)

  it('refuses a report that cannot be written before it takes the lock', function()
    refused(64, 'nowhere', { '--url', NOWHERE, '--report', '/nowhere/report', 'job', '--', 'true' })
  end)

  it('reports a call that was refused', function()
    local file = program.folder() .. '/report'

    program.run({ 'exec', '--url', NOWHERE, '--report', file, '--wait', '10', 'job', '--', 'true' })

    local report = program.json(file)
    assert.equal('failed', report.outcome)
    assert.equal(64, report.exit)
    assert.equal('LK_INVALID', report.error.status)
  end)

  it('exits 69 when no server is there and it is not to wait, and runs nothing', function()
    refused(69, 'nowhere', { '--url', NOWHERE, '--wait', '0ms', 'job', '--', 'echo', 'ran' })
  end)

  it('exits 69 when the password is wrong, and takes it from elsewhere than the URL', function()
    local server = program.server('--requirepass', 'hush')
    local file = program.folder() .. '/password'
    assert(utils.writefile(file, 'hush\n'))
    local words = { 'exec', '--url', server.url, 'job', '--', 'echo', 'ran' }

    local none = program.run(words)
    local wrong = program.run(words, { env = { LATCHKEY_PASSWORD = 'loud' } })
    local right = program.run(words, { env = { LATCHKEY_PASSWORD = 'hush' } })
    table.insert(words, 2, '--password-file')
    table.insert(words, 3, file)
    local from_file = program.run(words)

    assert.equal(69, none.code)
    assert.equal(69, wrong.code)
    assert.equal('', wrong.out)
    assert.falsy(wrong.err:find('loud', 1, true))
    assert.equal('ran\n', right.out)
    assert.equal('ran\n', from_file.out)
  end)

  it('refuses a password file that has none', function()
    refused(64, 'nowhere', { '--password-file', '/nowhere/password', 'job', '--', 'true' })
    refused(64, 'no password', { '--password-file', '/dev/null', 'job', '--', 'true' })
  end)

  it('refuses a password with a NUL byte, where the library would see its end', function()
    local file = program.folder() .. '/password'
    assert(utils.writefile(file, 'hush\0er\n'))

    refused(64, 'has a NUL byte on its first line',
      { '--password-file', file, 'job', '--', 'true' })
  end)

  it('exits 64 when the key holds something else, and leaves it', function()
    local server = program.server()
    server:command('RPUSH', 'job', 'a')

    local result = program.run(program.exec(server, { 'job' }, { 'echo', 'ran' }))

    assert.equal(64, result.code)
    assert.equal('', result.out)
    assert.equal('list', server:command('TYPE', 'job'))
  end)

  it('exits 69 when the server is out of memory', function()
    local server = program.server()
    server:command('CONFIG', 'SET', 'maxmemory', '1')

    local result = program.run(program.exec(server, { '--wait', '0ms', 'job' }, { 'echo', 'ran' }))

    assert.equal(69, result.code)
    assert.equal('', result.out)
  end)

  it('names a command that the server does not know', function()
    local server = program.server('--rename-command', 'SCRIPT', '')

    refused(69, 'does not know SCRIPT LOAD', { '--url', server.url, '--wait', '0ms', 'job', '--',
      'true' })
  end)

  for command, calls in pairs({
    HSET = { 'exec --wait 0ms job -- true', 'exec --kind fair --wait 0ms job -- true' },
    TIME = { 'inspect job', 'break job --yes' } }) do
    it('does not call it a defect that the server does not know ' .. command, function()
      local server = program.server('--rename-command', command, '')
      for _, call in ipairs(calls) do
        local words = utils.split(call)
        table.insert(words, 2, '--url=' .. server.url)

        local result = program.run(words)

        assert.same({ call, 69 }, { call, result.code })
        assert.truthy(result.err:find('the server does not know a command of %l+/%l[%l_]*, line %d+'
          .. ': misspelt, renamed, or switched off; latchkey doctor'), result.err)
        assert.falsy(result.err:find('report it', 1, true), result.err)
      end
    end)
  end

  it('locks where the server does not know CLIENT, which is for the name alone', function()
    local server = program.server('--rename-command', 'CLIENT', '')

    local result = program.run(program.exec(server, { '--wait', '0ms', 'job' }, { 'echo', 'ran' }))

    assert.equal('ran\n', result.out)
    assert.equal(0, result.code)
  end)

  it('names maxclients where the server takes no more clients', function()
    local server = program.server()
    -- One connection stays, and is all that there may be.
    local holder = program.start(program.exec(server, { 'other' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('other')
    end)
    server:command('CONFIG', 'SET', 'maxclients', '1')

    for _, words in ipairs({ { 'exec', '--wait', '0ms', 'job', '--', 'true' },
      { 'exec', '--wait', '0ms', '--json', 'job', '--', 'true' }, { 'ls' } }) do
      table.insert(words, 2, '--url')
      table.insert(words, 3, server.url)
      -- The server says it and hangs up: a client that writes just then learns only the latter.
      local result = program.eventually('it reads what the server says', function()
        local one = program.run(words)
        assert.equal(69, one.code, one.err)
        return one.err:find('max number of clients reached', 1, true) and one
      end)
      assert.truthy(result.err:find("raise the server's maxclients", 1, true), result.err)
      assert.falsy(result.err:find('check the address', 1, true), result.err)
    end
    assert.is_false(holder:poll())
  end)

  -- As where `ulimit -v` is too low: the stack of a thread, which `ulimit -s` makes as large as no
  -- memory is, finds no room. ThreadSanitizer finds none for itself then.
  local no_room = program.sanitizer() == 'thread' and function() end or it
  no_room('names memory among the limits where no thread can be started', function()
    local words = program.exec(program.server(), { 'job' }, { 'echo', 'ran' })

    local result = program.start_any('sh', { '-c', 'ulimit -s 200000000000 && exec "$@"', 'sh',
      program.path, unpack(words) }):wait()

    assert.equal(70, result.code, result.err)
    assert.equal('', result.out)
    assert.truthy(result.err:find('no thread: ', 1, true), result.err)
    assert.truthy(result.err:find('memory (ulimit -v)', 1, true), result.err)
  end)

  it('exits 69 when its user may not do that', function()
    local server = program.server()
    server:command('ACL', 'SETUSER', 'default', '-evalsha', '-eval')

    local result = program.run(program.exec(server, { '--wait', '0ms', 'job' }, { 'echo', 'ran' }))

    assert.equal(69, result.code)
    assert.equal('', result.out)
  end)

  local function pipe()
    local name = program.folder() .. '/pipe'
    assert(stat.mkfifo(name, tonumber('600', 8)))
    return name
  end

  for _, option in ipairs({ '--report', '--spans' }) do
    it(('refuses %s into a pipe that nobody reads'):format(option), function()
      refused(64, option:gsub('%-', '%%-') .. ' .* No such device or address',
        { '--url', NOWHERE, option, pipe(), 'job', '--', 'true' })
    end)
  end

  it('writes its report into a pipe that is read', function()
    local server, name = program.server(), pipe()
    local reader = assert(fcntl.open(name, fcntl.O_RDONLY + fcntl.O_NONBLOCK))

    local result = program.run(program.exec(server, { '--report', name, 'job' }, { 'true' }))

    local text = unistd.read(reader, 16384)
    unistd.close(reader)
    assert.equal(0, result.code)
    assert.equal('done', program.decode(text).outcome)
  end)

  for _, option in ipairs({ '--report', '--metrics' }) do
    it(('ends though nobody reads what %s writes, and has released the lock'):format(option),
      function()
      local server = program.server()
      local reader, writer = unistd.pipe()
      fcntl.fcntl(writer, fcntl.F_SETFL, fcntl.O_NONBLOCK)
      while unistd.write(writer, ('x'):rep(4096)) do end
      fcntl.fcntl(writer, fcntl.F_SETFL, 0)
      local process = program.start(program.exec(server, { option, '/dev/stderr', 'job' },
        { 'echo', 'ran' }), { err = writer })

      local ended, result = pcall(process.wait, process, 15)
      local flags = fcntl.fcntl(writer, fcntl.F_GETFL)
      unistd.close(reader)
      unistd.close(writer)
      assert.is_true(ended, result)
      assert.same({ 0, 'ran\n' }, { result.code, result.out })
      assert.is_true(server:is_free('job'))
      -- Others write there, too: whether they wait is theirs to say.
      assert.equal(0, bit.band(flags, fcntl.O_NONBLOCK))
    end)
  end

  it('writes a report that is larger than a pipe into one that is read late', function()
    local server = program.server()
    local words = {}
    for i, word in ipairs(program.exec(server, { '--report', '/dev/stderr', 'job' }, { 'true' })) do
      words[i] = utils.quote_arg(word)
    end
    local result = program.start_any('sh', { '-c', ('%s %s %s 2>&1 >/dev/null | '
      .. '{ sleep 0.3; cat; }'):format(program.path, table.concat(words, ' '),
        ('y'):rep(120000)) }):wait()

    assert.equal(120000, #program.decode(result.out).command[2])
  end)

  it('writes its metrics into a pipe that is read, and leaves it a pipe', function()
    local server, name = program.server(), pipe()
    local reader = assert(fcntl.open(name, fcntl.O_RDONLY + fcntl.O_NONBLOCK))

    local result = program.run(program.exec(server, { '--metrics', name, 'job' }, { 'false' }))

    local text = unistd.read(reader, 65536)
    unistd.close(reader)
    assert.equal(1, result.code)
    assert.truthy(text:find('latchkey_exec_exit_code{lock="job"} 1', 1, true), text)
    assert.equal(1, stat.S_ISFIFO(stat.stat(name).st_mode))
  end)

  for _, option in ipairs({ '--report', '--metrics' }) do
    it(('keeps a log that %s is written into, too'):format(option), function()
      local server, log = program.server(), program.folder() .. '/log'
      assert(utils.writefile(log, 'before\n'))
      local own = assert(fcntl.open(log, fcntl.O_WRONLY + fcntl.O_APPEND))

      for _, name in ipairs({ '/dev/stderr', log }) do
        local result = program.run(program.exec(server, { option, name, 'job' },
          { 'sh', '-c', 'echo work >&2' }), { err = own })
        assert.equal(0, result.code)
      end

      unistd.close(own)
      local text = assert(utils.readfile(log))
      assert.truthy(text:find('^before\nwork\n.+\nwork\n[^\n]'), text)
    end)
  end

  it('waits for nobody at a pipe in the place of its metrics', function()
    local server, name = program.server(), pipe()
    server:command('SET', 'job', 'another', 'PX', '60000')

    local result = program.run(program.exec(server, { '--kind', 'mutex', '--wait', '0', '--metrics',
      name, 'job' }, { 'true' }))

    assert.equal(75, result.code)
    assert.truthy(result.err:find('the metrics ' .. name .. ' were not written', 1, true))
    assert.equal(1, stat.S_ISFIFO(stat.stat(name).st_mode))
  end)

  it('writes a JSON document and its line feed at once', function()
    -- Each write is a datagram.
    local own, theirs = assert(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM, 0))

    local result = program.run({ 'exec', '--url', NOWHERE, '--json', '--wait', '0', 'job', '--',
      'true' }, { err = theirs })

    local first = unistd.read(own, 16384)
    unistd.close(own)
    unistd.close(theirs)
    assert.equal(69, result.code)
    assert.truthy(first:find('^{.*}\n$'), first)
  end)

  for name, shown in pairs({
    [('x'):rep(199) .. '\u{e4}y'] = ('x'):rep(199),
    [('x'):rep(198) .. '\u{20ac}y'] = ('x'):rep(198),
    [('x'):rep(197) .. '\u{1f512}y'] = ('x'):rep(197),
    [('x'):rep(198) .. '\u{e4}y'] = ('x'):rep(198) .. '\u{e4}',
    [('\u{e4}'):rep(99)] = ('\u{e4}'):rep(99),
  }) do
    it(('cuts a name of %d bytes between two characters'):format(#name), function()
      local server = program.server()
      server:command('SET', name, 'another', 'PX', '60000')

      local result = program.run(program.exec(server, { '--kind', 'mutex', '--wait', '0', '--json',
        name }, { 'true' }))

      assert.equal(75, result.code)
      assert.equal(('"%s" is held by another owner'):format(shown),
        program.decode(result.err).error.message)
    end)
  end

  it('explains itself with --help, and does nothing else', function()
    local result = program.run({ 'exec', '--help' })

    assert.equal(0, result.code)
    assert.truthy(result.out:find('^Usage: latchkey exec'))
    for _, option in ipairs({ 'kind', 'wait', 'lease', 'on%-lost', 'busy%-exit', 'lost%-exit',
      'report', 'url', 'password%-file', 'json' }) do
      assert.truthy(result.out:find('%-%-' .. option), option)
    end
  end)
end)
