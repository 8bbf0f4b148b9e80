-- SPDX-License-Identifier: Apache-2.0
-- The page of questions: many, short answers, each with a link; found from every index.
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')

local DOCS = helper.root .. '/docs/'
local MOST_LINES = 8

local function read(file)
  return assert(utils.readfile(file))
end

-- { title, lines, group } of each question.
local function questions()
  local list, group, one = {}, nil, nil
  for _, line in ipairs(stringx.splitlines(read(DOCS .. 'howto/questions.md'))) do
    if line:find('^## ') then
      group, one = line:sub(4), nil
    elseif line:find('^### ') then
      one = { title = line:sub(5), lines = {}, group = group }
      list[#list + 1] = one
    elseif one and line ~= '' then
      table.insert(one.lines, line)
    end
  end
  return list
end

describe('the page of questions', function()
  local all = questions()

  it('has at least thirty, each once', function()
    local seen = {}
    for _, one in ipairs(all) do
      assert.is_nil(seen[one.title], one.title)
      seen[one.title] = true
    end

    assert.is_true(#all >= 30)
  end)

  for _, one in ipairs(all) do
    it(('answers "%s" in a few lines, with a link'):format(one.title), function()
      local text = table.concat(one.lines, '\n')

      assert.equal('?', one.title:sub(-1))
      assert.is_true(#one.lines >= 1 and #one.lines <= MOST_LINES, #one.lines .. ' lines')
      assert.matches('%]%([^)]+%)', text)
      for target in text:gmatch('%]%(([^)#]+)[^)]*%)') do
        if not target:find('^https://') then
          assert.is_string(path.exists(DOCS .. 'howto/' .. target), target)
        end
      end
    end)

    if one.group == 'Servers and services' then
      it(('says of "%s" what was tried'):format(one.title), function()
        local first = one.lines[1]

        assert.truthy(first:find('^Tried: ') or first:find('^Read, not tried: '), first)
      end)
    end
  end

  it('is found from every index', function()
    for _, file in ipairs({ 'README.md', 'docs/index.md', 'docs/howto/troubleshoot.md',
      'docs/howto/stuck-lock.md', 'docs/howto/production.md', 'docs/reference/glossary.md' }) do
      assert.matches('questions.md', read(path.join(helper.root, file)), 1, true)
    end
  end)
end)
