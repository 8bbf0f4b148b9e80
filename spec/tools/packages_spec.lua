-- SPDX-License-Identifier: Apache-2.0
-- What tools/setup installs is what tools/test asks for.
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')

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
