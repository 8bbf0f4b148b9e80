-- SPDX-License-Identifier: Apache-2.0
-- What `latchkey new` writes, taken the whole way by the commands that its page names.
local path = require('pl.path')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey new', function()
  local folder

  before_each(function()
    folder = program.folder()
  end)

  after_each(program.clean)

  local function run(...)
    return program.run({ ... })
  end

  local function new(...)
    return run('new', '--dir', folder, ...)
  end

  local function passes(...)
    local result = run(...)
    assert.equal(0, result.code, table.concat({ ... }, ' ') .. '\n' .. result.out .. result.err)
    return result.out
  end

  -- All that is promised of what was written.
  local function assert_green(model)
    local scripts, specs = folder .. '/scripts', folder .. '/spec'
    passes('lint', scripts)
    passes('spec', specs, '--dir', scripts)
    local checked = passes('check', '--model', model, '--dir', scripts, '--no-spec')
    assert.matches('exhaustive', checked, 1, true)
    local tried = program.decode(passes('mutate', '--dir', scripts, '--spec', specs, '--model',
      model, '--json'))
    assert.is_true(tried.mutants > 20)
    assert.equal(tried.mutants, tried.killed)
    passes('bundle', scripts, '--name', 'own', '--set-version', '1.0.0', '-o',
      folder .. '/own.tar.gz')
    passes('verify', folder .. '/own.tar.gz', '--allow-unsigned')
    passes('acl', 'app', '--dir', scripts, '--names', 'job*')
  end

  -- The header of typed calls, compiled without a warning; what it declares.
  local function calls()
    local header = folder .. '/calls.h'
    passes('bind', 'c', '--dir', folder .. '/scripts', '-o', header)
    utils.writefile(folder .. '/calls.c', '#include "calls.h"\n')
    local compiled = program.start_any('cc', { '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-c',
      '-I', program.root .. '/c/include', '-I', folder, '-o', folder .. '/calls.o',
      folder .. '/calls.c' }):wait()
    assert.equal(0, compiled.code, compiled.err)
    return assert(utils.readfile(header))
  end

  it('lock writes a lock that all of the tools find good', function()
    local result = new('lock', 'acme')

    assert.equal(0, result.code, result.err)
    local written = {}
    for file in result.out:gmatch('[^\n]+') do
      written[#written + 1] = path.relpath(file, folder)
    end
    assert.same({ 'scripts/acme/acquire.lua', 'scripts/acme/renew.lua', 'scripts/acme/release.lua',
      'spec/acme/acquire_spec.lua', 'spec/acme/renew_spec.lua', 'spec/acme/release_spec.lua',
      'models/acme.lua' }, written)
    assert_green(folder .. '/models/acme.lua')
    local header = calls()
    for _, name in ipairs({ 'acme_acquire(', 'acme_renew(', 'acme_release(',
      'acme_release_channel(' }) do
      assert.matches(name, header, 1, true)
    end
  end)

  it('script writes a script that all of the tools find good', function()
    assert.equal(0, new('script', 'shop/take').code)

    assert_green(folder .. '/models/shop_take.lua')
    assert.matches('shop_take(', calls(), 1, true)
  end)

  it('takes the longest names, and words of Lua', function()
    local longest = ('a'):rep(16)
    for _, name in ipairs({ longest .. '/' .. longest, 'shop/end' }) do
      assert.equal(0, new('script', name).code)
      passes('check', '--dir', folder .. '/scripts', '--no-spec', '--model',
        ('%s/models/%s.lua'):format(folder, (name:gsub('/', '_'))))
    end
    assert.equal(0, new('lock', ('b'):rep(16)).code)

    passes('lint', folder .. '/scripts')
    passes('spec', folder .. '/spec', '--dir', folder .. '/scripts')
  end)

  it('overwrites nothing, and then writes nothing at all', function()
    local model = folder .. '/models/acme.lua'
    assert(utils.execute(('mkdir %q'):format(folder .. '/models')))
    assert(utils.execute(('ln -s nowhere %q'):format(model)))

    local result = new('lock', 'acme')

    assert.equal(64, result.code)
    assert.matches('models/acme.lua is there already; nothing was written', result.err, 1, true)
    assert.is_false(path.exists(folder .. '/scripts'))
  end)

  it('leaves nothing where one of the files cannot be written', function()
    assert(utils.writefile(folder .. '/spec', 'a file in the place of a folder'))

    local result = new('lock', 'acme')

    assert.equal(64, result.code)
    assert.matches('nothing was written', result.err, 1, true)
    assert.is_false(path.exists(folder .. '/scripts'))
    assert(os.remove(folder .. '/spec'))
    assert.equal(0, new('lock', 'acme').code)
  end)

  it('refuses names that no script may have, and families of latchkey', function()
    for name, why in pairs({ ['Shop/take'] = 'small letter', ['shop/1'] = 'small letter',
      shop = 'FAMILY/VERB', ['shop/'] = 'small letter', ['../take'] = 'small letter',
      ['shop/take/more'] = 'small letter', [('a'):rep(17) .. '/take'] = 'at most 16',
      ['lock/steal'] = "a family of latchkey's own" }) do
      local result = new('script', name)
      assert.equal(64, result.code, name)
      assert.matches(why, result.err, 1, true)
    end
    assert.matches('its family alone', new('lock', 'acme/acquire').err, 1, true)
    assert.matches("a family of latchkey's own", new('lock', 'fair').err, 1, true)
    assert.is_false(path.exists(folder .. '/scripts'))
  end)

  it('says where it cannot write', function()
    utils.writefile(folder .. '/scripts', 'a file')

    local result = new('lock', 'acme')

    assert.equal(64, result.code)
    assert.matches('scripts', result.err, 1, true)
  end)

  it('shows the paths of what it wrote without what a terminal obeys', function()
    local result = program.run({ 'new', 'lock', 'acme', '--dir', folder .. '/x\27[31m\255' })
    local scripts = folder .. '/x\27[31m\255/scripts'
    utils.writefile(scripts .. '/acme/odd\27.lua', 'return redis.call(')
    local linted = run('lint', scripts)
    local fresh = run('fragments', '--write', scripts)

    assert.equal(0, result.code, result.err)
    assert.truthy(result.out:find(folder .. '/x\\x1b[31m\\xff/models/acme.lua\n', 1, true))
    assert.equal(1, linted.code, linted.err)
    assert.truthy(linted.out:find(folder .. '/x\\x1b[31m\\xff/scripts/acme/odd\\x1b.lua:', 1, true))
    for _, each in ipairs({ result, linted, fresh }) do
      assert.is_nil((each.out .. each.err):find('[\27\255]'))
    end
  end)
end)
