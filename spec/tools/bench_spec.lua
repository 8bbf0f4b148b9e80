-- SPDX-License-Identifier: Apache-2.0
local chart = require('bench.chart')
local page = require('bench.page')
local rows = require('bench.rows')
local stats = require('bench.stats')

-- A measurement of two contenders, with these rates.
local function measured(ours, theirs)
  local function runs(values)
    local all = {}
    for i, value in ipairs(values) do
      all[i] = { pairs_per_s = value }
    end
    return all
  end
  return {
    seconds = 2, repetitions = #ours,
    machine = { date = '2026-01-01', processor = 'P & Co', cores = 2, system = 'S', server = '7',
      compiler = 'cc', load_before = '0', load_after = '1' },
    rows = { {
      id = 'one', title = 'One <owner>', figures = { 'pairs_per_s' }, chart = 'pairs_per_s',
      targets = { { 'latchkey', 'pairs_per_s', against = 'hiredis', least = 2 } },
      contenders = {
        { name = 'latchkey', ours = true, runs = runs(ours) },
        { name = 'hiredis', runs = runs(theirs) },
      },
    } },
  }
end

describe('the comparison', function()
  it('takes the median, and the quartiles around it', function()
    assert.same({ median = 3, low = 2, high = 4 }, stats.spread({ 5, 1, 4, 2, 3 }))
    assert.same({ median = 1.5, low = 1.25, high = 1.75 }, stats.spread({ 2, 1 }))
    assert.is_nil(stats.spread({}))
  end)

  it('divides the runs that were made side by side', function()
    local row = measured({ 10, 60, 20 }, { 5, 20, 10 }).rows[1]

    local ratio = stats.ratio(row.contenders[1], row.contenders[2], 'pairs_per_s')

    assert.equal(2, ratio.median)
    assert.equal(2.5, ratio.high)
  end)

  it('leaves out a run without the figure on one side, and divides no other by its neighbour',
    function()
      local row = measured({ 10, 60, 20 }, { 5, 20, 10 }).rows[1]
      row.contenders[2].runs[1].pairs_per_s = nil

      local ratio = stats.ratio(row.contenders[1], row.contenders[2], 'pairs_per_s')

      assert.same({ median = 2.5, low = 2.25, high = 2.75 }, ratio)
    end)

  it('says of each table how many runs of how long it is', function()
    local all = measured({ 3000, 3000 }, { 2000, 2000 })
    local function words(run)
      for name, value in pairs(run) do
        all.rows[1][name] = value
      end
      return page.write(all):match('### One <owner>\n\n([^\n]*)\n\n|')
    end

    assert.equal('Medians of 2 runs of 2 s, with the quartiles.', words({}))
    assert.equal('Medians of 2 runs of 10 s, with the quartiles.', words({ seconds = 10 }))
    assert.equal('Medians of 2 runs of 20,000 calls of each script, with the quartiles.',
      words({ calls = 20000 }))
    for _, contender in ipairs(all.rows[1].contenders) do
      contender.runs[2] = nil
    end
    assert.equal('One run of 5 s.', words({ calls = false, seconds = 5 }))
  end)

  it('has a lower bound where nothing at all would be the best', function()
    local all = measured({ 0 }, { 2000 })
    all.rows[1].targets = { { 'latchkey', 'pairs_per_s', least = 1, most = 3 } }

    assert.truthy(page.write(all):find('| 1 to 3 | 0 | **missed** |', 1, true))
    for _, row in ipairs(rows) do
      for _, target in ipairs(row.targets) do
        assert.is_true(target[2] ~= 'open_writes' or target.least == 1)
      end
    end
  end)

  it('names the server as it calls itself', function()
    assert.equal('Redis 7.0.15', page.server('# Server\r\nredis_version:7.0.15\r\n'))
    assert.equal('Valkey 8.1.1', page.server('redis_version:7.2.4\r\nserver_name:valkey\r\n'
      .. 'valkey_version:8.1.1\r\n'))
  end)

  it('says which targets are reached', function()
    local good = page.write(measured({ 6000, 5000 }, { 2000, 2500 }))
    local bad = page.write(measured({ 3000 }, { 2000 }))

    assert.truthy(good:find('at least 2 times hiredis | 2.5 (2.25 to 2.75) | reached |', 1, true))
    assert.truthy(bad:find('at least 2 times hiredis | 1.5 | **missed** |', 1, true))
    assert.truthy(good:find('| hiredis | 2,250 (2,125 to 2,375) |', 1, true))
  end)

  it('passes over targets of peers that were not measured', function()
    local all = measured({ 3000 }, { 2000 })
    table.remove(all.rows[1].contenders)

    assert.is_nil(page.write(all):find('times hiredis', 1, true))
  end)

  it('judges each target by contenders and figures of its row', function()
    local ids = {}
    for _, row in ipairs(rows) do
      assert.is_nil(ids[row.id])
      ids[row.id] = true
      local known = {}
      for _, contender in ipairs(row.contenders) do
        known[contender.name] = true
      end
      for _, figure in ipairs(row.figures) do
        known[figure] = true
      end
      for _, target in ipairs(row.targets) do
        assert.is_true(known[target[1]], row.id)
        assert.is_true(known[target[2]], row.id)
        assert.is_true(target.against == nil or known[target.against], row.id)
        assert.is_truthy(target.least or target.most, row.id)
      end
    end
  end)

  it('puts its section in the place of the old one', function()
    local before = 'a\n<!-- measured by tools/bench/run -->\n\nold\n\n'
      .. '<!-- end of what was measured -->\nz\n'

    local after = page.replace(before, 'new\n')

    assert.equal('a\n<!-- measured by tools/bench/run -->\n\nnew\n\n'
      .. '<!-- end of what was measured -->\nz\n', after)
    assert.equal(after, page.replace(after, 'new\n'))
  end)

  it('draws a bar for each contender, the longest for the most', function()
    local svg = chart.draw(measured({ 4000 }, { 1000 }))

    local widths = {}
    for width in svg:gmatch('<rect [^>]*width="([%d.]+)"') do
      widths[#widths + 1] = tonumber(width)
    end
    assert.equal(2, #widths)
    assert.is_true(math.abs(widths[1] / widths[2] - 4) < 0.01)
    assert.truthy(svg:find('One &lt;owner&gt;', 1, true))
  end)
end)
