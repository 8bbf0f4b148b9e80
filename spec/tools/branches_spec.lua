-- SPDX-License-Identifier: Apache-2.0
-- What is said of branches that the library's tests take.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local branches = require('lib.branches')
local helper = require('helper')

local SOURCE = { 'if (!x) return;', 'if (a && b) go();' }

-- Two branches, of which the first was taken to one side and the second to none.
local function export()
  return { data = { { files = {
    { filename = '/home/c/src/net/one.c', branches = {
      { 1, 5, 1, 7, 0, 3, 0, 0, 4 }, { 2, 5, 2, 6, 0, 0, 0, 0, 4 } } },
    { filename = '/home/c/src/base/two.c', branches = { { 2, 5, 2, 6, 7, 1, 0, 0, 4 } } },
    { filename = '/home/c/tests/unit/test_it.c', branches = { { 1, 5, 1, 7, 0, 0, 0, 0, 4 } } },
  } } } }
end

local function read()
  return SOURCE
end

local HEAD = 'file\tpart\tside\truns\treason\n'

-- What is wrong where these rows are the reasons.
local function wrong(rows)
  local reasons = branches.reasons(HEAD .. rows)
  return branches.wrong(branches.count(export(), read, reasons), reasons)
end

describe('branches', function()
  it('are counted by side and by folder, those of the library alone', function()
    local result = branches.count(export(), read, {})

    assert.equal(3, result.taken)
    assert.equal(6, result.all)
    assert.same({ net = { taken = 1, all = 4 }, base = { taken = 2, all = 2 } }, result.folders)
  end)

  it('that were not taken are named with their line, and a reason where there is one', function()
    local reasons = branches.reasons(HEAD .. '*\t!x\tany\tnever\tno memory\n'
      .. 'net/two.c\t&&\tany\tnever\tother\n')
    local result = branches.count(export(), read, reasons)

    assert.equal(3, #result.missed)
    assert.same({ file = 'net/one.c', line = 1, column = 5, side = 'true', text = SOURCE[1],
      reason = 'no memory' }, result.missed[1])
    assert.is_nil(result.missed[2].reason)
    assert.equal(1, reasons[1].times)
    assert.equal(0, reasons[2].times)
  end)

  it('of a header are counted once, whichever files include it', function()
    local twice = export()
    local one = twice.data[1].files[1]
    one.branches = { { 1, 5, 1, 7, 0, 3, 0, 0, 4 }, { 1, 5, 1, 7, 2, 0, 0, 0, 4 } }

    local result = branches.count(twice, read, {})

    assert.same({ taken = 2, all = 2 }, result.folders.net)
  end)

  it('that were not taken are wrong, unless each side has a reason', function()
    local all = '*\t!x\ttrue\tnever\tno memory\nnet/one.c\t&&\tany\tsome runs\twho comes first\n'

    assert.same({}, wrong(all))
    assert.same({
      'c/src/net/one.c:1:5 is never true, and branches.tsv has no reason: if (!x) return;',
      'c/src/net/one.c:2:5 is never true, and branches.tsv has no reason: if (a && b) go();' },
      wrong('net/one.c\t&&\tfalse\tnever\tother\n'))
  end)

  it('have no reason longer than there is such code', function()
    assert.same({ 'branches.tsv, net/one.c, if (gone): there is no such branch any more' },
      wrong('*\t!x\tany\tnever\ta\n*\t&&\tany\tnever\tb\n'
        .. 'net/one.c\tif (gone)\tany\tsome runs\tc\n'))
  end)

  it('that a run took are taken in no run no more, but may be in some runs', function()
    local rows = '*\t!x\ttrue\tnever\ta\n*\t&&\tany\tnever\tb\nbase/two.c\t&&\tany\t%s\tc\n'

    assert.same({ 'branches.tsv, base/two.c, &&: was taken, so the reason is not true' },
      wrong(rows:format('never')))
    assert.same({}, wrong(rows:format('some runs')))
  end)

  it('have reasons of a form that is read whole', function()
    assert.has_error(function()
      branches.reasons(HEAD .. 'net/one.c\tif\tboth\tnever\ta\n')
    end, 'branches.tsv:2 is not understood')
    assert.has_error(function()
      branches.reasons(HEAD .. 'net/one.c\tif\tany\tnever\n')
    end, 'branches.tsv:2 is not understood')
  end)

  -- A run of tools/coverage takes half an hour to say the same.
  it('have reasons for code that is there', function()
    local rows = branches.reasons(utils.readfile(helper.root .. '/tools/lib/branches.tsv'))
    local gone = {}
    for _, row in ipairs(rows) do
      local any = row.file == '*'
      local source = not any and utils.readfile(helper.root .. '/c/src/' .. row.file)
      if not any and not (source and source:find(row.part, 1, true)) then
        gone[#gone + 1] = ('%s: %s'):format(row.file, row.part)
      end
    end

    assert.is_true(#rows > 100)
    assert.same({}, gone)
  end)

  it('are not rounded up', function()
    assert.equal('94.9', branches.share({ taken = 94999, all = 100000 }))
    assert.equal('-', branches.share({ taken = 0, all = 0 }))
  end)
end)

describe('tools/coverage', function()
  local root

  -- A program of the tree that ends with this code.
  local function program(name, code)
    dir.makepath(path.dirname(root .. '/' .. name))
    utils.writefile(root .. '/' .. name, ('#!/bin/sh\nexit %d\n'):format(code))
    assert(utils.execute(("chmod +x '%s/%s'"):format(root, name)))
  end

  -- A tree in which nothing is built and all tests pass, beside a compiler that does nothing.
  before_each(function()
    root = path.tmpname()
    os.remove(root)
    for name in ([[tools/lib/build.sh bin/clang bin/llvm-profdata bin/llvm-cov bin/luajit
      build/coverage/tests/test_it build/coverage/tests/sim build/coverage/tests/torture
      build/coverage/tests/crowd build/coverage/tests/faults]]):gmatch('%S+') do
      program(name, 0)
    end
    dir.makepath(root .. '/tools/lib/test')
    for _, name in ipairs({ 'tools/coverage', 'tools/lib/test/with_terminals.sh' }) do
      assert(utils.execute(("cp '%s/%s' '%s/%s'"):format(helper.root, name, root, name)))
    end
    for _, label in ipairs({ 'unit', 'live', 'refused' }) do
      dir.makepath(('%s/c/tests/%s'):format(root, label))
      utils.writefile(('%s/c/tests/%s/test_it.c'):format(root, label), '')
    end
    dir.makepath(root .. '/c/src')
    utils.writefile(root .. '/c/src/it.c', '')
  end)

  after_each(function()
    dir.rmtree(root)
  end)

  -- What it counts lies there already.
  local function run()
    dir.makepath(root .. '/build/coverage/counts')
    utils.writefile(root .. '/build/coverage/counts/it.profraw', '')
    local command = ("PATH='%s/bin':$PATH '%s/tools/coverage' --add"):format(root, root)
    local _, code, _, said = utils.executeex(command)
    return code, said
  end

  it('passes where the tests do', function()
    local code, said = run()

    assert.equal(0, code, said)
    assert.equal('', said)
  end)

  for name, said_of in pairs({ test_it = 'tests failed (unit)', crowd = 'crowd 10 failed',
    sim = 'worlds failed (--topology one --work lock)' }) do
    it('fails where one does not: ' .. name, function()
      program('build/coverage/tests/' .. name, 1)

      local code, said = run()

      assert.equal(1, code, said)
      assert.truthy(said:find('coverage: ' .. said_of .. '; see build/coverage/', 1, true), said)
    end)
  end
end)
