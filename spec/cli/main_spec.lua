-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey', function()
  after_each(program.clean)

  it('lists every command', function()
    for _, words in ipairs({ {}, { '--help' }, { 'help' } }) do
      local result = program.run(words)

      assert.equal(0, result.code)
      assert.truthy(result.out:find('\n  exec +%l'))
      local folder = program.root .. '/tools/latchkey/cli/commands'
      for _, file in ipairs(dir.getfiles(folder, '*.lua')) do
        local name = path.splitext(path.basename(file))
        assert.truthy(result.out:find('\n  ' .. name .. ' +%l'), name)
      end
    end
  end)

  it('says its version', function()
    local result = program.run({ '--version' })

    assert.equal(0, result.code)
    assert.equal('latchkey ' .. utils.readfile(program.root .. '/VERSION'), result.out)
  end)

  it('exits 74 when its result could not be written', function()
    for _, words in ipairs({ '--version', 'exec --help', 'acl job' }) do
      local line = program.path .. ' ' .. words .. ' >/dev/full'

      local result = program.start_any('sh', { '-c', line }):wait()

      assert.equal(74, result.code, words)
      assert.truthy(result.err:find('the result could not be written: ', 1, true), result.err)
    end
  end)

  -- What a script tests by its code alone must not be taken for an answer that nobody could read.
  it('says so and exits 74 whatever the code of the result is', function()
    local server = program.server()
    local wrong = program.folder() .. '/wrong.lua'
    assert(utils.writefile(wrong, 'return nothing\n'))
    for words, code in pairs({ ['inspect nobody --json --url ' .. server.url] = 3,
      ['inspect nobody --url ' .. server.url] = 3,
      ['ls --json --url redis://127.0.0.1:1'] = 69, ['lint ' .. wrong] = 1,
      ['bench --json --seconds 0'] = 64 }) do
      local line = program.path .. ' ' .. words

      local read = program.start_any('sh', { '-c', line }):wait()
      local unread = program.start_any('sh', { '-c', line .. ' >/dev/full' }):wait()

      assert.same({ words, code, 74 }, { words, read.code, unread.code })
      assert.truthy(unread.err:find('latchkey: the result could not be written: No space left',
        1, true), unread.err)
    end
  end)

  it('says why its result could not be written, as it was at the first failure', function()
    local url = ' --url ' .. program.server().url
    for _, words in ipairs({ 'exec --help', 'help exec', 'top --once' .. url, 'ls --json' .. url,
      'mock', 'ls --help' }) do
      local result = program.start_any('sh', { '-c', program.path .. ' ' .. words .. ' >&-' })
        :wait()

      assert.same({ words, 74 }, { words, result.code })
      assert.truthy(result.err:find('latchkey: the result could not be written: Bad file desc',
        1, true), result.err)
    end
  end)

  it('names the command that was probably meant', function()
    local result = program.run({ 'inspct' })

    assert.equal(64, result.code)
    assert.equal('', result.out)
    assert.truthy(result.err:find('did you mean "inspect"', 1, true))
  end)

  it('names the option that was probably meant, on the line of what is wrong', function()
    local result = program.run({ 'bind', '--dri' })

    assert.equal(64, result.code)
    assert.equal("latchkey bind: unknown option '--dri'; did you mean '--dir'?\n"
      .. '  latchkey bind --help lists the options\n', result.err)
  end)

  it('guesses nothing for a word that is like no command', function()
    local result = program.run({ 'xyzzyplugh' })

    assert.equal(64, result.code)
    assert.falsy(result.err:find('did you mean', 1, true))
  end)

  it('explains each command with --help', function()
    for _, file in ipairs(dir.getfiles(program.root .. '/tools/latchkey/cli/commands', '*.lua')) do
      local name = path.splitext(path.basename(file))

      local result = program.run({ name, '--help' })

      assert.equal(0, result.code)
      assert.truthy(result.out:find('^Usage: latchkey ' .. name))
      local is_for_people = name == 'repl' or name == 'debug'
      assert.equal(not is_for_people, result.out:find('--json', 1, true) ~= nil, name)
    end
  end)

  it('explains each command by its help, -h and --help alike, within 80 columns', function()
    for name in program.run({ 'help' }).out:gmatch('\n  (%l+) ') do
      local help = program.run({ 'help', name })

      assert.equal(0, help.code, name)
      assert.equal(help.out, program.run({ name, '-h' }).out)
      assert.equal(help.out, program.run({ name, '--help' }).out)
      for line in help.out:gmatch('[^\n]+') do
        assert.is_true(#line <= 80, name .. ': ' .. line)
      end
    end
    assert.equal(64, program.run({ 'help', 'nonsense' }).code)
  end)

  it('takes the URL before the command as well as behind it', function()
    local server = program.server()
    for _, words in ipairs({ { '--url', server.url, 'ls' }, { '--url=' .. server.url, 'ls' },
      { '--url', server.url, 'exec', 'job', '--', 'true' } }) do
      local result = program.run(words)

      assert.equal(0, result.code, result.err)
    end
    assert.equal(64, program.run({ '--url', server.url }).code)
  end)

  it('exits 64 for an unknown option of a command, as JSON with --json', function()
    local plain = program.run({ 'ls', '--nonsense' })
    local json = program.run({ 'ls', '--nonsense', '--json' })

    assert.equal(64, plain.code)
    assert.equal('', plain.out)
    assert.truthy(plain.err:find('nonsense', 1, true))
    assert.equal(64, json.code)
    assert.equal('', json.err)
    local document = program.decode(json.out)
    assert.equal('latchkey/ls/1', document.schema)
    assert.equal('LK_INVALID', document.error.status)
  end)

  it('takes no word behind -- for its option --json', function()
    local result = program.run({ 'eval', '--mock', 'mutex/inspect', '--', '--json', ',' })

    assert.equal(0, result.code, result.err)
    assert.is_nil(result.out:find('{', 1, true), result.out)
  end)

  it('runs no Lua file of the current folder or of LUA_PATH', function()
    local folder = program.folder()
    for _, name in ipairs({ 'argparse', 'cjson', 'pl', 'lib' }) do
      assert(utils.writefile(folder .. '/' .. name .. '.lua', 'error("run")'))
    end
    local words = 'cd "$1" && exec "$2" lint --rules'

    local result = program.start_any('sh', { '-c', words, 'sh', folder, program.path },
      { env = { LUA_PATH = folder .. '/?.lua', LUA_INIT = 'error("run")' } }):wait()

    assert.equal(0, result.code, result.err)
  end)

  it('says so when its tools are not where LATCHKEY_HOME says', function()
    local result = program.run({ 'ls' }, { env = { LATCHKEY_HOME = '/nowhere' } })

    assert.equal(70, result.code)
    assert.truthy(result.err:find('LATCHKEY_HOME', 1, true))
  end)

  it('refuses to guess a server, and names both choices', function()
    for _, words in ipairs({ { 'ls' }, { 'status' }, { 'load' }, { 'inspect', 'job' },
      { 'break', 'job' }, { 'eval', 'lock/inspect', 'job' } }) do
      local result = program.run(words)

      assert.equal(64, result.code)
      assert.truthy(result.err:find('--url redis://', 1, true))
      assert.truthy(result.err:find('--url local:', 1, true))
    end
  end)

  it('exits 69 when the server is not there or refuses', function()
    local server = program.server('--requirepass', 'hush')
    for _, words in ipairs({ { 'ls' }, { 'status' }, { 'load' }, { 'inspect', 'job' },
      { 'break', 'job' }, { 'eval', 'lock/inspect', 'job' } }) do
      local absent = program.run(words, { env = { LATCHKEY_URL = 'unix:///nowhere/redis.sock' } })
      local closed = program.run(words, { env = { LATCHKEY_URL = server.url } })
      local open = program.run(words, { env = { LATCHKEY_URL = server.url,
        LATCHKEY_PASSWORD = 'hush' } })

      assert.equal(69, absent.code)
      assert.equal(69, closed.code)
      assert.not_equal(69, open.code)
    end
  end)

  it('takes the password of all servers from a pipe', function()
    local urls = {}
    for i = 1, 3 do
      urls[i] = program.server('--requirepass', 'hush').url
    end
    for command, list in pairs({ ['inspect job'] = 'servers', status = 'nodes' }) do
      local result = program.start_any('sh', { '-c', ('echo hush | "$0" %s --json --url "$1" '
        .. '--password-file /dev/stdin'):format(command), program.path,
        table.concat(urls, ' ') }):wait()

      assert.equal(3, #program.decode(result.out)[list], result.out)
      assert.is_nil(result.out:find('error', 1, true), result.out)
    end
  end)

  -- As a text in UTF-16 has one in every character.
  it('refuses a password with a NUL byte, where the library would see its end', function()
    local server = program.server('--requirepass', 'hush')
    local file = program.folder() .. '/password'
    assert(utils.writefile(file, 'hush\0er\n'))

    local result = program.run({ 'ls', '--url', server.url, '--password-file', file })

    assert.equal(64, result.code)
    assert.matches('has a NUL byte on its first line; write the password as UTF-8', result.err, 1,
      true)
  end)

  it('says with --verbose which server it is, and never its password', function()
    local server = program.server('--requirepass', 'hush')
    local file = program.folder() .. '/password'
    assert(utils.writefile(file, 'hush\n'))

    local result = program.run({ 'ls', '-v', '--url', server.url, '--password-file', file })

    assert.equal(0, result.code)
    assert.truthy(result.err:find(server.socket, 1, true))
    assert.falsy(result.err:find('hush', 1, true))
  end)
end)
