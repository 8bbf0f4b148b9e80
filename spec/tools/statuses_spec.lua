-- SPDX-License-Identifier: Apache-2.0
-- The page of the statuses against the table in the public header.
local utils = require('pl.utils')

local exits = require('latchkey.cli.exits')
local helper = require('helper')

local function joined(literals)
  local parts = {}
  for part in literals:gmatch('"(.-)"') do
    parts[#parts + 1] = part
  end
  return table.concat(parts)
end

-- { name, number, again, text, hint } of each status, in order.
local function rows_of_header()
  local header = assert(utils.readfile(helper.root .. '/c/include/latchkey/status.h'))
  local list, rows = header:gsub('\\\n', '\n'):match('LK_STATUS_TABLE%(X%)(.-)\n\n'), {}
  for name, number, again, text, hint in
    list:gmatch('X%((%u[%u_]+), (%d+), (%d),%s*("[^\n]-"),%s*(".-")%)') do
    rows[#rows + 1] = { name = 'LK_' .. name, number = number, again = again == '1',
      text = joined(text), hint = joined(hint) }
  end
  return rows
end

-- The sections of the page: name -> text on one line; and the names in order.
local function sections_of_page()
  local page = assert(utils.readfile(helper.root .. '/docs/reference/statuses.md')) .. '\n#'
  local sections, names = {}, {}
  for name, text in page:gmatch('### (LK_[%u_]+)\n(.-)%f[#%z]') do
    names[#names + 1] = name
    sections[name] = text:gsub('%s+', ' ')
  end
  return sections, names
end

describe('the page of the statuses', function()
  local rows = rows_of_header()
  local sections, names = sections_of_page()

  it('has a section of each status of the header, in order', function()
    local wanted = {}
    for i, row in ipairs(rows) do
      wanted[i] = row.name
    end

    assert.is_true(#wanted > 30)
    assert.same(wanted, names)
  end)

  it('begins with a table of all of them', function()
    local page = assert(utils.readfile(helper.root .. '/docs/reference/statuses.md'))
    local said, wanted = {}, {}
    for row in page:match('^(.-)\n## '):gmatch('\n(| %[LK_[^\n]*)') do
      said[#said + 1] = row
    end
    for i, row in ipairs(rows) do
      wanted[i] = ('| [%s](#%s) | %s | %s | %s |'):format(row.name, row.name:lower(), row.number,
        row.again and 'yes' or 'no', row.text)
    end

    assert.same(wanted, said)
  end)

  for _, row in ipairs(rows) do
    it(('says of %s what the header says'):format(row.name), function()
      local first = (' Status %s%s: %s.'):format(row.number,
        row.again and ', may be tried again' or '', row.text)

      assert.equal(first, sections[row.name]:sub(1, #first))
      assert.truthy(sections[row.name]:find('- **Do:** ' .. row.hint .. '.', 1, true))
    end)
  end

  it('has each exit code of the program, with what to do', function()
    local page = assert(utils.readfile(helper.root .. '/docs/reference/statuses.md'))
    local said = {}
    for row in page:match('\n## Exit codes\n.*'):gmatch('\n(| %d[^\n]*)') do
      said[#said + 1] = row
    end

    local wanted = {}
    for i, exit in ipairs(exits) do
      wanted[i] = ('| %d | %s | %s |'):format(exit.code, exit.text, exit.hint)
    end
    assert.same(wanted, said)
  end)
end)
