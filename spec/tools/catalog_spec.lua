-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local lfs = require('lfs')
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

  -- Not by dir.rmtree, which follows links.
  after_each(function()
    assert(utils.execute('rm -r ' .. folder))
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

  it('reads a relative folder whose name or parent begins with "_"', function()
    write('_x/_y/a/two', SCRIPT:format('a/two'))
    local relative = path.relpath(folder .. '/_x/_y')
    assert.equal('..', relative:sub(1, 2))

    assert.equal(1, #catalog.read(relative))
    assert.equal(relative .. '/a/two.lua', catalog.files(relative)[1])
  end)

  it('leaves alone what begins with ".", as the library does', function()
    write('a/two')
    write('a/._two', 'what an archive left behind')
    write('.git/a/two')

    assert.same({ folder .. '/a/two.lua' }, catalog.files(folder))
  end)

  it('follows links, and passes over one that leads nowhere', function()
    write('_x/two', SCRIPT:format('a/two'))
    assert(lfs.link(folder .. '/_x', folder .. '/a', true))
    assert(lfs.link(folder .. '/nothing.lua', folder .. '/a/one.lua', true))

    assert.same({ folder .. '/a/two.lua' }, catalog.files(folder))
  end)

  -- Of what the library refuses, too.
  local function refused()
    local scripts, findings = catalog.read(folder)
    assert.is_nil(scripts)
    assert.same({ 1, folder, 'file' }, { #findings, findings[1].file, findings[1].rule })
    return findings[1].message
  end

  it('refuses folders without an end: links that lead back', function()
    write('a/two')
    dir.makepath(folder .. '/b')
    assert(lfs.link('..', folder .. '/a/up', true))
    assert(lfs.link('..', folder .. '/b/up', true))

    assert.matches('/up/.*: more than 8 folders inside of one another$', refused())
  end)

  it('takes 8 folders inside of one another, and no more', function()
    write('1/2/3/4/5/6/7/8/two')
    assert.equal(1, #catalog.files(folder))

    write('1/2/3/4/5/6/7/8/9/two')
    assert.equal(folder .. '/1/2/3/4/5/6/7/8/9: more than 8 folders inside of one another',
      refused())
  end)

  it('refuses what cannot be looked at, or is no regular file', function()
    write('a/two')
    assert(lfs.link('one.lua', folder .. '/a/one.lua', true))
    assert.matches('/a/one.lua', refused(), 1, true)

    os.remove(folder .. '/a/one.lua')
    assert(utils.execute(('mkfifo %s/a/one.lua'):format(folder)))
    assert.equal(folder .. '/a/one.lua is not a regular file', refused())
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
