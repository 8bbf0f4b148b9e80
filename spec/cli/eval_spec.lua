-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local signal = require('posix.signal')
local socket = require('posix.sys.socket')
local stringx = require('pl.stringx')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local COUNT = require('support.own_count')
local own_lock = require('support.own_lock')
local program = require('cli.program')

describe('latchkey eval', function()
  after_each(program.clean)

  describe('on a server', function()
    local server

    before_each(function()
      server = program.server()
    end)

    local function eval(...)
      return program.run({ 'eval', '--url', server.url, ... })
    end

    it('runs a script by its name and shows the reply as redis-cli does', function()
      local result = eval('lock/acquire', 'job', ',', '30000', 'me', '1')

      assert.equal(0, result.code)
      assert.equal('1) (integer) 1\n2) (integer) 1\n', result.out)
      assert.equal('1', server:command('HGET', 'job', 'me'))
    end)

    it('forms keys, channel and verb from the name', function()
      eval('lock/acquire', 'job', ',', '30000', 'me', '1')

      local result = eval('lock/release', '--name', 'job', '--lease', '30s', '--owner', 'me',
        '--hold', '0')

      assert.equal('1) (integer) 1\n2) (integer) 0\n', result.out)
      assert.is_true(server:is_free('job'))
    end)

    it('names an argument of another script before one that is missing', function()
      local result = eval('lock/acquire', '--name', 'job', '--token', '7')

      assert.equal(64, result.code)
      assert.truthy(result.err:find('lock/acquire has no argument "token"', 1, true))
    end)

    it('leaves out an argument that need not be given', function()
      local take = { 'fenced/acquire', '--name', 'job', '--lease', '30s', '--hold', '1' }

      local without = eval('--owner', 'me', unpack(take))
      server:command('DEL', 'job')
      local with = eval('--owner', 'you', '--token_ttl', '10m', unpack(take))

      assert.truthy(without.out:find('^1%) %(integer%) 1\n2%) %(integer%) 1\n3%) %(integer%) '))
      assert.equal(0, with.code)
      assert.is_true(tonumber(server:command('PTTL', 'redisson_lock_token:{job}')) > 0)
    end)

    -- A bundle with one script, mutex/release under another name.
    local function bundle_of(name)
      local source, file = program.folder(), program.folder() .. '/shop.tar.gz'
      local text = utils.readfile(program.root .. '/scripts/mutex/release.lua')
      assert(dir.makepath(source .. '/shop'))
      assert(utils.writefile(source .. '/' .. name .. '.lua', (text:gsub('mutex/release', name))))
      assert.equal(0, program.run({ 'bundle', source, '--name', 'shop', '--set-version', '1.0.0',
        '-o', file }).code)
      return file
    end

    it('runs a script of a bundle that is trusted, and no other', function()
      local file = bundle_of('shop/hand_back')
      local call = { 'shop/hand_back', '--name', 'job', '--owner', 'me', '--bundle', file }
      server:command('SET', 'job', 'me')

      local refused = eval(unpack(call))
      local before = server:command('EXISTS', 'job')
      call[#call + 1] = '--allow-unsigned'
      local result = eval(unpack(call))
      local on_mock = program.run({ 'eval', '--mock', unpack(call) })
      call[1] = 'mutex/inspect'
      local other = eval(unpack(call))

      assert.equal(1, refused.code)
      assert.truthy(refused.err:find('unsigned: integrity only', 1, true))
      assert.equal('1', before)
      assert.equal(0, result.code, result.err)
      assert.is_true(server:is_free('job'))
      assert.equal(0, on_mock.code, on_mock.err)
      assert.equal(64, other.code)
    end)

    it('says where there is no place for the scripts of a bundle', function()
      local call = { 'eval', 'shop/hand_back', '--name', 'job', '--owner', 'me', '--url',
        server.url, '--allow-unsigned', '--bundle', bundle_of('shop/hand_back') }

      local result = program.run(call, { env = { TMPDIR = '/no/such/folder' } })
      local without = program.run(call, { env = { TMPDIR = '' } })

      assert.equal(64, result.code)
      assert.truthy(result.err:find('no folder for the bundle: /no/such/folder: No such', 1, true),
        result.err)
      assert.equal(0, without.code, without.err)
    end)

    it('leaves no folder of a bundle, whatever ends it', function()
      local file, temporary = bundle_of('shop/hand_back'), program.folder()
      local path = program.folder() .. '/silent'
      local fd = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
      assert(socket.bind(fd, { family = socket.AF_UNIX, path = path }))
      assert(socket.listen(fd, 8))

      for _, number in ipairs({ signal.SIGINT, signal.SIGKILL }) do
        local process = program.start({ 'eval', 'shop/hand_back', '--name', 'job', '--owner', 'me',
          '--url', 'unix://' .. path, '--allow-unsigned', '--bundle', file },
          { env = { TMPDIR = temporary } })
        program.eventually('the bundle is laid out', function()
          return #dir.getallfiles(temporary) > 0
        end)
        process:kill(number)
        process:wait()

        program.eventually('its folder is gone', function()
          return #dir.getdirectories(temporary) == 0
        end)
      end
      unistd.close(fd)
    end)

    it('asks for the keys of a script where no name forms them', function()
      local result = eval('guard/call', '--name', 'job', '--owner', 'me', '--caller', 'c1',
        '--seq', '1', '--command', 'SET', '--words', 'a')

      assert.equal(64, result.code)
      assert.truthy(result.err:find('write them out', 1, true))
    end)

    it('gives the reply as JSON, whatever bytes are in it', function()
      server:command('HSET', 'job', 'a"\255', '1')

      local result = eval('--json', 'lock/inspect', 'job')

      local document = program.decode(result.out)
      assert.equal('latchkey/eval/1', document.schema)
      assert.same({ 1, -1, 1, 'a"\\xff', '1' }, document.reply)
    end)

    it('gives control characters of the reply as what they are in JSON', function()
      server:command('HSET', 'job', 'a\n\27', '1')
      local control = eval('--json', 'lock/inspect', 'job')
      server:command('DEL', 'job')
      server:command('HSET', 'job', 'a\\x0a\\x1b', '1')
      local words = eval('--json', 'lock/inspect', 'job')

      assert.equal('a\n\27', program.decode(control.out).reply[4])
      assert.equal('a\\x0a\\x1b', program.decode(words.out).reply[4])
      assert.truthy(control.out:find('a\\n\\u001b', 1, true), control.out)
    end)

    it('exits 1 with the error of the script and its line', function()
      server:command('RPUSH', 'job', 'a')

      local misuse = eval('lock/acquire', 'job', ',', '1', 'me', '1')
      local wrong = eval('lock/acquire', 'job', ',', '30000', 'me', '1')
      local json = eval('--json', 'lock/acquire', 'job', ',', '1', 'me', '1')

      assert.equal(1, misuse.code)
      assert.truthy(misuse.out:find('^%(error%) LKARG lease'))
      assert.equal(1, wrong.code)
      assert.truthy(wrong.out:find('^%(error%) .*WRONGTYPE'))
      assert.truthy(wrong.err:find('lock/acquire, line %d+'))
      assert.equal(1, json.code)
      assert.equal('LK_BADARG', program.decode(json.out).error.status)
    end)

    it('runs a script of a folder, too', function()
      local folder = program.folder()
      assert(utils.execute('mkdir ' .. folder .. '/my'))
      assert(utils.writefile(folder .. '/my/count.lua', COUNT))
      server:command('HSET', 'job', 'a', '1', 'b', '2')

      local result = eval('--dir', folder, 'my/count', '--name', 'job')

      assert.equal('1) (integer) 1\n2) (integer) 2\n', result.out, result.err)
    end)
  end)

  local function mock(...)
    return program.run({ 'eval', '--mock', ... })
  end

  describe('of a script with a contract', function()
    local folder

    before_each(function()
      folder = own_lock.folder()
    end)

    after_each(function()
      dir.rmtree(folder)
    end)

    local function eval(...)
      return program.run({ 'eval', '--dir', folder .. '/scripts', ... })
    end

    it('sends its text to a server, with keys and channel as it says', function()
      local server = program.server()

      local taken = eval('--url', server.url, 'acme/acquire', '--name', 'job', '--token', 'me',
        '--ttl', '30s')
      local busy = eval('--url', server.url, 'acme/acquire', '--name', 'job', '--token', 'you',
        '--ttl', '30s')

      assert.same({ 'OK\n', '(nil)\n' }, { taken.out, busy.out }, taken.err)
      assert.equal('me', server:command('GET', 'acme:job:lock'))
      assert.equal('(integer) 1\n', eval('--url', server.url, 'acme/release', '--name', 'job',
        '--token', 'me').out)
    end)

    it('sends the text of a neighbour that has a header, too', function()
      local server = program.server()
      assert(utils.execute(('mkdir %s/scripts/my'):format(folder)))
      assert(utils.writefile(folder .. '/scripts/my/count.lua', COUNT))
      server:command('HSET', 'job', 'a', '1', 'b', '2')
      local file = folder .. '/mixed.tar.gz'
      assert.equal(0, program.run({ 'bundle', folder .. '/scripts', '--name', 'mixed',
        '--set-version', '1.0.0', '-o', file }).code)

      local result = eval('--url', server.url, 'my/count', '--name', 'job')
      local of_bundle = program.run({ 'eval', '--url', server.url, '--allow-unsigned', '--bundle',
        file, 'my/count', '--name', 'job' })
      local of_the_library = eval('--url', server.url, 'lock/inspect', 'job')

      assert.equal('1) (integer) 1\n2) (integer) 2\n', result.out, result.err)
      assert.equal('1) (integer) 1\n2) (integer) 2\n', of_bundle.out, of_bundle.err)
      assert.equal(0, of_the_library.code, of_the_library.err)
    end)

    it('names the line of the text that a server could not run', function()
      own_lock.write(folder, 'renew',
        "local n = ARGV[1] .. ARGV[2]\nreturn redis.call('incr', n)\n")
      local server = program.server()

      server:command('SET', 'a5000', 'word')

      local result = eval('--url', server.url, 'acme/renew', 'k', ',', 'a', '5000', '--json')

      assert.equal(1, result.code)
      assert.equal(2, program.decode(result.out).error.line)
    end)

    it('sends nothing that is out of the contract, as typed calls do', function()
      local server = program.server()

      for words, why in pairs({
        ['--name job --token me --ttl 10ms'] = 'ttl is 50 to 86400000, not "10"',
        ['acme:job:lock , me 86400001'] = 'ttl is 50 to 86400000, not "86400001"',
        ['acme:job:lock , me 5e3'] = 'ttl is 50 to 86400000, not "5e3"',
        [('acme:job:lock , %s 5000'):format(('x'):rep(257))] =
          'token has 1 to 256 bytes, not 257 bytes',
        ['acme:job:lock , me'] = 'acme/acquire takes 2 arguments, not 1',
        ['acme:job:lock , me 5000 more'] = 'acme/acquire takes 2 arguments, not 3',
        [', me 5000'] = 'acme/acquire takes 1 key, not 0',
      }) do
        for _, where in ipairs({ '--mock', '--url ' .. server.url }) do
          local result = eval(unpack(stringx.split(where .. ' acme/acquire ' .. words)))

          assert.equal(64, result.code, words)
          assert.matches(why, result.err, 1, true)
        end
      end
      assert.equal('0', server:command('DBSIZE'))
    end)

    -- acme/renew answers with what it is given, and has these rows of arguments.
    local function takes(rows, key)
      local channel = rows:find(' channel ', 1, true) and 'message:  value\n' or ''
      own_lock.write(folder, 'renew',
        "return table.concat(KEYS, ' ') .. ' , ' .. table.concat(ARGV, ' ')\n",
        { ['  - token  owner  1..256        who has it\n'] = rows,
          ['  - ttl    ms     50..86400000  the new lease\n'] = '',
          ['  - 1  renewed\n  - 0  the caller has it no more\n'] = '  - text  what it is given\n',
          ['acme:{name}:lock'] = key or 'acme:{name}:lock', ['cost: '] = channel .. 'cost: ' })
    end

    local function renew(options)
      return eval('--mock', 'acme/renew', '--name', 'job', unpack(stringx.split(options)))
    end

    local function refuses(options, why)
      local debugged = program.run({ 'debug', '--dir', folder .. '/scripts', 'acme/renew', '--name',
        'job', unpack(stringx.split(options)) })
      for _, result in ipairs({ renew(options), debugged }) do
        assert.equal(64, result.code, result.out)
        assert.matches(why, result.err, 1, true)
      end
    end

    it('forms a channel of an argument, wherever that stands', function()
      takes('  - bell  channel  acme:{name}+waiter  x\n  - waiter  text  1..9  y\n')

      assert.equal('"acme:job:lock , acme:job:w1 w1"\n', renew('--waiter w1').out)
      refuses('', '--waiter is missing')
    end)

    it('forms no name of an argument that is left out', function()
      takes('  - waiter?  text  1..9  y\n', 'acme:{name}+waiter')
      refuses('', '--waiter is missing: it is in the name of "lock"')
      assert.equal('"acme:job:w1 , w1"\n', renew('--waiter w1').out)

      own_lock.write(folder, 'renew', 'return KEYS[1]\n', { ['acme:{name}+waiter'] = 'acme:{name}',
        ['  - waiter?'] = '  - bell?  channel  acme:{name}+waiter  x\n  - waiter?',
        ['cost: '] = 'message:  value\ncost: ' })
      assert.equal('"acme:job"\n', renew('').out)
    end)

    it('refuses an argument behind one that is left out, in whose place it would be', function()
      takes('  - a?  text  1..9  x\n  - b?  count  0..9  y\n'
        .. '  - bell?  channel  acme:{name}  z\n')

      refuses('--b 5', '--a is missing before --b')
      refuses('--a 1 --bell c', '--b is missing before --bell')
      for options, given in pairs({ [''] = '', ['--a 1'] = '1',
        ['--a 1 --b 5'] = '1 5 acme:job' }) do
        assert.equal(('"acme:job:lock , %s"\n'):format(given), renew(options).out)
      end
    end)

    it('refuses a text that its contract is not of, on the mock engine, too', function()
      utils.writefile(folder .. '/scripts/acme/renew.lua', 'return 1\n')

      local result = eval('--mock', 'acme/renew', 'acme:job:lock', ',', 'me', '5000')

      assert.equal(64, result.code, result.out)
      assert.matches('/acme/renew.contract:3: the contract is of another text', result.err, 1, true)
    end)

    it('refuses on the mock engine a reply that the contract does not list', function()
      own_lock.write(folder, 'release', 'return 7\n')

      local result = eval('--mock', 'acme/release', '--name', 'job', '--token', 'me')

      assert.equal(1, result.code)
      assert.matches('lists no such reply: the number 7', result.out, 1, true)
    end)
  end)

  describe('with very many words', function()
    local function count(...)
      local words = { ... }
      for i = 1, 9000 do
        words[#words + 1] = tostring(i)
      end
      return program.run(words)
    end

    it('takes more words than a stack has places', function()
      local folder = program.folder()
      assert(utils.writefile(folder .. '/count.lua', 'return #KEYS + #ARGV'))

      assert.equal('(integer) 9001\n',
        count('eval', '--mock', '--dir', folder, 'count', 'k', ',').out)
    end)

    it('says how many a server is sent, also of a script with a contract', function()
      local folder = own_lock.folder()
      own_lock.write(folder, 'release', 'return #ARGV', { ['message:  value\n'] = '',
        ['bell   channel  acme:{name}:free'] = 'more*  text  0..9  1..9999' })
      local server = program.server()

      local result = count('eval', '--url', server.url, '--dir', folder .. '/scripts',
        'acme/release', 'k', ',')
      dir.rmtree(folder)

      assert.equal(64, result.code)
      assert.matches('1 to 1024 words', result.err, 1, true)
    end)
  end)

  it('says of an argument called like an option how the script is called', function()
    local folder = own_lock.folder()
    own_lock.write(folder, 'renew', "return redis.call('exists', KEYS[1]) + #ARGV - 2\n",
      { ['- token'] = '- name', ['- ttl'] = '- json' })
    local function eval(...)
      return mock('--dir', folder .. '/scripts', ...)
    end

    local formed = eval('acme/renew', '--name', 'job')
    local other = eval('acme/acquire', '--name', 'job', '--token', 'me', '--ttl', '30s')
    local written = eval('acme/renew', 'k', ',', 'me', '5000')
    dir.rmtree(folder)

    assert.equal(64, formed.code)
    assert.matches('"name" is an option', formed.err, 1, true)
    assert.equal('OK\n', other.out, other.err)
    assert.equal('(integer) 0\n', written.out, written.err)
  end)

  it('knows all options that no argument can be called like', function()
    for _, name in ipairs({ 'eval', 'debug' }) do
      local parser = require('latchkey.cli').parser(program.root, name, {})
      local taken = require('latchkey.script.call').OPTIONS
      for _, option in ipairs(parser._options) do
        local called = option._aliases[#option._aliases]:match('^%-%-(.*)$'):gsub('%-', '_')
        assert.truthy(option._target and option._target:find('^field_') or taken[called], called)
      end
    end
  end)

  it('runs on the mock engine without a server', function()
    local result = mock('lock/acquire', '--name', 'job', '--lease', '30s', '--owner', 'me',
      '--hold', '1')

    assert.equal(0, result.code)
    assert.equal('1) (integer) 1\n2) (integer) 1\n', result.out)
  end)

  it('exits 1 for an error on the mock engine', function()
    local result = mock('lock/acquire', 'job', ',', '1', 'me', '1')

    assert.equal(1, result.code)
    assert.truthy(result.out:find('^%(error%) LKARG lease'))
  end)

  describe('of a folder of somebody\'s own', function()
    local folder

    before_each(function()
      folder = program.folder()
      dir.makepath(folder .. '/acme')
      utils.writefile(folder .. '/acme/acquire.lua',
        "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])")
      utils.writefile(folder .. '/acme/renew.lua', '#!lua\n--[[ latchkey-script\nname: renew\n]]')
    end)

    it('runs a file without header, keys and arguments written out', function()
      local result = mock('--dir', folder, 'acme/acquire', 'job', ',', 'me', '1000')

      assert.equal('OK\n', result.out)
      assert.equal(0, result.code)
    end)

    it('names the file where the header would say what to do, and how to begin', function()
      local result = mock('--dir', folder, 'acme/acquire', '--name', 'job')

      assert.equal(64, result.code)
      assert.truthy(result.err:find(folder .. '/acme/acquire.lua has no header', 1, true))
      assert.truthy(result.err:find('--[[ latchkey-script', 1, true))
    end)

    it('says what is wrong with a header, and lets the neighbours be', function()
      local wrong = mock('--dir', folder, 'acme/renew', 'job')
      local there = mock('--dir', folder, 'lock/inspect', '--name', 'job')

      assert.equal(64, wrong.code)
      assert.truthy(wrong.err:find('/acme/renew.lua:3: "renew" is no script name', 1, true))
      assert.equal(0, there.code, there.err)
    end)
  end)

  it('takes values that begin with a "-" behind a "--"', function()
    local result = mock('--', 'lock/acquire', 'job', ',', '-1', 'me', '1')

    assert.equal(1, result.code)
    assert.truthy(result.out:find('^%(error%) LKARG lease'))
  end)

  it('exits 64 for a script that does not exist', function()
    local result = mock('lock/acquir')

    assert.equal(64, result.code)
    assert.truthy(result.err:find('lock/acquir', 1, true))
  end)

  it('exits 64 for what does not fit the header', function()
    local missing = mock('lock/renew', '--name', 'job', '--lease', '30s')
    local foreign = mock('lock/renew', '--name', 'job', '--lease', '30s', '--owner', 'me',
      '--hold', '1')
    local bare = mock('lock/renew', '--name', 'job', '--lease', '30', '--owner', 'me')
    local name = mock('lock/renew', '--name', 'a}b', '--lease', '30s', '--owner', 'me')
    local both = mock('lock/renew', 'job', '--name', 'job')
    local folder = mock('--dir', '/nowhere', 'lock/renew', 'job')

    assert.equal(64, missing.code)
    assert.truthy(missing.err:find('--owner is missing', 1, true))
    assert.equal(64, foreign.code)
    assert.truthy(foreign.err:find('no argument "hold"', 1, true))
    assert.equal(64, bare.code)
    assert.truthy(bare.err:find('not a duration', 1, true))
    assert.equal(64, name.code)
    assert.equal(64, both.code)
    assert.equal(64, folder.code)
  end)
end)
