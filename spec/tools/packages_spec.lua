-- SPDX-License-Identifier: Apache-2.0
-- What tools/setup installs is what tools/test asks for, and what Debian packages are made with.
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')
local workshop = require('support.workshop')

local COLUMNS = 8

-- The programs that are looked for, of the tiers.
local function probed()
  local programs, rows = {}, 0
  local text = assert(utils.readfile(helper.root .. '/tools/lib/packages.tsv'))
  for _, line in ipairs(stringx.splitlines(text)) do
    local row = stringx.split(line, '\t')
    assert(#row == COLUMNS, line)
    local several = row[3]:match('^program:(.*)')
    for program in (several or ''):gmatch('[^|]+') do
      programs[program] = row[1]
    end
    rows = rows + 1
  end
  assert(rows > 50)
  return programs
end

describe('the list of packages', function()
  it('has each program that a section of tools/test asks for', function()
    local programs, count = probed(), 0
    local text = assert(utils.readfile(helper.root .. '/tools/lib/test/sections.sh'))
    for program in text:gmatch("have ([%w.-]+) '") do
      assert.is_not_nil(programs[program], program)
      count = count + 1
    end
    assert.is_true(count > 25)
  end)
end)

describe('the build of Debian packages', function()
  local tree

  before_each(function()
    tree = workshop.new()
  end)

  after_each(function()
    tree:remove()
  end)

  it('is refused where cpack could not ask for libraries', function()
    tree:copy('c/cmake/LatchkeyPackages.cmake')
    -- Nothing is found but what is named.
    tree:write('CMakeLists.txt', 'cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES NONE)\n'
      .. 'include(c/cmake/LatchkeyPackages.cmake)\n')
    local code, said = tree:run('cmake -G Ninja -B build -DLK_PACKAGES=ON -DLK_GZIP=/bin/true '
      .. '-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF '
      .. '-DCMAKE_MAKE_PROGRAM="$(command -v ninja)" .')

    assert.equal(1, code, said)
    assert.matches('Could not find LK_SHLIBDEPS', said, 1, true)
  end)
end)
