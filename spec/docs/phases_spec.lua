-- SPDX-License-Identifier: Apache-2.0
-- The page of phases shows the table that the library goes by.
local utils = require('pl.utils')

local helper = require('helper')
local phases = require('lib.phases')

local function read(name)
  return assert(utils.readfile(helper.root .. '/' .. name))
end

describe('docs/explanation/phases.md', function()
  local header, source, page

  before_each(function()
    header, source = read('c/src/harness/phases.h'), read('c/src/harness/phases.c')
    page = read('docs/explanation/phases.md')
  end)

  it('shows the table of phases.c (luajit tools/lib/phases.lua --write)', function()
    assert.equal(page, phases.put(page, phases.render(header, source)))
  end)

  it('is another one where a row is', function()
    local changed = assert(source:gsub('{COUNTS, PAUSING, TIMER, LK_NEXT_SEND},\n', ''))

    assert.not_equal(page, phases.put(page, phases.render(header, changed)))
  end)

  it('explains each word of its rows', function()
    local tables = phases.render(header, source)
    local rows, legend = tables:match('^(.-)### Words(.*)$')

    for line in rows:gmatch('\n(| [^\n]+)') do
      for cell in line:gmatch('[^|]+') do
        for word in cell:gmatch('[%l ]+') do
          word = word:match('^%s*(.-)%s*$')
          local known = word == '' or legend:find('| ' .. word .. ' |', 1, true)
            or line:find('what happens', 1, true)
          assert.is_truthy(known, word)
        end
      end
    end
  end)
end)
