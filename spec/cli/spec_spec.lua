-- SPDX-License-Identifier: Apache-2.0
local utils = require('pl.utils')

local program = require('cli.program')

local SPEC = [=[
local helper = require('helper')

describe('lock/inspect', function()
  it('finds nobody', function()
    local world = helper.world()
    assert.reply({ 0 }, world:eval('lock/inspect', { 'job' }, {}))
    assert.left(world, {})
  end)
  it('%s', function()
    assert.%s(helper.is_live)
  end)
end)
]=]

describe('latchkey spec', function()
  local folder

  before_each(function()
    folder = program.folder()
  end)

  after_each(program.clean)

  local function write(...)
    assert(utils.writefile(folder .. '/some_spec.lua', SPEC:format(...)))
  end

  it('runs specs on the mock', function()
    write('runs on no server', 'is_false')

    local result = program.run({ 'spec', folder }, { env = { LATCHKEY_URL = 'unix:///nowhere/s' } })

    assert.equal(0, result.code, result.err)
    assert.truthy(result.out:find('2 successes / 0 failures', 1, true))
  end)

  it('runs the same specs on a server that is named, and empties it', function()
    local server = program.server()
    server:command('SET', 'left', 'over')
    write('runs on a server', 'is_true')

    local result = program.run({ 'spec', folder, '--url', server.url })

    assert.equal(0, result.code, result.err)
    assert.equal('0', server:command('DBSIZE'))
  end)

  it('exits 1 when one fails, and says which as JSON', function()
    write('is live', 'is_true')

    local plain = program.run({ 'spec', folder })
    local json = program.run({ 'spec', folder, '--json' })

    assert.equal(1, plain.code)
    assert.truthy(plain.out:find('is live', 1, true))
    assert.equal(1, json.code)
    local document = program.decode(json.out)
    assert.equal('latchkey/spec/1', document.schema)
    assert.equal(1, document.passed)
    assert.equal('lock/inspect is live', document.failures[1].title)
  end)

  it('exits 1 for a file that is no Lua', function()
    assert(utils.writefile(folder .. '/some_spec.lua', 'x = = 1'))

    assert.equal(1, program.run({ 'spec', folder }).code)
  end)

  it('exits 64 for a folder that is not there', function()
    assert.equal(64, program.run({ 'spec', folder .. '/none' }).code)
    assert.equal(64, program.run({ 'spec', folder, '--dir', folder .. '/none' }).code)
  end)
end)
