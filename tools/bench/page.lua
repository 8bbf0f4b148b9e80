-- SPDX-License-Identifier: Apache-2.0
-- The tables of a measurement, in Markdown.
local stats = require('bench.stats')

local page = {}

local BEGIN, END = '<!-- measured by tools/bench/run -->\n', '<!-- end of what was measured -->\n'

local WORDS = {
  pairs_per_s = 'pairs a second', p50_us = 'pair, median, us', p99_us = 'pair, 99 %, us',
  commands_per_pair = 'commands a pair', client_cpu_us_per_pair = 'client CPU a pair, us',
  server_cpu_us_per_pair = 'server CPU a pair, us', handoff_p50_us = 'hand-off, median, us',
  handoff_p99_us = 'hand-off, 99 %, us', commands_per_handoff = 'commands a hand-off',
  client_cpu_us_per_handoff = 'client CPU a hand-off, us',
  server_cpu_us_per_handoff = 'server CPU a hand-off, us', commands = 'commands',
  client_cpu_percent = 'client CPU, % of a core', bytes_per_waiter = 'bytes a waiter',
  renewals_per_s = 'renewals a second', longest_unrenewed_ms = 'longest without renewal, ms',
  bytes_per_hold = 'bytes a hold', bytes_per_handle = 'bytes a handle',
  acquire_us = 'acquire, us', release_us = 'release, us', client_bytes = 'memory, bytes',
  threads_added = 'threads', open_writes = 'writes to open and load',
}

local function number(value)
  local size = math.abs(value)
  if size >= 1000 then
    local digits = ('%.0f'):format(value):reverse():gsub('(%d%d%d)', '%1,'):reverse()
    return (digits:gsub('^,', ''))
  end
  return ((size >= 100 and '%.0f' or size >= 10 and '%.1f' or '%.2f'):format(value)
    :gsub('(%.%d-)0+$', '%1'):gsub('%.$', ''))
end

local function cell(spread)
  if not spread then
    return ''
  elseif spread.low == spread.high then
    return number(spread.median)
  end
  return ('%s (%s to %s)'):format(number(spread.median), number(spread.low), number(spread.high))
end

local function line(cells)
  return '| ' .. table.concat(cells, ' | ') .. ' |\n'
end

local function heading(cells)
  return line(cells) .. '|' .. ('---|'):rep(#cells) .. '\n'
end

local function runs_of(row, all)
  local each = row.calls and number(row.calls) .. ' calls of each script'
    or ('%g s'):format(row.seconds or all.seconds)
  local count = 0
  for _, contender in ipairs(row.contenders) do
    count = math.max(count, #contender.runs)
  end
  if count == 1 then
    return ('One run of %s.\n\n'):format(each)
  end
  return ('Medians of %d runs of %s, with the quartiles.\n\n'):format(count, each)
end

local function table_of(row, all)
  local titles = { 'client' }
  for _, name in ipairs(row.figures) do
    titles[#titles + 1] = WORDS[name]
  end
  local lines = { '### ' .. row.title .. '\n\n', runs_of(row, all), heading(titles) }
  for _, contender in ipairs(row.contenders) do
    local cells = { contender.name }
    for _, name in ipairs(row.figures) do
      cells[#cells + 1] = cell(stats.spread(stats.column(contender, name)))
    end
    lines[#lines + 1] = line(cells)
  end
  return table.concat(lines)
end

local function find(row, name)
  for _, contender in ipairs(row.contenders) do
    if contender.name == name then
      return contender
    end
  end
end

---What a target came to: what was measured as text, and whether it is reached; nil where a side of
---it was not measured.
local function judge(row, target)
  local ours, other = find(row, target[1]), target.against and find(row, target.against)
  if not ours or (target.against and not other) then
    return nil
  end
  local spread = other and stats.ratio(ours, other, target[2])
    or stats.spread(stats.column(ours, target[2]))
  if not spread then
    return nil
  end
  local reached = spread.median >= (target.least or -math.huge)
    and spread.median <= (target.most or math.huge)
  return cell(spread), reached
end

local function limit_of(target)
  if target.least and target.most then
    return ('%s to %s'):format(number(target.least), number(target.most))
  end
  return (target.least and 'at least ' or 'at most ') .. number(target.least or target.most)
end

local function targets_of(all)
  local lines = { heading({ 'what', 'figure', 'to reach', 'measured', 'reached' }) }
  for _, row in ipairs(all.rows) do
    for _, target in ipairs(row.targets) do
      local measured, reached = judge(row, target)
      if measured then
        local limit = limit_of(target)
        local figure = WORDS[target[2]]
        lines[#lines + 1] = line({ row.title .. ': ' .. target[1], figure,
          target.against and ('%s times %s'):format(limit, target.against) or limit, measured,
          reached and 'reached' or '**missed**' })
      end
    end
  end
  return table.concat(lines)
end

local function machine_of(all)
  local m = all.machine
  local peers = (m.python and (', Python and redis-py %s'):format(m.python) or '')
    .. (m.node and (', Node %s'):format(m.node) or '')
  return ('Measured on %s: %s, %d cores; %s; server %s over TCP loopback, on the same cores; %s%s. '
    .. 'Load average before %s, after %s. The clients of a table ran in turn, and a ratio is that '
    .. 'of runs side by side.\n'):format(m.date, m.processor, m.cores, m.system, m.server,
      m.compiler, peers, m.load_before, m.load_after)
end

---A server's name and version, as its INFO has them. All say, too, which Redis they are like.
---@param info string
---@return string
function page.server(info)
  for _, name in ipairs({ 'Valkey', 'Redict', 'Redis' }) do
    local version = info:match('%f[%w]' .. name:lower() .. '_version:([^\r\n]+)')
    if version then
      return name .. ' ' .. version
    end
  end
  return '?'
end

---The whole section.
---@param all table what was measured
---@return string
function page.write(all)
  local parts = { machine_of(all), '\n', targets_of(all) }
  for _, row in ipairs(all.rows) do
    parts[#parts + 1] = '\n' .. table_of(row, all)
  end
  return table.concat(parts)
end

---The page with this section in place of its old one.
---@param text string
---@param section string
---@return string
function page.replace(text, section)
  local _, from = text:find(BEGIN, 1, true)
  local to = text:find(END, 1, true)
  assert(from and to, 'the page has no place for what was measured')
  return text:sub(1, from) .. '\n' .. section .. '\n' .. text:sub(to)
end

return page
