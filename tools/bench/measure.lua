-- SPDX-License-Identifier: Apache-2.0
-- Runs the rows, contender after contender, again and again, and writes what came of it. Started by
-- tools/bench/run, which has everything ready and says so in the environment. The server is the one
-- behind LATCHKEY_SPEC_URL; peers reach it by its port.
local cjson = require('cjson')
local file = require('pl.file')
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local chart = require('bench.chart')
local page = require('bench.page')
local rows = require('bench.rows')
local stats = require('bench.stats')

local function env(name)
  return os.getenv('LK_BENCH_' .. name) or ''
end

local full = env('FULL') ~= ''
local setup = {
  socket = os.getenv('LATCHKEY_SPEC_URL'):match('^unix://(.*)'), port = env('PORT'),
  build = env('BUILD'), python = env('PYTHON'), node = env('NODE'),
  seconds = full and 2 or 1, repetitions = full and 15 or 3, sha1 = {},
}

local function fail(why, command, said)
  io.stderr:write(('tools/bench: %s: %s\n%s'):format(why, command, said))
  os.exit(1)
end

local function run(command)
  local ok, _, out, err = utils.executeex(command)
  if not ok then
    fail('this failed', command, out .. err)
  end
  return out
end

local function redis(words)
  return (run(('%s -s %s %s'):format(env('CLI'), setup.socket, words)))
end

-- ------------------------------------------------------------------------------------- machine

local function first_line(command)
  local ok, _, out = utils.executeex(command)
  return ok and (out:match('[^\n]*')) or ''
end

local function machine()
  local cpu = (file.read('/proc/cpuinfo') or ''):match('model name%s*:%s*([^\n]+)') or '?'
  return {
    processor = cpu, cores = tonumber(first_line('getconf _NPROCESSORS_ONLN')),
    system = first_line('uname -srm'), compiler = first_line('cc --version'),
    server = page.server(redis('INFO server')),
    load_before = (file.read('/proc/loadavg') or ''):match('%S+'),
    date = os.date('!%Y-%m-%d'), python = setup.python ~= '' and first_line(setup.python
      .. ' -c "import redis, sys; print(sys.version.split()[0], redis.__version__)"') or nil,
    node = setup.node ~= '' and first_line('node --version') or nil,
  }
end

-- ------------------------------------------------------------------------------------ counters

-- How often clients sent one of these commands, and the processor time of the server.
local function counters(sent)
  local all, info = { commands = 0, cpu_us = 0 }, redis('INFO commandstats') .. redis('INFO cpu')
  for _, name in ipairs(sent) do
    all.commands = all.commands + (tonumber(info:match('cmdstat_' .. name .. ':calls=(%d+)')) or 0)
  end
  for _, kind in ipairs({ 'sys', 'user' }) do
    local seconds = tonumber(info:match('used_cpu_' .. kind .. '_main_thread:([%d.]+)')) or 0
    all.cpu_us = all.cpu_us + seconds * 1e6
  end
  return all
end

-- What the peers do not say themselves: rates, and what each pair or hand-off cost.
local function complete(result, before, after)
  local count = stats.counted(result)
  if not count then
    return
  end
  local kind = result.handoffs and 'handoff' or 'pair'
  result.pairs_per_s = result.pairs and result.pairs / result.seconds
  result['commands_per_' .. kind] = (after.commands - before.commands) / count
  result['client_cpu_us_per_' .. kind] = result.client_cpu_us / count
  result['server_cpu_us_per_' .. kind] = (after.cpu_us - before.cpu_us) / count
end

-- The program counts per pair; where locks are handed over, so are the figures.
local function complete_ours(result)
  if not result.handoffs then
    return
  end
  local pairs_each = result.pairs_per_s * result.seconds / result.handoffs
  for _, side in ipairs({ 'client', 'server' }) do
    local name = side .. '_cpu_us_per_'
    result[name .. 'handoff'] = result[name .. 'pair'] * pairs_each
  end
end

-- In how many writes a client is opened: the hand-shake, and all scripts without a wait between, in
-- one or two. What the socket did not take at once is a part of a write.
local function open_writes()
  local tests = setup.build .. '/tests/latchkey_pairs'
  local log = setup.build .. '/bench/strace'
  if not path.exists(tests) or first_line('command -v strace') == '' then
    return nil
  end
  run(('strace -f -qq -e trace=sendto,sendmsg -o %s %s redis://127.0.0.1:%s 0'):format(log, tests,
    setup.port))
  local whole = 0
  for asked, took in file.read(log):gmatch('sendto%([^\n]*, (%d+), MSG[^\n]* = (%d+)\n') do
    whole = whole + (asked == took and 1 or 0)
  end
  return whole
end

local function measure(row, contender)
  redis('FLUSHALL')
  local sent = contender.sent or {}
  local before = counters(sent)
  local command = contender.command(setmetatable({ seconds = row.seconds, calls = row.calls },
    { __index = setup }))
  local said = run(command)
  local after = counters(sent)
  local result = cjson.decode(said)
  if stats.counted(result) == 0 then
    fail('this made no pair, or no hand-off', command, said)
  end
  if contender.ours then
    complete_ours(result)
  else
    complete(result, before, after)
  end
  if row.id == 'idle' then
    result.open_writes = open_writes()
  end
  return result
end

-- ---------------------------------------------------------------------------------------- rows

local function wanted(row)
  local only = env('ROWS')
  return only == '' or (',' .. only .. ','):find(',' .. row.id .. ',', 1, true) ~= nil
end

local function load_scripts()
  for _, name in ipairs({ 'lock/acquire', 'lock/release', 'plain/acquire', 'plain/release' }) do
    local where = name:find('^plain') and 'tools/bench/' or 'scripts/'
    setup.sha1[name] = stringx.strip(redis(('-x SCRIPT LOAD < %s%s.lua'):format(where, name)))
  end
end

local function measure_row(row)
  local found = { id = row.id, title = row.title, figures = row.figures, chart = row.chart,
    targets = row.targets, seconds = row.seconds, calls = row.calls, contenders = {} }
  local repetitions = row.once and 1 or setup.repetitions
  for _, contender in ipairs(row.contenders) do
    if not contender.needs or setup[contender.needs] ~= '' then
      found.contenders[#found.contenders + 1] = { name = contender.name, ours = contender.ours,
        runs = {}, work = contender }
    else
      io.stderr:write(('%s: left out, it is not installed\n'):format(contender.name))
    end
  end
  for repetition = 1, repetitions do
    io.stderr:write(('%s, %d of %d\n'):format(row.title, repetition, repetitions))
    load_scripts()
    for _, contender in ipairs(found.contenders) do
      contender.runs[repetition] = measure(row, contender.work)
    end
  end
  for _, contender in ipairs(found.contenders) do
    contender.work = nil
  end
  return found
end

local all = { schema = 'latchkey/comparison/1', machine = machine(), rows = {},
  seconds = setup.seconds, repetitions = setup.repetitions }
for _, row in ipairs(rows) do
  if wanted(row) then
    all.rows[#all.rows + 1] = measure_row(row)
  end
end
all.machine.load_after = (file.read('/proc/loadavg') or ''):match('%S+')

local out = env('OUT')
assert(file.write(out .. '/figures.json', cjson.encode(all) .. '\n'))
assert(file.write(out .. '/chart.svg', chart.draw(all)))
local text = page.write(all)
if env('PAGE') ~= '' then
  local before = assert(file.read(env('PAGE')))
  assert(file.write(env('PAGE'), page.replace(before, text)))
else
  assert(file.write(out .. '/figures.md', text))
end
io.stdout:write(text)
