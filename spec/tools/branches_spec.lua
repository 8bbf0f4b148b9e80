-- SPDX-License-Identifier: Apache-2.0
-- What is said of branches that the library's tests take.
local branches = require('lib.branches')

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

describe('branches', function()
  it('are counted by side and by folder, those of the library alone', function()
    local result = branches.count(export(), read, {})

    assert.equal(3, result.taken)
    assert.equal(6, result.all)
    assert.same({ net = { taken = 1, all = 4 }, base = { taken = 2, all = 2 } }, result.folders)
  end)

  it('that were not taken are named with their line, and a reason where there is one', function()
    local reasons = branches.reasons('file\tpart\treason\n*\t!x\tno memory\nnet/two.c\t&&\tother\n')
    local result = branches.count(export(), read, reasons)

    assert.equal(3, #result.missed)
    assert.same({ file = 'net/one.c', line = 1, column = 5, side = 'true', text = SOURCE[1],
      reason = 'no memory' }, result.missed[1])
    assert.is_nil(result.missed[2].reason)
    assert.equal(1, reasons[1].times)
    assert.equal(0, reasons[2].times)
  end)

  it('are not rounded up', function()
    assert.equal('94.9', branches.share({ taken = 94999, all = 100000 }))
    assert.equal('-', branches.share({ taken = 0, all = 0 }))
  end)
end)
