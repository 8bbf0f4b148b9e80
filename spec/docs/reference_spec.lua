-- SPDX-License-Identifier: Apache-2.0
-- Each family has a page, and what the page says of keys, arguments and replies is what the headers
-- say.
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local helper = require('helper')
local names = require('latchkey.script.names')

local PAGES = helper.root .. '/docs/reference/'

local function family_of(name)
  return name:match('^[^/]+')
end

-- The rows of a page's table of scripts: name -> the cells behind it.
local function rows_of(text)
  local rows, is_there = {}, false
  for _, line in ipairs(stringx.splitlines(text)) do
    is_there = line:find('^| script |') ~= nil or is_there and line:find('^|') ~= nil
    local name, cells = line:match('^| `([%l_]+/[%l_]+)` | (.*) |$')
    if is_there and name then
      assert.is_nil(rows[name], name .. ' has two rows')
      rows[name] = stringx.split(cells, ' | ')
    end
  end
  return rows
end

local function arguments_of(h)
  local words = {}
  for i, argument in ipairs(h.argv) do
    words[i] = argument.optional and '[' .. argument.name .. ']'
      or argument.name .. (argument.many and '...' or '')
  end
  return #words == 0 and 'none' or '`' .. table.concat(words, ' ') .. '`'
end

local function shapes_of(h)
  local shapes = {}
  for i, reply in ipairs(h.returns) do
    shapes[i] = reply.shape
  end
  return shapes
end

local function shapes_in(cell)
  local shapes = {}
  for shape in cell:gmatch('`({[^`]*})`') do
    shapes[#shapes + 1] = shape
  end
  return shapes
end

-- How the name of a key or channel is written in a page.
local function written(form)
  local plus = form.plus:match('^[^+]+')
  return names.form(form, 'N', plus and { [plus] = '<' .. plus .. '>' })
end

local pages, texts = {}, {}
for _, script in ipairs(assert(catalog.read(helper.root .. '/scripts'))) do
  local family = family_of(script.name)
  pages[family] = pages[family] or {}
  table.insert(pages[family], script)
end

local function text_of(family)
  local file = PAGES .. family .. '.md'
  texts[family] = texts[family] or utils.readfile(file) or error('there is no ' .. file, 0)
  return texts[family]
end

local families = {}
for family in pairs(pages) do
  table.insert(families, family)
end
table.sort(families)

describe('the page on the wire', function()
  it('names each key and channel that is latchkey\'s own', function()
    local page, count = assert(utils.readfile(PAGES .. 'wire.md')), 0
    for _, script in ipairs(catalog.read(helper.root .. '/scripts')) do
      for name in script.source:match('^(.-)\n%]%]\n'):gmatch('prefix:(latchkey_[%l_]+)') do
        assert.truthy(page:find('`' .. name .. ':{N}', 1, true), name)
        count = count + 1
      end
    end
    assert.is_true(count > 30)
  end)
end)

for _, family in ipairs(families) do
  describe(('the page of %s'):format(family), function()
    it('has a row for each script, and for no others', function()
      local rows = rows_of(text_of(family))
      for _, script in ipairs(pages[family]) do
        assert.is_table(rows[script.name], script.name .. ' has no row')
        rows[script.name] = nil
      end
      assert.same({}, rows)
    end)

    for _, script in ipairs(pages[family]) do
      it(('has the arguments and replies of %s'):format(script.name), function()
        local row = rows_of(text_of(family))[script.name]

        assert.equal(arguments_of(script.header), row[1])
        assert.same(shapes_of(script.header), shapes_in(row[3]))
      end)

      it(('names the keys and channels of %s'):format(script.name), function()
        for _, key in ipairs(script.header.keys) do
          if key.form.kind ~= 'slot' then
            assert.matches('`' .. written(key.form) .. '`', text_of(family), 1, true)
          end
        end
        for _, argument in ipairs(script.header.argv) do
          if argument.form then
            assert.matches('`' .. written(argument.form), text_of(family), 1, true)
          end
        end
      end)
    end

    it('names no script that is not there', function()
      for name in text_of(family):gmatch('`([%l_]+/[%l_]+)`') do
        local known = not pages[family_of(name)]
        for _, script in ipairs(pages[family_of(name)] or {}) do
          known = known or script.name == name
        end
        assert.is_true(known, name)
      end
    end)

    it('leads only to pages that are there', function()
      for target in text_of(family):gmatch('%]%(([^)#]+)%)') do
        assert.is_string(path.exists(PAGES .. target), target)
      end
    end)
  end)
end
