-- SPDX-License-Identifier: Apache-2.0
-- What the pages say that the program needs where it runs, against what it is linked with, and what
-- its package asks for.
local path = require('pl.path')
local utils = require('pl.utils')

local program = require('cli.program')

local function read(file)
  return assert(utils.readfile(program.root .. '/' .. file))
end

-- Names of shared libraries without their versions; the system's own are everywhere.
local function linked_with(file)
  local names = {}
  local _, _, said = utils.executeex(("LC_ALL=C readelf -d '%s'"):format(file))
  for name in said:gmatch('%(NEEDED%)[^\n]*%[(.-)%.so[%d.]*%]') do
    if not name:find('^ld%-') and name ~= 'libc' and name ~= 'libm' then
      names[#names + 1] = name
    end
  end
  return names
end

describe('what is needed at run time', function()
  local install = read('docs/howto/install.md'):match('\n### What it needs at run time\n(.-)\n##')
  local build = path.dirname(program.path)

  it('are the libraries that program and library are linked with', function()
    if program.sanitizer() then
      return -- it brings libraries of its own
    end
    local image = read('docs/howto/systemd-and-kubernetes.md')
      :match('\n%- (`latchkey` has to .-)\n%- ')
    local count = 0
    for _, file in ipairs({ program.path, build .. '/liblatchkey.so' }) do
      for _, name in ipairs(linked_with(file)) do
        assert.truthy(install:find('`' .. name .. '`', 1, true), name)
        assert.truthy(image:find('`' .. name .. '`', 1, true), name)
        count = count + 1
      end
    end
    assert.is_true(count >= 4)
  end)

  it('are the Lua modules that the package asks for, which the program knows by name', function()
    local needs = read('c/cmake/LatchkeyPackages.cmake')
      :match('CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "(.-)"%)')
    local program_text, count = read('c/cli/lua.c'), 0
    for package in needs:gmatch('lua%-%l+') do
      assert.truthy(install:find('`' .. package .. '`', 1, true), package)
      assert.truthy(program_text:find('"' .. package .. '"', 1, true), package)
      count = count + 1
    end
    assert.is_true(count >= 6)
  end)
end)
