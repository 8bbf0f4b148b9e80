-- SPDX-License-Identifier: Apache-2.0
local lfs = require('lfs')
local path = require('pl.path')
local stat = require('posix.sys.stat')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local helper = require('helper')
local whole_file = require('latchkey.whole_file')

describe('a file that is written whole', function()
  local folder, file

  before_each(function()
    folder = path.tmpname()
    os.remove(folder)
    assert(lfs.mkdir(folder))
    file = folder .. '/file'
  end)

  after_each(function()
    utils.execute('rm -rf -- ' .. utils.quote_arg(folder))
  end)

  local function names()
    local list = {}
    for name in lfs.dir(folder) do
      list[#list + 1] = name:sub(1, 1) ~= '.' and name or nil
    end
    table.sort(list)
    return list
  end

  it('has these bytes, and what the mask leaves of rights', function()
    local before = stat.umask(tonumber('027', 8))
    local written = whole_file.write(file, 'a\0b')
    stat.umask(before)

    assert.is_true(written)
    assert.equal('a\0b', utils.readfile(file, true))
    assert.equal(tonumber('640', 8), stat.stat(file).st_mode % 512)
    assert.same({ 'file' }, names())
  end)

  it('keeps its rights, and a link that leads to it', function()
    utils.writefile(file, 'old')
    stat.chmod(file, tonumber('600', 8))
    unistd.link('file', folder .. '/link', true)

    assert.is_true(whole_file.write(folder .. '/link', 'new'))

    assert.equal('new', utils.readfile(file))
    assert.equal(tonumber('600', 8), stat.stat(file).st_mode % 512)
    assert.is_true(path.islink(folder .. '/link'))
  end)

  it('may be a device, which is not replaced, and whose failure is told', function()
    local full, why = whole_file.write('/dev/full', 'x')

    assert.is_nil(full)
    assert.equal('/dev/full: No space left on device', why)
    assert.is_true(whole_file.write('/dev/null', 'x'))
    assert.equal(0, stat.S_ISREG(stat.stat('/dev/null').st_mode))
  end)

  it('says why it cannot be', function()
    for where, expected in pairs({ ['/nowhere/a'] = 'No such file or directory',
      [folder] = 'Is a directory', [folder .. '/file/a'] = 'Not a directory' }) do
      utils.writefile(file, 'x')
      local _, why = whole_file.write(where, 'x')
      assert.equal(where .. ': ' .. expected, why)
    end
  end)

  -- 512 bytes of the last 5,000 have room: the end fails where it is flushed, and not before.
  it('stays as it was where the new bytes have no room, and leaves nothing', function()
    utils.writefile(file, 'old')
    local program = ("package.path = '%s/tools/?.lua;' .. package.path\n"
      .. "print(require('latchkey.whole_file').write(arg[1], ('x'):rep(5000)))"):format(helper.root)
    utils.writefile(folder .. '/program.lua', program)

    local _, _, said = utils.executeex(("trap '' XFSZ; ulimit -f 9; luajit %s %s | cat"):format(
      utils.quote_arg(folder .. '/program.lua'), utils.quote_arg(file)))

    assert.equal(('nil\t%s: File too large\n'):format(file), said)
    assert.equal('old', utils.readfile(file))
    assert.same({ 'file', 'program.lua' }, names())
  end)
end)
