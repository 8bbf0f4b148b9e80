-- The page of the statuses against the table in the public header.
local utils = require('pl.utils')

local function rows_of_header()
  local text = assert(utils.readfile('c/include/latchkey/latchkey.h')):gsub('\\\n', '\n')
  local rows = {}
  for name, number, again in text:gmatch('X%((%u[%u_]+), (%d+), (%d),') do
    rows[#rows + 1] = ('LK_%s %s %s'):format(name, number, again == '1' and 'yes' or '')
  end
  return rows
end

local function rows_of_page()
  local rows = {}
  for line in assert(utils.readfile('docs/reference/statuses.md')):gmatch('[^\n]+') do
    local name, number, again = line:match('^| (LK_[%u_]+) | (%d+) | (%l*) ?|')
    if name then
      rows[#rows + 1] = ('%s %s %s'):format(name, number, again)
    end
  end
  return rows
end

describe('the page of the statuses', function()
  it('has every status of the header, in order, with number and whether to try again', function()
    local header = rows_of_header()

    assert.is_true(#header > 30)
    assert.same(header, rows_of_page())
  end)
end)
