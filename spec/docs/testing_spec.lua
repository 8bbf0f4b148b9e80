-- SPDX-License-Identifier: Apache-2.0
-- Each defect that the page on defects names has the test that it names; each claim of SECURITY.md
-- names a test that is there.
local path = require('pl.path')
local stringx = require('pl.stringx')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local fuzzed = require('lib.fuzz.targets')
local helper = require('helper')

local PAGE = helper.root .. '/docs/explanation/defects.md'

local function read(file)
  return utils.readfile(path.join(helper.root, 'docs', 'explanation', file), true)
end

-- A title as it is written in a file of Lua or C, or the file's own name.
local function names(text, file, title)
  return text:gsub("\\'", "'"):find(title, 1, true) ~= nil or path.basename(file) == title
end

-- The rows of all tables whose last cell is a link: defect, who found it, title and file.
local function rows_of(text)
  local rows = {}
  for _, line in ipairs(stringx.splitlines(text)) do
    local defect, by, title, file = line:match('^| (.+) | ([^|]+) | %[(.-)%]%((.-)%) |$')
    if defect then
      rows[#rows + 1] = { defect = defect, by = by, title = title, file = file }
    elseif line:find('^| ') then
      rows.others = (rows.others or 0) + 1
    end
  end
  return rows
end

describe('the page on defects', function()
  local text = utils.readfile(PAGE)
  local rows = rows_of(text)

  it('has a test in each row', function()
    local _, heads = text:gsub('\n| defect | found by | test |\n', '')
    local _, words = text:match('\n(| word | .-)\n\n'):gsub('\n', '')

    assert.is_true(#rows >= 74)
    assert.equal(heads + words, rows.others)
  end)

  it('has as many rows as the page on testing says', function()
    assert.equal(#rows, tonumber(read('testing.md'):match('\n| defects found | (%d+), each')))
  end)

  it('explains each word for who found a defect', function()
    for _, row in ipairs(rows) do
      assert.is_truthy(text:find('\n| ' .. row.by .. ' | ', 1, true), row.by)
    end
  end)

  for _, row in ipairs(rows) do
    it('names a test that is there: ' .. row.title, function()
      assert.is_true(names(assert(read(row.file), row.file), row.file, row.title), row.title)
    end)
  end

  it('would notice a test that is gone', function()
    assert.is_false(names('it(\'does this\', f)', 'spec/a_spec.lua', 'does that'))
  end)
end)

describe('the page on security', function()
  local text = utils.readfile(helper.root .. '/SECURITY.md')
  local rows = text:match('\n| claim | its test |\n|[-|]+|\n(.*)$')
  local sections = {}
  for name in read('../../tools/lib/test/sections.tsv'):gmatch('\n([^\t\n]+)\t') do
    sections[name] = true
  end

  for _, line in ipairs(stringx.splitlines(rows)) do
    local claim, tests = line:match('^| (.-) | (.-) |$')

    it('names what is there for: ' .. claim, function()
      local named = 0
      for test in tests:gmatch('`([^`]+)`') do
        local file, target = test:match('^(%S+) ?(%S*)$')
        named = named + 1
        if file == 'tools/fuzz' then
          assert.is_true(path.isfile(('%s/c/tests/fuzz/%s.c'):format(helper.root, target))
            or tablex.find(fuzzed.names, target) ~= nil, test)
        elseif file:find('/$') then
          assert.is_true(path.isdir(helper.root .. '/' .. file), test)
        elseif file:find('/') and file ~= 'tools/test' then
          assert.is_true(path.isfile(helper.root .. '/' .. file), test)
        elseif not file:find('/') and tests:find('section `' .. file .. '`', 1, true) then
          assert.is_true(sections[file] == true, test)
        else
          assert.equal('tools/test', test)
        end
      end
      assert.is_true(named > 0)
    end)
  end
end)
