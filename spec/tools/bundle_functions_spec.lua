-- SPDX-License-Identifier: Apache-2.0
local catalog = require('latchkey.script.catalog')
local functions = require('latchkey.bundle.functions')
local lines = require('latchkey.script.lines')

describe('a function library', function()
  local script

  before_each(function()
    script = catalog.read_file('scripts/lock/release.lua')
  end)

  it('is named after the script and its major version', function()
    assert.equal('lock_release_1', functions.name('lock/release', '1.4.2'))
    assert.equal('lock_release_12', functions.name('lock/release', '12.0.0'))
  end)

  it('keeps each line of the script on its line, from the third on', function()
    local code = functions.library(script)

    local there, own = lines.split(code), lines.split(script.source)
    for number = 3, #own do
      assert.equal(own[number], there[number])
    end
    assert.equal('#!lua name=lock_release_1', there[1])
    assert.equal(own[2], there[2]:sub(-#own[2]))
    assert.equal('end}', there[#own + 1])
  end)

  it('is never made of bytecode, which would be read without a check', function()
    script.source = string.dump(function() return 1 end)

    local code, why = functions.library(script)

    assert.is_nil(code)
    assert.equal('lock/release is bytecode; a server takes the text of a script', why)
  end)

  it('registers one function with the flags of the header, which says where it is from', function()
    local registered
    local code = functions.library(script):gsub('^#!', '--')
    local chunk = assert(loadstring(code))
    setfenv(chunk, { redis = { register_function = function(fields)
      registered = fields
    end } })

    chunk()

    assert.equal('lock_release_1', registered.function_name)
    assert.same({ 'allow-oom' }, registered.flags)
    assert.same({ name = 'lock/release', version = script.header.version, sha1 = script.sha1 },
      functions.described(registered.description))
    assert.equal('function', type(registered.callback))
  end)

  it('is made of every script in the project, each of which compiles inside it', function()
    for _, one in ipairs(catalog.read('scripts')) do
      local code = assert(functions.library(one))
      assert(loadstring((code:gsub('^#!', '--'))), one.name)
    end
  end)

  it('is not made of a script that would end the function early', function()
    script.source = script.source .. 'end}\nredis.register_function{function_name="x"'

    local code, why = functions.library(script)

    assert.is_nil(code)
    assert.matches('lock/release:', why, 1, true)
  end)

  local function step(version, known)
    local wanted = { name = 'lock/release', version = version, code = 'new' }
    return functions.step(wanted, known and { code = 'old',
      description = ('lock/release %s %s'):format(known, ('0'):rep(40)) })
  end

  it('is new where none is, and stays where the same is', function()
    assert.equal('new', step('1.0.0'))
    local wanted = { name = 'a/b', version = '1.0.0', code = 'x' }
    assert.equal('stays', functions.step(wanted, { code = 'x' }))
  end)

  it('replaces an older one', function()
    assert.equal('replaces', step('1.1.0', '1.0.9'))
    assert.equal('replaces', step('1.0.10', '1.0.9'))
  end)

  it('is refused where a newer one is, the same version with other bytes, or a stranger\'s',
    function()
      assert.same({ 'refused', 'the newer 1.1.0 is there' }, { step('1.0.0', '1.1.0') })
      assert.same({ 'refused', 'its 1.0.0 is there with other bytes' }, { step('1.0.0', '1.0.0') })
      for _, description in ipairs({ '', 'mine', 'lock/release 1.0.0 abc',
        'a/b 1.0.0 ' .. ('0'):rep(40) }) do
        local wanted = { name = 'lock/release', version = '2.0.0', code = 'new' }
        local result, why = functions.step(wanted, { code = 'old', description = description })
        assert.equal('refused', result)
        assert.matches('not latchkey\'s', why, 1, true)
      end
    end)
end)
