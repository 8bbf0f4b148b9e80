-- SPDX-License-Identifier: Apache-2.0
-- The pictures of the pages: fit for a telephone, for light and dark, and for those who cannot see
-- them; and what they say of times is what the page of exec says.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local helper = require('helper')

local ASSETS = helper.root .. '/docs/assets/'

local pages = { assert(utils.readfile(helper.root .. '/README.md')) }
for _, file in ipairs(dir.getallfiles(helper.root .. '/docs', '*.md')) do
  pages[#pages + 1] = assert(utils.readfile(file))
end
local text = table.concat(pages, '\n')

local pictures = {}
for _, file in ipairs(dir.getfiles(ASSETS, '*.svg')) do
  if path.basename(file) ~= 'logo.svg' then
    pictures[#pictures + 1] = path.basename(file)
  end
end
table.sort(pictures)

describe('the pictures', function()
  it('are there', function()
    assert.equal(7, #pictures)
  end)

  for _, name in ipairs(pictures) do
    it(name .. ' can be read at 400 pixels, in light and dark', function()
      local svg = assert(utils.readfile(ASSETS .. name))

      assert.truthy(svg:find('viewBox="0 0 400 ', 1, true))
      assert.truthy(svg:find('@media (prefers-color-scheme: dark)', 1, true))
      for size in svg:gmatch('font: (%d+)px') do
        assert.is_true(tonumber(size) >= 12)
      end
      assert.falsy(svg:find('href', 1, true))
    end)

    it(name .. ' says in words what it shows, and stands on a page', function()
      local svg = assert(utils.readfile(ASSETS .. name))

      assert.is_true(#svg:match('<title[^>]*>(.-)</title>') > 10)
      assert.is_true(#svg:match('<desc[^>]*>(.-)</desc>') > 30)
      local words = text:match('!%[([^%]]+)%]%([%w./]*assets/' .. name:gsub('%p', '%%%0') .. '%)')
      assert.is_true(#assert(words, name .. ' is on no page') > 30)
    end)
  end

  it('of a session has the lines of the page, which are those of the debugger', function()
    local svg = assert(utils.readfile(ASSETS .. 'debug.svg'))
    local page = assert(utils.readfile(helper.root .. '/docs/howto/debug-a-script.md'))
    page = page:match('## A first session(.-)\n## '):gsub('%s+', ' ')
    local count = 0
    for line in svg:gmatch('<text x="8"[^>]*>(.-)</text>') do
      local words = line:gsub('<tspan.-</tspan>', ''):gsub('&lt;', '<'):gsub('&gt;', '>')
        :gsub('^%$ ', ''):gsub(' \\$', ''):gsub('%s+', ' '):gsub('^ ', '')
      assert.truthy(page:find(words, 1, true), words)
      count = count + 1
    end
    assert.is_true(count > 15)
  end)

  it('of a loss has the figures of the page of exec', function()
    local svg = assert(utils.readfile(ASSETS .. 'exec-loss.svg'))
    local page = assert(utils.readfile(helper.root .. '/docs/reference/exec.md'))
    for _, row in ipairs({ 'deadline %- margin', 'deadline %- 1/2 margin' }) do
      local long, short = page:match('| ' .. row .. ' | ([%d.]+) | ([%d.]+) |')
      assert.truthy(svg:find('>' .. long .. '<', 1, true), long)
      assert.truthy(svg:find('>' .. short .. '<', 1, true), short)
    end
  end)
end)
