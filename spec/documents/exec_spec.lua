-- SPDX-License-Identifier: Apache-2.0
-- The page of `latchkey exec` against the program: its options, its exit codes, and the time line
-- of a loss.
local utils = require('pl.utils')

local program = require('cli.program')

local PAGE = assert(utils.readfile(program.root .. '/docs/reference/exec.md'))

local function source(file)
  return assert(utils.readfile(program.root .. '/' .. file))
end

local function constant(file, name)
  return tonumber(source(file):match('%f[%w_]' .. name .. ' = (%d+)'), 10)
end

local function sorted(set)
  local list = {}
  for name in pairs(set) do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

describe('the page of exec', function()
  teardown(program.clean)

  it('has a row for each option of --help, with its choices, and for no others', function()
    local help, offered, described = program.run({ 'exec', '--help' }).out, {}, {}
    for option, rest in help:gmatch('\n  %-?%a?,? ?(%-%-[%l-]+)([^\n]*)') do
      local choice = (option == '--leftover' or option:find('^%-%-on%-')) and rest:match('^ (%l+)')
      offered[choice and option .. ' ' .. choice or option] = true
    end
    for cell in PAGE:match('## Options\n(.-)\n## '):gmatch('\n| ([^|]+) |') do
      local option, value = cell:match('`(%-%-[%l-]+) ?(%l*)')
      if option then
        described[value ~= '' and option .. ' ' .. value or option] = true
      end
    end

    assert.same(sorted(offered), sorted(described))
    assert.is_true(#sorted(offered) > 20)
  end)

  it('has the exit codes of the tools\' table that are its own', function()
    local codes = PAGE:match('## Exit codes\n(.-)\n## ')
    for _, row in ipairs(require('latchkey.cli.exits')) do
      if row.code > 3 then
        assert.truthy(codes:find('%f[%d]' .. row.code .. '%f[%D]'), row.code)
      end
    end
  end)

  it('has in its time line what the sources compute', function()
    local grace = constant('c/cli/exec_job.h', 'JOB_GRACE_MS')
    local least = constant('c/cli/exec_end.c', 'LEAST_MS')
    assert.truthy(source('c/cli/exec_locks.c'):find('exec_hold_lease_ms(hold)) / 6;', 1, true))
    assert.truthy(source('c/cli/exec_locks.c'):find('part_ms < JOB_GRACE_MS', 1, true))
    assert.truthy(source('c/cli/exec_front.c'):find('lead_ms * 3 / 4', 1, true))
    assert.truthy(source('c/src/harness/lease.c'):find('lease_us / 100 + 2000', 1, true))
    local leases = { 30000, 10000, 3000 }
    local steps = {
      ['lease / 3'] = function(lease)
        return lease / 3
      end,
      ['deadline - margin'] = function(_, deadline, margin)
        return deadline - margin
      end,
      ['deadline - 3/4 margin'] = function(_, deadline, margin)
        return deadline - margin * 3 / 4
      end,
      ['deadline - 1/2 margin'] = function(_, deadline, margin)
        return deadline - math.max(margin / 2, least)
      end,
      ['lease - lease/100 - 2 ms'] = function(_, deadline)
        return deadline
      end,
      ['lease'] = function(lease)
        return lease
      end,
    }
    local checked = 0
    for formula, cells in PAGE:gmatch('\n| [^|\n]+ | (%l[^|\n]*) | ([%d. |]+) |') do
      local column = 0
      for shown in cells:gmatch('[%d.]+') do
        column = column + 1
        local lease = leases[column]
        local expected = steps[formula](lease, lease - lease / 100 - 2, math.min(lease / 6, grace))
        assert.equal(('%.1f'):format(expected / 1000), shown, formula)
        checked = checked + 1
      end
    end

    assert.equal(18, checked)
  end)
end)
