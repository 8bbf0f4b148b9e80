-- SPDX-License-Identifier: Apache-2.0
-- Contracts beside scripts: the same as a header, for a text that may not change.
local dir = require('pl.dir')
local utils = require('pl.utils')

local World = require('latchkey.mock.world')
local catalog = require('latchkey.script.catalog')
local command = require('support.command')
local digest = require('latchkey.digest')
local header = require('latchkey.script.header')
local manifest = require('latchkey.bundle.manifest')
local names = require('latchkey.script.names')
local own_lock = require('support.own_lock')
local pages = require('latchkey.bundle.pages')
local texts = require('support.texts')

describe('a contract', function()
  local folder, scripts

  before_each(function()
    folder = own_lock.folder()
    scripts = folder .. '/scripts'
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function change(verb, old, new)
    local file = ('%s/acme/%s.contract'):format(scripts, verb)
    utils.writefile(file, texts.with(utils.readfile(file), old, new))
  end

  local function wrong(verb)
    local _, findings = catalog.read_file(('%s/acme/%s.lua'):format(scripts, verb))
    return findings and ('%s:%d: %s'):format(findings[1].file:match('[^/]+$'), findings[1].line,
      findings[1].message)
  end

  it('forms keys with the marks that keys have', function()
    change('acquire', 'acme:{name}:lock', 'app/{name}@lock#1=a')
    local script = assert(catalog.read_file(scripts .. '/acme/acquire.lua'))
    assert.equal('app/job@lock#1=a', names.form(script.header.keys[1].form, 'job'))

    change('acquire', 'app/{name}@lock#1=a', 'app/{name}?')
    assert.matches('forms no name', wrong('acquire'))
  end)

  it('is read where the script has no header', function()
    local script = assert(catalog.read(scripts))['acme/release']

    assert.equal('channel', script.header.argv[2].type)
    assert.same({ '1', '0' }, { script.header.returns[1].shape, script.header.returns[2].shape })
    assert.same({}, script.header.flags)
  end)

  it('is of one text', function()
    utils.writefile(scripts .. '/acme/renew.lua', 'return 1\n')

    assert.matches('^renew%.contract:3: the contract is of another text', wrong('renew'))
  end)

  it('says once that its lines end with CR LF', function()
    local file = scripts .. '/acme/renew.contract'
    utils.writefile(file, (utils.readfile(file):gsub('\n', '\r\n')))

    local _, findings = catalog.read_file(scripts .. '/acme/renew.lua')

    assert.equal(1, #findings)
    assert.equal('renew.contract:1: lines end with CR LF; save the contract with LF alone',
      wrong('renew'))
  end)

  it('must have all that a header has, and its SHA1', function()
    change('renew', 'cluster:  one slot\n', '')
    change('acquire', 'sha1:     ', 'sha2:     ')

    assert.equal('renew.contract:1: the contract has no "cluster:"', wrong('renew'))
    assert.equal('acquire.contract:3: unknown field "sha2"', wrong('acquire'))
  end)

  it('has no SHA1 where it is the header', function()
    utils.writefile(scripts .. '/acme/renew.lua', '#!lua\n--[[ latchkey-script\n'
      .. 'name:     acme/renew\nversion:  1.0.0\nsha1:     ' .. ('0'):rep(40) .. '\n]]\n')

    assert.equal('renew.lua:5: unknown field "sha1"', wrong('renew'))
  end)

  it('says whether its keys are in one slot, which only a contract may deny', function()
    local source = "return redis.call('RENAMENX', KEYS[1], KEYS[2])\n"
    utils.writefile(scripts .. '/acme/move.lua', source)
    local contract = utils.readfile(scripts .. '/acme/renew.contract')
    local rows = '  - from  string  w  acme:{name}  x\n  - to  string  w  acme:{name}:2  y\n'
    contract = contract:gsub('acme/renew', 'acme/move'):gsub('argv:.-returns', 'returns')
      :gsub('keys:\n[^\n]*\n', 'keys:\n' .. rows):gsub('sha1:     %x+', 'sha1:     '
      .. digest.sha1(source))
    local file = scripts .. '/acme/move.contract'
    utils.writefile(file, contract)
    assert.equal('move.contract:5: "acme:job" and "acme:job:2" are in two slots of a cluster: '
      .. 'where the names have a tag, write {{name}}; where they have none, "cluster:  no"',
      wrong('move'))

    utils.writefile(file, (contract:gsub('{name}', '{{name}}')))
    assert.is_nil(wrong('move'))

    utils.writefile(file, (contract:gsub('one slot', 'no')))
    assert.is_nil(wrong('move'))
    local world = World.new({ scripts = scripts })
    world:command('SET', 'acme:job', 'x')
    assert.equal(1, (world:eval('acme/move', { 'acme:job', 'acme:job:2' }, {})))

    utils.writefile(scripts .. '/acme/renew.lua', '#!lua\n--[[ latchkey-script\n'
      .. 'name:     acme/renew\nversion:  1.0.0\nsummary:  x\nreturns:\n  - {1}  x\n'
      .. 'cost:     at most 1 commands\ncluster:  no\n]]\nreturn {1}\n')
    assert.equal('renew.lua:9: "no" is for contracts alone: write "one slot"', wrong('renew'))
  end)

  it('holds a run to what it says', function()
    local world = World.new({ scripts = scripts })
    local function renew()
      return world:eval('acme/renew', { 'k' }, { 'me', '100' })
    end
    world:command('SET', 'k', 'me')
    assert.equal(1, (renew()))

    change('renew', '  - 1  renewed\n', '')
    world = World.new({ scripts = scripts })
    world:command('SET', 'k', 'me')

    local _, err = renew()
    assert.matches('lists no such reply: the number 1', err.message)
  end)

  it('lists one text beside any other, the one text first', function()
    change('acquire', '  - nil  somebody has it\n',
      "  - nil     somebody has it\n  - 'free'  nobody has it\n  - text    who has it\n")
    local h = assert(catalog.read(scripts))['acme/acquire'].header

    assert.equal("'free'", header.reply_shape(h, 'free'))
    assert.equal('text', header.reply_shape(h, 'freed'))
    assert.equal('OK', header.reply_shape(h, { ok = 'OK' }))
  end)

  it('gives an integer of C the shape of one', function()
    local is_there, ffi = pcall(require, 'ffi')
    local reply = is_there and ffi.new('int64_t', 2 ^ 53) + 1 or 2 ^ 53
    change('acquire', '  - nil  somebody has it\n',
      '  - nil  somebody has it\n  - integer  how many have had it\n')
    local h = assert(catalog.read(scripts))['acme/acquire'].header

    assert.equal('integer', header.reply_shape(h, reply))
  end)

  it('gives an array the shape of its length before one that stands for many', function()
    change('acquire', '  - nil  somebody has it\n', '  - {1, name...}  many\n  - {1, left}  one\n')
    local h = assert(catalog.read(scripts))['acme/acquire'].header

    assert.equal('{1, left}', header.reply_shape(h, { 1, 7, n = 2 }))
    assert.equal('{1, name...}', header.reply_shape(h, { 1, n = 1 }))
    assert.equal('{1, name...}', header.reply_shape(h, { 1, 7, 8, n = 3 }))
    assert.is_nil(header.reply_shape(h, { 2, 7, n = 2 }))
  end)

  it('refuses a run that answers another text than the one that it lists', function()
    change('renew', '  - 1  renewed\n', "  - 'one.of-them'  renewed\n")
    local world = World.new({ scripts = scripts })
    world:command('SET', 'k', 'me')

    local _, err = world:eval('acme/renew', { 'k' }, { 'me', '100' })

    assert.matches('lists no such reply: the number 1', err.message)
  end)

  it('forms a key as the others of its family do', function()
    local code = command.run('lint', scripts)
    change('renew', 'acme:{name}:lock', 'acme:{name}')

    local refused, out = command.run('lint', scripts)

    assert.same({ 0, 1 }, { code, refused })
    assert.truthy(out:find('renew.contract:5: forms: "lock" is formed acme:{name} here, and '
      .. 'acme:{name}:lock in acme/acquire', 1, true), out)
  end)

  it('has the channels that the script forms, of what its variables are then', function()
    local function lint(channel)
      local source = "local where, key = KEYS[1], KEYS[1]\nwhere = where .. ':free'\n"
        .. "if redis.call('GET', key) ~= ARGV[1] then return 0 end\n"
        .. ("redis.call('DEL', key)\nredis.call('PUBLISH', %s, 'free')\nreturn 1\n")
      own_lock.write(folder, 'release', source:format(channel),
        { ['argv:\n'] = 'channels:\n  - told  acme:{name}:lock:free  told\nargv:\n',
          ['  - bell   channel  acme:{name}:free  told when the lock is free\n'] = '' })
      return select(2, command.run('lint', scripts))
    end
    local text = utils.readfile(scripts .. '/acme/release.contract')
    local found = {}

    for i, channel in ipairs({ 'where', "key .. ':free'", 'key' }) do
      utils.writefile(scripts .. '/acme/release.contract', text)
      found[i] = lint(channel):match('it publishes on ("[^"]+")') or 'nothing'
    end

    assert.same({ 'nothing', 'nothing', '"acme:job:lock"' }, found)
  end)

  it('has channels that are formed of an argument, which are not compared', function()
    own_lock.write(folder, 'release', "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"
      .. "redis.call('DEL', KEYS[1])\nredis.call('PUBLISH', KEYS[1] .. ':' .. ARGV[1], 'free')\n"
      .. 'return 1\n', { ['argv:\n'] = 'channels:\n  - told  acme:{name}:lock+token  told\nargv:\n',
      ['  - bell   channel  acme:{name}:free  told when the lock is free\n'] = '' })

    local code, out, err = command.run('lint', scripts)

    assert.equal(0, code, out .. err)
  end)

  it('takes each first line that a server takes, and names the script for any other', function()
    local contract = utils.readfile(scripts .. '/acme/renew.contract')
    local function first_line(line)
      local source = line .. "\nif redis.call('get', KEYS[1]) == ARGV[1] then\n"
        .. "  return redis.call('pexpire', KEYS[1], ARGV[2])\nend\nreturn 0\n"
      utils.writefile(scripts .. '/acme/renew.contract', contract)
      own_lock.write(folder, 'renew', source)
      local script = catalog.read_file(scripts .. '/acme/renew.lua')
      local _, out = command.run('lint', scripts .. '/acme/renew.lua')
      return script, (out:gsub('^.-/acme/', ''))
    end
    local function bundled()
      local files = {}
      for _, name in ipairs({ 'renew.lua', 'renew.contract' }) do
        files['scripts/acme/' .. name] = utils.readfile(scripts .. '/acme/' .. name)
      end
      return select(2, manifest.scripts(files))
    end

    for line, flags in pairs({ ['#!lua'] = '', ['#!lua '] = '', ['#!lua flags=\r'] = '',
      ['#!lua flags=no-cluster'] = 'no-cluster', ['#!lua   flags=no-writes\r'] = 'no-writes',
      ['#!lua\tflags=allow-cross-slot-keys,allow-oom flags=allow-stale'] =
        'allow-cross-slot-keys allow-oom allow-stale' }) do
      local script, out = first_line(line)
      assert.equal('', out, line)
      assert.equal(flags, table.concat(script.header.flags, ' '))
      for flag in flags:gmatch('%S+') do
        assert.matches(('| Flag `%s` | '):format(flag), pages.one(script), 1, true)
      end
    end
    for line, refusal in pairs({ ['#!lua flags=no-cluster,none'] =
      'Unexpected flag in script shebang: none', ['#!lua name=x'] =
      'Unknown lua shebang option: name=x', ['#!/bin/lua'] =
      'Unexpected engine in script shebang: #!/bin/lua' }) do
      local script, out = first_line(line)
      assert.is_nil(script)
      assert.equal(('renew.lua:1: header: a server refuses the first line: %s\n'):format(refusal),
        out)
      assert.equal('renew.lua:1: a server refuses the first line: ' .. refusal, wrong('renew'))
      assert.equal('scripts/acme/renew.lua, line 1: a server refuses the first line: ' .. refusal,
        bundled())
    end
  end)

  it('forms keys with the name in the midst of them', function()
    local form = { kind = 'pattern', text = 'acme:{name}:lock', plus = '' }
    local tagged = { kind = 'pattern', text = 'acme:{{name}}', plus = '' }

    assert.equal('acme:job:lock', names.form(form, 'job'))
    assert.equal('acme:%1:lock', names.form(form, '%1'))
    assert.equal('acme:{job}', names.form(tagged, 'job'))
  end)

  it('says to acl what the scripts do', function()
    local code, out = command.run('acl', 'app', '--dir', scripts, '--names', 'job*')
    change('renew', 'cost: ', 'costs:')
    local refused, _, why = command.run('acl', 'app', '--dir', scripts)

    assert.equal(0, code)
    assert.truthy(out:find(' ~acme:job*:lock &acme:job*:free', 1, true))
    assert.truthy(out:find(' +del ', 1, true))
    assert.equal(64, refused)
    assert.matches('renew%.contract:%d+: unknown field "costs"', why)
  end)

  it('says to acl and mutate where the code of a script is no Lua', function()
    own_lock.write(folder, 'renew', "redis.call('GET', KEYS[1]\nreturn 1\n")

    for _, words in ipairs({ { 'acl', 'app' }, { 'mutate', '--list', '--model',
      folder .. '/acme.lua' } }) do
      words[#words + 1], words[#words + 2] = '--dir', scripts
      local code, out, err = command.run(unpack(words))

      assert.same({ 64, '' }, { code, out })
      assert.matches('/acme/renew.lua:2: syntax: ")" expected, but there is "return"', err, 1, true)
    end
  end)
end)
