-- SPDX-License-Identifier: Apache-2.0
-- The page on the checker says which function of the library each step of a model follows: both are
-- there by these names.
local dir = require('pl.dir')
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')

local PAGE = utils.readfile(helper.root .. '/docs/explanation/checker.md')
local TABLE = PAGE:match('| step | model | library |\n|[-|]+|\n(.-)\n\n')

local function source_of(folder, pattern)
  local texts = {}
  for _, file in ipairs(dir.getallfiles(helper.root .. folder, pattern)) do
    texts[#texts + 1] = utils.readfile(file)
  end
  return table.concat(texts, '\n')
end

local model, library = source_of('/tools/latchkey/checker', '*.lua'), source_of('/c/src', '*.c')

-- The names of a cell: functions, and files that they are in.
local function names_in(cell)
  local names = {}
  for name in cell:gmatch('`([^`]+)`') do
    names[#names + 1] = name
  end
  return names
end

local function is_file_of_library(name)
  return #dir.getallfiles(helper.root .. '/c/src', '*/' .. name) > 0
end

local function stands_in(source, name)
  return source:find('%f[%w_]' .. name .. '%f[^%w_]') ~= nil
end

describe('the page on the checker', function()
  it('has a table of steps', function()
    assert.is_true(#stringx.splitlines(TABLE) >= 15)
  end)

  for _, line in ipairs(stringx.splitlines(TABLE)) do
    local step, followed, code = line:match('^| (.-) | (.-) |(.*)|$')

    it('names what is there for: ' .. step, function()
      for _, name in ipairs(names_in(followed)) do
        local there = path.exists(helper.root .. '/tools/latchkey/checker/' .. name)
          or path.exists(helper.root .. '/tools/latchkey/checker/models/' .. name)
          or stands_in(model, name:match('[%w_]+$'))
        assert.is_truthy(there, name)
      end
      for _, name in ipairs(names_in(code)) do
        local there = is_file_of_library(name) or stands_in(library, name)
        assert.is_truthy(there, name)
      end
    end)
  end
end)
