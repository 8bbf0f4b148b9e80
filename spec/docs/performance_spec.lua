-- SPDX-License-Identifier: Apache-2.0
-- What the page on performance says in short is what it says measured: the same day, the same
-- figures.
local utils = require('pl.utils')

local helper = require('helper')

local PAGE = utils.readfile(helper.root .. '/docs/explanation/performance.md')
local QUESTIONS = utils.readfile(helper.root .. '/docs/howto/questions.md')
local MONTHS = { 'January', 'February', 'March', 'April', 'May', 'June', 'July', 'August',
  'September', 'October', 'November', 'December' }

describe('the page on performance', function()
  local short = PAGE:match('\n## In short\n(.-)\n## ')
  local measured = PAGE:match('<!%-%- measured by tools/bench/run %-%->(.*)')

  it('says in short when it was measured', function()
    local year, month, day = measured:match('Measured on (%d+)-(%d+)-(%d+)')
    local date = ('%d %s %s'):format(tonumber(day), MONTHS[tonumber(month)], year)

    assert.matches(date, short, 1, true)
  end)

  it('says nothing in short that was not measured', function()
    local count = 0
    for figure in short:gmatch('%f[%d,]%d+,%d%d%d%f[^%d,]') do
      count = count + 1
      assert.matches('%f[%d,]' .. figure .. '%f[^%d,]', measured)
    end

    assert.is_true(count >= 8)
  end)

  it('says of the memory of an idle client what the page of questions says', function()
    local said = QUESTIONS:match('The first client of a process that does nothing takes (%d+ KiB)')

    assert.matches('| an idle client | ' .. said .. ',', short, 1, true)
  end)

  it('has what each call was counted to cost, as the record has it', function()
    local rows = { ['acquire and release'] = 'pairs', renewal = 'renew',
      ['a re-entrant acquire, and its release'] = 'reenter',
      ['hand-off inside the process'] = 'handover',
      ['hand-off between clients, and a release, beside 1,000 waiters'] = 'pass' }
    local record, seen = utils.readfile(helper.root .. '/c/tests/cost/recorded.tsv'), 0
    for title, instructions, scripts, commands in
      PAGE:gmatch('\n| ([^|]-) | ([%d,]+)[^|]* |[^|]*| (%d+) | (%d+) |') do
      local counted, all, of_scripts = record:match('\ncc 12 Release\t'
        .. assert(rows[title], title) .. '\t(%d+)\t(%d+)\t(%d+)')

      assert.near(counted / instructions:gsub(',', ''), 1, 0.02, title)
      assert.equal(of_scripts / 100, tonumber(scripts), title)
      assert.equal((all - of_scripts) / 100, tonumber(commands), title)
      seen = seen + 1
    end

    assert.equal(5, seen)
  end)

  it('says of a release what the table has', function()
    local said = PAGE:match('A release runs half as many, and takes ([%d.]+) times as long')

    assert.equal(measured:match('| release, us | at most [%d.]+ times [^|]*| ([%d.]+) '), said)
  end)

  it('says as many targets missed as the table does', function()
    local _, missed = measured:gsub('%*%*missed%*%*', '')
    local words = { 'One target was', 'Two targets were', 'Three targets were',
      'Four targets were', 'Five targets were', 'Six targets were', 'Seven targets were',
      'Eight targets were' }

    assert.matches(words[missed]:gsub(' ', '%%s+'), short)
  end)
end)
