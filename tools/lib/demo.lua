-- SPDX-License-Identifier: Apache-2.0
-- The work that tools/demo protects, and its report.
--   demo.lua now                                          milliseconds on the machine's one clock
--   demo.lua add DIR WORKER ASKED LEASE_MS HALF           one add, run while the lock is held
--   demo.lua report DIR WORKERS LEASE_MS LINES            table, time line, checks
-- An add reads the number, writes number + 1 to a temporary file and renames that; then comes its
-- line in the journal. The add that finds HALF stops before the rename and asks to have its
-- holder killed. If it outlived its holder, it would go on soon after the lease has ended and
-- rename a stale number over newer ones.
local ffi = require('ffi')
ffi.cdef [[
  typedef struct { long seconds, nanoseconds; } demo_time;
  int clock_gettime(int clock, demo_time *out);
  int poll(void *fds, unsigned long count, int timeout_ms);
  int getppid(void);
]]

local MONOTONIC = ffi.os == 'OSX' and 6 or 1
local WORK_MS = 15
local COLUMNS = 72

local function now_ms()
  local time = ffi.new('demo_time')
  ffi.C.clock_gettime(MONOTONIC, time)
  return tonumber(time.seconds) * 1000 + tonumber(time.nanoseconds) / 1e6
end

local function sleep_ms(ms)
  ffi.C.poll(nil, 0, ms)
end

local function read(path)
  local file = io.open(path)
  if not file then
    return nil
  end
  local text = file:read('*a')
  file:close()
  return text
end

local function write(path, mode, text)
  local file = assert(io.open(path, mode))
  assert(file:write(text))
  assert(file:close())
end

local function add(dir, worker, asked, lease_ms, half)
  local from = now_ms()
  local number = tonumber(read(dir .. '/number'))
  sleep_ms(WORK_MS)
  local temporary = dir .. '/number.' .. worker
  write(temporary, 'w', ('%d\n'):format(number + 1))
  if number == tonumber(half) and not read(dir .. '/victim') then
    write(dir .. '/victim', 'w', ('%d %d %.3f\n'):format(ffi.C.getppid(), worker, from))
    sleep_ms(lease_ms + 500)
  end
  assert(os.rename(temporary, dir .. '/number'))
  write(dir .. '/journal', 'a',
    ('%d %d %s %.3f %.3f\n'):format(number + 1, worker, asked, from, now_ms()))
end

local function read_journal(dir)
  local holds = {}
  for line in (read(dir .. '/journal') or ''):gmatch('[^\n]+') do
    local number, worker, asked, from, to = line:match('^(%S+) (%S+) (%S+) (%S+) (%S+)$')
    holds[#holds + 1] = { number = tonumber(number), worker = tonumber(worker),
      asked = tonumber(asked), from = tonumber(from), to = tonumber(to) }
  end
  table.sort(holds, function(a, b) return a.from < b.from end)
  return holds
end

-- The hold that was killed, ending with the kill, and when the next one began.
local function read_victim(dir, holds)
  local worker, from = (read(dir .. '/victim') or ''):match('^%d+ (%d+) (%S+)')
  local killed = tonumber(read(dir .. '/killed') or '')
  if not worker or not killed then
    return nil
  end
  local victim = { worker = tonumber(worker), from = tonumber(from), to = killed, killed = true }
  for _, hold in ipairs(holds) do
    if hold.from > victim.from then
      victim.next_from = hold.from
      return victim
    end
  end
  return victim
end

local function print_table(holds, workers, victim)
  print('worker   adds   held, ms   mean wait, ms   longest wait, ms')
  for worker = 1, workers do
    local adds, held, waited, longest = 0, 0, 0, 0
    for _, hold in ipairs(holds) do
      if hold.worker == worker then
        adds, held = adds + 1, held + hold.to - hold.from
        waited = waited + hold.from - hold.asked
        longest = math.max(longest, hold.from - hold.asked)
      end
    end
    local note = victim and victim.worker == worker and '   one holder killed' or ''
    print(('%6d %6d %10.0f %15.0f %18.0f%s'):format(worker, adds, held, waited / math.max(adds, 1),
      longest, note))
  end
end

local function print_time_line(holds, workers, victim)
  local first, last = holds[1].from, holds[#holds].to
  local width = (last - first) / COLUMNS
  local function column(ms)
    return math.max(1, math.min(COLUMNS, math.floor((ms - first) / width) + 1))
  end
  print(('\nwho held the lock, %.1f s from left to right (# held, . waited, X killed)'):format(
    (last - first) / 1000))
  for worker = 1, workers do
    local row = {}
    for i = 1, COLUMNS do
      row[i] = ' '
    end
    local function paint(from, to, mark)
      for i = column(from), column(to) do
        row[i] = (row[i] == '#' and mark == '.') and '#' or mark
      end
    end
    for _, hold in ipairs(holds) do
      if hold.worker == worker then
        paint(hold.asked, hold.from, '.')
        paint(hold.from, hold.to, '#')
      end
    end
    if victim and victim.worker == worker then
      paint(victim.from, victim.to, 'X')
    end
    print(('%6d |%s|'):format(worker, table.concat(row)))
  end
  print('')
end

local function overlaps(holds, victim)
  local all = { victim }
  for _, hold in ipairs(holds) do
    all[#all + 1] = hold
  end
  table.sort(all, function(a, b) return a.from < b.from end)
  local count = 0
  for i = 2, #all do
    count = count + (all[i].from < all[i - 1].to and 1 or 0)
  end
  return count
end

local failures = 0
local function check(good, ...)
  failures = failures + (good and 0 or 1)
  print((good and 'ok      ' or 'FAILED  ') .. string.format(...))
end

local function report(dir, workers, lease_ms, lines)
  local holds = read_journal(dir)
  local number = tonumber(read(dir .. '/number'))
  local victim = read_victim(dir, holds)
  if #holds > 0 then
    print_table(holds, workers, victim)
    print_time_line(holds, workers, victim)
  end
  check(number == #holds, 'the number is %d, the journal has %d lines', number, #holds)
  check(#holds == lines, '%d adds were made, %d were due', #holds, lines)
  check(overlaps(holds, victim) == 0, '%d holds overlapped', overlaps(holds, victim))
  check(victim ~= nil, 'a holder was killed half-way')
  if victim and victim.next_from then
    local waited = victim.next_from - victim.to
    check(waited <= lease_ms + 500, 'nobody waited longer than the lease for it: %.0f of %d ms',
      waited, lease_ms)
  end
  return failures == 0 and 0 or 1
end

local actions = {
  now = function()
    print(('%.3f'):format(now_ms()))
    return 0
  end,
  add = function(dir, worker, asked, lease_ms, half)
    add(dir, worker, asked, tonumber(lease_ms), half)
    return 0
  end,
  report = function(dir, workers, lease_ms, lines)
    return report(dir, tonumber(workers), tonumber(lease_ms), tonumber(lines))
  end,
}

os.exit(actions[arg[1]](unpack(arg, 2)))
