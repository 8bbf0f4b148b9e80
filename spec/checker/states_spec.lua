-- SPDX-License-Identifier: Apache-2.0
-- How far the models of latchkey's families go. A model that has lost a choice passes its checks
-- with fewer states, so states, transitions and choices are compared with recorded ones. After a
-- change that is meant: LK_RECORD=1 busted spec/checker/states_spec.lua
local utils = require('pl.utils')

local checker = require('latchkey.checker')

local RECORDED = 'spec/checker/states.tsv'

-- Without faults, which take long; two rounds, since some choices are those of a second one.
local BOUNDS = { clients = 2, rounds = 2, faults = 0 }

local function row_of(family)
  local verdict = checker.check(family, BOUNDS)
  assert.same({}, verdict.findings)
  return ('%s\t%d\t%d\t%s'):format(family, verdict.states, verdict.transitions,
    table.concat(verdict.choices, ' '))
end

describe('the model of', function()
  local rows = {}
  for line in io.lines(RECORDED) do
    rows[line:match('^%S+')] = line
  end

  for _, family in ipairs(checker.families) do
    it(family .. ' goes as far as is recorded', function()
      local row = row_of(family)

      if os.getenv('LK_RECORD') then
        rows[family] = row
      end
      assert.equal(rows[family], row)
    end)
  end

  teardown(function()
    local lines = { rows['#'] }
    for _, family in ipairs(checker.families) do
      lines[#lines + 1] = rows[family]
    end
    if os.getenv('LK_RECORD') then
      assert(utils.writefile(RECORDED, table.concat(lines, '\n') .. '\n'))
    end
  end)
end)
