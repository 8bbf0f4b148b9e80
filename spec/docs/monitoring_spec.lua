-- SPDX-License-Identifier: Apache-2.0
-- Rules and dashboard ask for metrics that latchkey writes: the page of the metrics has those
-- (spec/documents holds it to the program). promtool tests what the rules do.
local cjson = require('cjson')
local utils = require('pl.utils')

local helper = require('helper')

local FOLDER = helper.root .. '/c/packaging/monitoring/'

local function read(file)
  return assert(utils.readfile(file))
end

-- Names of series: a histogram has three.
local exported = {}
for name, kind in read(helper.root .. '/docs/reference/metrics.md')
  :gmatch('\n| `(latchkey_[%l_]+)` | (%l+) |') do
  for _, suffix in ipairs(kind == 'histogram' and { '_bucket', '_sum', '_count' } or { '' }) do
    exported[name .. suffix] = true
  end
end

local function check(text)
  local count = 0
  for name in text:gmatch('%f[%w_](latchkey_[%l_]+)') do
    assert.is_true(exported[name] or false, name)
    count = count + 1
  end
  return count
end

-- The alerts of the rules, and those that the test makes fire, each once.
local function alerts(file, pattern)
  local names, seen = {}, {}
  for name in read(FOLDER .. file):gmatch(pattern) do
    if not seen[name] then
      seen[name], names[#names + 1] = true, name
    end
  end
  table.sort(names)
  return names
end

-- What a job leaves is of one run: the values of several runs are no counter, and a range over time
-- leaves them out.
local function check_ranges(text)
  local count = 0
  for name, labels in text:gsub('\\"', '"'):gmatch('(latchkey_[%l_]+)({?[^}%s]*}?)%[') do
    assert.truthy(labels:find('job!="node"', 1, true), name)
    count = count + 1
  end
  return count
end

describe('the rules for Prometheus', function()
  it('take no counters of single runs for those of services', function()
    assert.is_true(check_ranges(read(FOLDER .. 'rules.yml')) >= 7)
  end)

  it('ask for metrics that there are', function()
    assert.is_true(check(read(FOLDER .. 'rules.yml')) >= 10)
    assert.is_true(check(read(FOLDER .. 'rules_test.yml')) >= 10)
  end)

  it('are made to fire by their test, each of them', function()
    local all = alerts('rules.yml', 'alert: (%a+)')

    assert.is_true(#all >= 10)
    assert.same(all, alerts('rules_test.yml', 'alertname="(%a+)"'))
  end)

  it('say what to do', function()
    local _, with_action = read(FOLDER .. 'rules.yml'):gsub('\n          action: %S', '')

    assert.equal(#alerts('rules.yml', 'alert: (%a+)'), with_action)
  end)

  it('do what their test says', function()
    if not utils.execute('command -v promtool >/dev/null 2>&1') then
      pending('promtool is not installed')
    end
    local ok, _, out, err = utils.executeex(("cd '%s' && promtool check rules rules.yml && "
      .. 'promtool test rules rules_test.yml'):format(FOLDER))

    assert.is_true(ok, out .. err)
  end)
end)

describe('the dashboard for Grafana', function()
  local text = read(FOLDER .. 'dashboard.json')
  local dashboard = cjson.decode(text)

  it('asks for metrics that there are', function()
    assert.is_true(check(text:gsub('"title": "latchkey"', '')) >= 10)
  end)

  it('takes no counters of single runs for those of services', function()
    assert.is_true(check_ranges(text) >= 10)
  end)

  it('has panels that do not overlap, each with a query and a title', function()
    local taken = {}
    for _, panel in ipairs(dashboard.panels) do
      assert.is_true(#panel.title > 0 and #panel.targets > 0)
      local at = panel.gridPos
      for x = at.x, at.x + at.w - 1 do
        for y = at.y, at.y + at.h - 1 do
          assert.is_nil(taken[x .. ' ' .. y], panel.title)
          taken[x .. ' ' .. y] = true
        end
      end
    end
    assert.equal(10, #dashboard.panels)
  end)
end)
