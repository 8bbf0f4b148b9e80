-- SPDX-License-Identifier: Apache-2.0
local signal = require('posix.signal')
local utils = require('pl.utils')

local workshop = require('support.workshop')

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

describe('tools/luamutants, in a tree of its own,', function()
  local tree

  -- A busted that says this; in $1 is what it finds in tools/latchkey/lint/it.lua.
  local function busted(text)
    tree:program('bin/busted', '#!/bin/sh\nset -- "$(cat tools/latchkey/lint/it.lua)"\n' .. text)
  end

  before_each(function()
    tree = workshop.new()
    tree:copy('tools/luamutants', 'tools/lib/cmutate.lua', 'tools/latchkey/lua51',
      'tools/latchkey/processes.lua', 'VERSION', 'CHANGELOG.md', '.busted')
    tree:run('mkdir scripts spec docs c tools/latchkey/mock tools/latchkey/checker')
    tree:write('tools/lib/luamutants.tsv', '')
    tree:write('tools/latchkey/lint/it.lua', 'return 1\n')
    busted('case $1 in *2) echo "not ok 1 - it is one"; exit 1;; esac; echo "ok 1 - it is one"')
  end)

  after_each(function()
    tree:remove()
  end)

  local function run(arguments)
    return tree:run('PATH="$PWD/bin:$PATH" tools/luamutants ' .. (arguments or '--folder lint'))
  end

  it('says which spec finds a change, and which none does', function()
    local code, said = run()

    assert.equal(0, code, said)
    assert.equal('found   1  tools/latchkey/lint/it.lua:1: 1 -> 2: it is one\n'
      .. 'lint: 1 of 1 found\n', said)

    busted('echo "ok 1 - all is well"')
    code, said = run()

    assert.equal(1, code, said)
    assert.equal('LIVES   1  tools/latchkey/lint/it.lua:1: 1 -> 2\nlint: 0 of 1 found\n', said)
  end)

  it('judges a change again that an interrupted run was at, and leaves nothing', function()
    busted('case $1 in *2) echo >begun; exec sleep 5;; esac')
    local pid = tree:start('PATH="$PWD/bin:$PATH" exec tools/luamutants --folder lint')
    local name = 'build/luamutants/*/begun build/luamutants/*/*/begun'
    assert.equal(0, (tree:run(('until ls %s | grep .; do sleep 0.02; done'):format(name))))
    signal.kill(-pid, signal.SIGKILL)
    tree:ended(pid)
    busted('echo "ok 1 - all is well"')

    local code, said = run()

    assert.equal(1, code, said)
    assert.matches('^LIVES', said)
    assert.equal('', select(2, tree:run('ls build/luamutants')))
  end)

  it('finds nothing where a change cannot be tried', function()
    tree:run('mkdir build && : >build/luamutants')

    local code, said = run()

    assert.equal(69, code, said)
    assert.is_nil(said:find('found', 1, true))
  end)

  it('finds nothing where busted does not start', function()
    busted('case $1 in *2) exit 127;; esac')

    local code, said = run()

    assert.equal(69, code, said)
    assert.is_nil(said:find('found', 1, true))
  end)

  it('says so where specs fail as they are', function()
    busted('echo "not ok 1 - all is well"; exit 1')

    local code, said = run()

    assert.equal(69, code, said)
    assert.matches('specs of lint fail as they are: all is well', said, 1, true)
  end)

  for _, wrong in ipairs({ '--file nosuch', '--count 2', '--count 0 --folder lint',
    '--folder lint --only 2' }) do
    it('refuses what leaves nothing to be changed: ' .. wrong, function()
      local code, said = run(wrong)

      assert.equal(64, code, said)
      assert.matches('^luamutants: nothing is left to be changed', said)
    end)
  end
end)
