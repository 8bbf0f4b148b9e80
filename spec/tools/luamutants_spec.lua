-- SPDX-License-Identifier: Apache-2.0
local utils = require('pl.utils')

describe('tools/luamutants', function()
  local function list(words)
    local good, _, out, err = utils.executeex('luajit tools/luamutants --list ' .. words)
    assert.is_true(good, err)
    return out
  end

  it('draws the same changes of each folder for a seed', function()
    local first = list('--count 30 --seed 7')

    assert.equal(first, list('--count 30 --seed 7'))
    assert.not_equal(first, list('--count 30 --seed 8'))
    for _, folder in ipairs({ 'lint', 'mock', 'checker' }) do
      assert.equal(10, select(2, first:gsub('tools/latchkey/' .. folder .. '/', '')))
    end
  end)

  it('changes a token that stands in the line', function()
    for file, line, was in list('--count 9'):gmatch('  (%S+):(%d+): (%S+) %-> %S+\n') do
      local text = utils.readlines(file)[tonumber(line)]
      assert.truthy(text:find(was, 1, true), text)
    end
    assert.matches('^  4  ', list('--count 9 --only 4'))
  end)
end)
