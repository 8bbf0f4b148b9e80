-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')

local SCRIPT = [==[
#!lua
--[[ latchkey-script
name:     %s
version:  1.0.0
summary:  Nothing.
returns:
  - {1}  done
cost:     at most 1 command
cluster:  one slot
]]
return {1}
]==]

describe('catalog', function()
  local folder

  local function write(name, text)
    local file = path.join(folder, name .. '.lua')
    dir.makepath(path.dirname(file))
    utils.writefile(file, text or SCRIPT:format(name))
  end

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    dir.makepath(folder)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  it('reads the scripts of a folder, sorted by name and found by name', function()
    write('b/one')
    write('a/two')
    write('a_b/c')

    local scripts = catalog.read(folder)

    assert.same({ 'a/two', 'a_b/c', 'b/one' },
      { scripts[1].name, scripts[2].name, scripts[3].name })
    assert.equal(scripts[3], scripts['b/one'])
    assert.equal(SCRIPT:format('a/two'), scripts[1].source)
    assert.equal('Nothing.', scripts[1].header.summary)
  end)

  it('names a script by the hash of its bytes', function()
    write('a/two')

    local pipe = assert(io.popen('sha1sum ' .. folder .. '/a/two.lua'))
    local expected = pipe:read('*l'):match('^%x+')
    pipe:close()

    assert.equal(expected, catalog.read(folder)[1].sha1)
  end)

  it('leaves folders alone that start with "_", and files that are no Lua', function()
    write('a/two')
    write('_fragments/tell', 'no script')
    write('_retired/1/a/two')
    utils.writefile(folder .. '/released.tsv', 'no script')

    local scripts = catalog.read(folder .. '/')

    assert.equal(1, #scripts)
  end)

  it('reads a folder below one that starts with "_"', function()
    write('_x/a/two', SCRIPT:format('a/two'))

    local scripts = catalog.read(folder .. '/_x')

    assert.equal(1, #scripts)
  end)

  it('gives the findings of all headers, with their files', function()
    write('a/two', 'return 1')
    write('b/one', SCRIPT:format('b/two'))

    local scripts, findings = catalog.read(folder)

    assert.is_nil(scripts)
    assert.equal(folder .. '/a/two.lua', findings[1].file)
    assert.equal('header', findings[1].rule)
    local last = findings[#findings]
    assert.same({ folder .. '/b/one.lua', 3, 'name' }, { last.file, last.line, last.rule })
  end)

  it('refuses two scripts of one name', function()
    write('a/two')
    write('x/a/two', SCRIPT:format('a/two'))

    local scripts, findings = catalog.read(folder)

    assert.is_nil(scripts)
    assert.equal('name', findings[1].rule)
    assert.matches('a/two is the name of ' .. folder .. '/a/two.lua too', findings[1].message, 1,
      true)
  end)

  it('says that a folder is missing', function()
    local scripts, findings = catalog.read(folder .. '/none')

    assert.is_nil(scripts)
    assert.equal('file', findings[1].rule)
  end)
end)
