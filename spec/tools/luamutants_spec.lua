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

  it('draws no change that is listed as harmless, and lists none whose line is gone', function()
    local rows, lines = utils.readlines('tools/lib/luamutants.tsv'), {}
    for i = 2, #rows do
      local file, was, becomes, why = unpack(utils.split(rows[i], '\t'))
      lines[file] = lines[file] or utils.readfile(file):gsub('\n%s*', '\n')
      assert.truthy(lines[file]:find('\n' .. was .. '\n', 1, true), rows[i])
      assert.truthy(#why > 0 and becomes ~= was, rows[i])
    end

    local bits = list('--count 999 --folder mock --file mock/bits.lua')

    assert.truthy(bits:find('bits.lua:%d+: 0 %-> 1\n'))
    assert.truthy(bits:find("bits.lua:%d+: 'le' %-> 'lex'\n"))
    -- `1 or 2` is what the first of the listed changes would be.
    local _, ones = bits:gsub(': 1 %-> 2\n', '')
    local _, written = utils.readfile('tools/latchkey/mock/bits.lua'):gsub('%f[%w]1%f[%W]', '')
    assert.is_true(ones > 0 and ones < written)
    assert.is_nil(bits:find("'#x'", 1, true))
  end)
end)
