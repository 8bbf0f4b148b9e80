-- SPDX-License-Identifier: Apache-2.0
-- What the pages for contributors say of the tree, against the tree.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local helper = require('helper')

local ROOT = helper.root .. '/'

local function read(file)
  return assert(utils.readfile(ROOT .. file))
end

-- The folders of CONTRIBUTING's table, with the text of each: of those that begin with `prefix`.
local function rows_of(prefix)
  local text = {}
  for row in read('CONTRIBUTING.md'):match('\n## The tree\n(.-)\n## '):gmatch('\n(|[^\n]*)') do
    if row:sub(1, #prefix) == prefix then
      text[#text + 1] = row
    end
  end
  return table.concat(text, '\n')
end

local function folders_of(folder)
  local names = {}
  for _, one in ipairs(dir.getdirectories(ROOT .. folder)) do
    names[#names + 1] = path.basename(one)
  end
  assert.is_true(#names > 3)
  return names
end

describe('the tree in CONTRIBUTING.md', function()
  it('has each folder of tools that are installed', function()
    for _, name in ipairs(folders_of('tools/latchkey')) do
      assert.truthy(rows_of('| - '):find('`' .. name .. '/`', 1, true), name)
    end
  end)

  it('has each folder of tests in C', function()
    for _, name in ipairs(folders_of('c/tests')) do
      assert.truthy(rows_of('| `c/tests/`'):find('`' .. name .. '/`', 1, true), name)
    end
  end)
end)

describe('the page on the architecture', function()
  it('says of each file of the library what it is for', function()
    local page, count = read('docs/explanation/architecture.md'), 0
    for _, file in ipairs(dir.getallfiles(ROOT .. 'c/src', '*.c')) do
      local name = path.basename(file)
      local of_many = name:gsub('^(topology)_%l+', '%1_*')
      local floor = path.basename(path.dirname(file))
      local row = '\n| `' .. floor .. '/` |[^\n]*`' .. of_many:gsub('%p', '%%%0') .. '`'
      assert.truthy(page:find(row), floor .. '/' .. name)
      count = count + 1
    end
    assert.is_true(count > 80)
  end)
end)

describe('the page on the simulator', function()
  it('says how soon each wrong version was found', function()
    local page, count = read('docs/explanation/simulation.md'), 0
    for _, folder in ipairs({ 'c/tests/torture/sabotages', 'c/tests/sim/sabotages' }) do
      for _, file in ipairs(dir.getfiles(ROOT .. folder, '*.patch')) do
        local name = path.basename(file):gsub('%.patch$', '')
        local to_be_found = not read(file:sub(#ROOT + 1)):find('Found by: torture alone', 1, true)
        assert.equal(to_be_found, page:find('\n| ' .. name .. ' | ', 1, true) ~= nil, name)
        count = count + 1
      end
    end
    assert.is_true(count > 40)
  end)
end)
