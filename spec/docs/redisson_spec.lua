-- SPDX-License-Identifier: Apache-2.0
-- The page on Redisson has a line for each of its defects, and the specs and tests that a line
-- names are there.
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')

local PAGE = utils.readfile(helper.root .. '/docs/explanation/redisson.md')
local LEFT_OUT = { B24 = true, B34 = true }

local function rows()
  local list = {}
  for _, line in ipairs(stringx.splitlines(PAGE)) do
    local id, cells = line:match('^| (B%d+a?) | (.*) |$')
    if id then
      local there, here, shown = unpack(stringx.split(cells, ' | '))
      table.insert(list, { id = id, there = there, here = here, shown = shown })
    end
  end
  return list
end

-- B1 to B34, and one that came in between; without those of what is left out.
local function wanted()
  local list = {}
  for number = 1, 34 do
    local id = 'B' .. number
    if not LEFT_OUT[id] then
      table.insert(list, id)
    end
    if number == 9 then
      table.insert(list, 'B9a')
    end
  end
  return list
end

describe('the page on Redisson', function()
  it('has one line for each defect, in order', function()
    local found = {}
    for i, row in ipairs(rows()) do
      found[i] = row.id
    end

    assert.same(wanted(), found)
  end)

  it('says what is left out, and the defects of that', function()
    local left_out = PAGE:match('## Left out\n(.*)$')

    for id in pairs(LEFT_OUT) do
      assert.matches(id, left_out, 1, true)
    end
    for _, what in ipairs({ 'FasterMultiLock', 'rate limiter', 'locks of maps and sets' }) do
      assert.matches(what, left_out, 1, true)
    end
  end)

  for _, row in ipairs(rows()) do
    it(('says of %s what happens there and here, and names tests that are there'):format(row.id),
      function()
        assert.is_true(#row.there > 0 and #row.here > 0)
        assert.matches('`', row.shown)
        for name in row.shown:gmatch('`([^`]+)`') do
          local file = name:find('/', 1, true) and name
            or ('c/tests/torture/sabotages/%s.patch'):format(name)
          assert.is_string(path.exists(('%s/%s'):format(helper.root, file)), name)
        end
      end)
  end
end)
