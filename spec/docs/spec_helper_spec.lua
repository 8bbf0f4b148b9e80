-- SPDX-License-Identifier: Apache-2.0
-- The page on the spec helper has all of it, and nothing else.
local utils = require('pl.utils')

local World = require('latchkey.mock.world')
local helper = require('helper')

local PAGE = helper.root .. '/docs/reference/spec-helper.md'

-- What the page names behind this prefix.
local function named(text, prefix)
  local names = {}
  for name in text:gmatch('%f[%w]' .. prefix .. '([%w_]+)') do
    names[name] = true
  end
  return names
end

describe('the page on the spec helper', function()
  local text = assert(utils.readfile(PAGE))

  it('names each of its functions and values', function()
    local has = {}
    for name in pairs(helper) do
      has[name] = true
    end
    -- The project's own alone.
    has.root, has.is_watched = nil, nil

    assert.same(has, named(text, 'helper%.'))
  end)

  it('names methods that worlds of both kinds have', function()
    -- Read and not required: it needs the C library.
    local live = assert(utils.readfile(helper.root .. '/tools/latchkey/spec/live.lua'))

    for name in pairs(named(text, 'world:')) do
      assert.is_function(World[name], name)
      assert.truthy(live:find(('function World:%s('):format(name), 1, true), name)
    end
  end)
end)
