-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local dir = require('pl.dir')
local utils = require('pl.utils')

local command = require('support.command')

local REFERENCE = 'local function one()\n  return 1\nend\n'

local function with(text)
  return '#!lua\n-->>> fragment one\n' .. text .. '--<<< fragment one\nreturn {one()}\n'
end

describe('latchkey fragments', function()
  local folder, script

  local function run(...)
    return command.run('fragments', folder, ...)
  end

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    script = folder .. '/a/b.lua'
    dir.makepath(folder .. '/_fragments')
    dir.makepath(folder .. '/a')
    utils.writefile(folder .. '/_fragments/one.lua', REFERENCE)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  it('finds nothing in the project\'s own scripts', function()
    assert.same({ 0, '', '' }, { command.run('fragments') })
  end)

  it('says which scripts are stale, and changes none', function()
    utils.writefile(script, with('-- old\n'))

    for _, option in ipairs({ '--check', '-q' }) do
      local code, out = run(option)

      assert.equal(1, code)
      assert.equal('stale ' .. script .. '\n', out)
      assert.equal(with('-- old\n'), utils.readfile(script))
    end
  end)

  it('puts the reference text in the place of a longer, a shorter and an empty copy', function()
    for _, copy in ipairs({ REFERENCE .. REFERENCE, '-- old\n', '' }) do
      utils.writefile(script, with(copy))

      local code, out = run('--write')

      assert.equal(0, code)
      assert.equal('refreshed ' .. script .. '\n', out)
      assert.equal(with(REFERENCE), utils.readfile(script))
    end
    assert.same({ 0, '', '' }, { run('--write') })
  end)

  it('refreshes each of several copies', function()
    utils.writefile(folder .. '/_fragments/two.lua', '-- two\n')
    local two = '-->>> fragment two\n-- 2\n--<<< fragment two\n'
    utils.writefile(script, with('') .. two)

    run('--write')

    assert.equal(with(REFERENCE) .. two:gsub('%-%- 2', '-- two'), utils.readfile(script))
  end)

  it('leaves a script alone whose markers are wrong or name no fragment', function()
    local cases = {
      ['is never closed'] = '-->>> fragment one\n',
      ['there is no fragment none'] = '-->>> fragment none\n--<<< fragment none\n' .. with(''),
    }
    for words, source in pairs(cases) do
      utils.writefile(script, source)

      local code, out = run('--write')

      assert.equal(1, code)
      assert.matches(words, out, 1, true)
      assert.equal(source, utils.readfile(script))
    end
  end)

  it('writes one JSON document', function()
    utils.writefile(script, with(''))

    local _, checked = run('--json')
    local _, written = run('--json', '--write')

    assert.same({ schema = 'latchkey/fragments/1', findings = {}, stale = { script } },
      cjson.decode(checked))
    assert.same({ schema = 'latchkey/fragments/1', findings = {}, refreshed = { script } },
      cjson.decode(written))
  end)

  it('exits 64 for a folder that is not there, and for both ways at once', function()
    assert.equal(64, (command.run('fragments', folder .. '/none')))
    assert.equal(64, (run('--check', '--write')))
  end)
end)
