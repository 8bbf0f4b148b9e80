-- SPDX-License-Identifier: Apache-2.0
-- Ways to end an exec times jobs that it runs. A recorder notes every piece of work that a job
-- does, and when the next holder starts. Hundreds of processes mostly wait, so many cases run at a
-- time.
local fcntl = require('posix.fcntl')
local signal = require('posix.signal')
local stdlib = require('posix.stdlib')
local time = require('posix.time')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

local job_cases = {}

-- The front ends the job of a keeper that is silent 750 ms before this.
local LEASE_MS = 6000
local DEADLINE_MS = 90000

-- Works until it is ended: its number and the time, into descriptor 9.
job_cases.WORKER = [[
  local ffi = require('ffi')
  ffi.cdef('typedef struct { long s, n; } ts; int clock_gettime(int, ts *); int getpid(void);'
    .. 'int usleep(unsigned); long write(int, const char *, size_t);')
  local now = ffi.new('ts')
  while true do
    ffi.C.clock_gettime(1, now)
    local line = ('%d %d\n'):format(ffi.C.getpid(), tonumber(now.s) * 1000 + tonumber(now.n) / 1e6)
    ffi.C.write(9, line, #line)
    ffi.C.usleep(30000)
  end]]

-- $1: the recorder's file, $2: what works, $3: latchkey, $4: its URL, $5: the lock's name. A shell
-- that waits for a child lets the child decide what SIGINT means: `outlasts` are the signals that
-- do not end CMD when they are sent to exec alone.
job_cases.JOBS = {
  { name = 'a plain command', script = 'exec luajit -e "$2"' },
  { name = 'sh -c with children', script = 'luajit -e "$2"; :', outlasts = { INT = true } },
  { name = 'a child in the background', script = 'luajit -e "$2" & wait' },
  { name = 'what CMD has left', script = 'luajit -e "$2" & exit 0' },
  { name = 'a pipeline', script = 'luajit -e "$2" | luajit -e "$2"', workers = 2,
    outlasts = { INT = true } },
  { name = 'setsid twice', script = 'setsid -f setsid -f luajit -e "$2"; luajit -e "$2"; :',
    workers = 2, outlasts = { INT = true } },
  { name = 'what ignores SIGTERM', script = 'trap "" TERM; luajit -e "$2"; :',
    outlasts = { INT = true, TERM = true } },
  { name = 'what changes its user', root = true, outlasts = { INT = true },
    script = 'setpriv --reuid 65534 --clear-groups luajit -e "$2"; :' },
  { name = 'what is stopped', script = 'exec luajit -e "$2"', stops = true },
  { name = 'a nested exec', script = '"$3" exec --url "$4" "$5" -- luajit -e "$2"; exit $?',
    outlasts = { INT = true } },
}

-- ------------------------------------------------------------------------------ many at a time --

local function now_ms()
  local now = time.clock_gettime(time.CLOCK_MONOTONIC)
  return now.tv_sec * 1000 + math.floor(now.tv_nsec / 1e6)
end

-- Inside a case: lets the others go on until `condition` gives something.
local function await(what, condition)
  local deadline = now_ms() + DEADLINE_MS
  while true do
    local result = condition()
    if result then
      return result
    end
    assert(now_ms() < deadline, 'it never came to this: ' .. what)
    coroutine.yield()
  end
end

local function pause(ms)
  local until_ms = now_ms() + ms
  await('time passes', function()
    return now_ms() >= until_ms
  end)
end

---Runs functions as coroutines, `width` at a time; for each, true or false and its error.
function job_cases.run_all(functions, width)
  local results, running, started = {}, {}, 0
  repeat
    while started < #functions and #running < width do
      started = started + 1
      table.insert(running, { index = started, thread = coroutine.create(functions[started]) })
    end
    for i = #running, 1, -1 do
      local good, err = coroutine.resume(running[i].thread)
      if coroutine.status(running[i].thread) == 'dead' then
        results[running[i].index] = { good = good, err = err }
        table.remove(running, i)
      end
    end
    time.nanosleep({ tv_sec = 0, tv_nsec = 1e7 })
  until #running == 0 and started == #functions
  return results
end

-- ----------------------------------------------------------------------------------- one case --

local Case = {}
Case.__index = Case

local function stamps(file)
  local last_ms, pids, count = nil, {}, 0
  for pid, at in (utils.readfile(file) or ''):gmatch('(%d+) (%d+)\n') do
    last_ms = math.max(last_ms or 0, tonumber(at))
    count = count + (pids[pid] and 0 or 1)
    pids[pid] = true
  end
  return last_ms, pids, count
end

function Case:command()
  return { 'sh', '-c', 'exec 9>>"$1"; ' .. self.job.script, 'sh', self.work, job_cases.WORKER,
    program.path, self.server.url, self.lock }
end

function Case:words()
  return program.exec(self.server, { '--lease', LEASE_MS .. 'ms', self.lock }, self:command())
end

-- As the leader of a session, on a terminal of its own.
function Case:start_on_terminal()
  self.master = assert(stdlib.openpt(fcntl.O_RDWR + fcntl.O_NOCTTY))
  fcntl.fcntl(self.master, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  assert(stdlib.grantpt(self.master))
  assert(stdlib.unlockpt(self.master))
  self.holder = program.start_any('setsid', { 'sh', '-c', 'exec <"$0" >"$0" 2>&1; exec "$@"',
    stdlib.ptsname(self.master), program.path, unpack(self:words()) })
end

function Case:start()
  if self.way.terminal then
    self:start_on_terminal()
  else
    self.holder = program.start(self:words())
  end
  await('the job works', function()
    local _, _, count = stamps(self.work)
    return count >= (self.job.workers or 1)
  end)
  local words = program.exec(self.server, { '--wait', '80s', self.lock }, { 'sh', '-c',
    'exec 9>>"$0"; exec luajit -e "$1"', self.next_work, job_cases.WORKER })
  self.next = program.start(words)
  pause(300)
  if self.job.stops then
    local _, pids = stamps(self.work)
    signal.kill(tonumber((next(pids))), signal.SIGSTOP)
    await('the job is stopped', function()
      return program.state(self.holder.pid) == 'T'
    end)
  end
end

function Case:signal(name)
  self.holder:kill(signal['SIG' .. name])
  -- As shells do that end a stopped job.
  if self.job.stops and name ~= 'KILL' then
    self.holder:kill(signal.SIGCONT)
  end
  if (self.job.outlasts or {})[name] then
    pause(1000)
    assert(stamps(self.next_work) == nil, 'the job goes on, and another holds the lock')
    self.holder:kill(signal.SIGKILL)
  end
end

-- When the next holder started its work; the old job has ended then, or never will.
function Case:finish()
  await('the next holder works', function()
    return stamps(self.next_work)
  end)
  pause(400)
  local overlap_ms
  self.next_ms = tonumber(utils.readfile(self.next_work):match('^%d+ (%d+)'))
  self.last_ms = stamps(self.work)
  overlap_ms = self.last_ms - self.next_ms
  if self.job.stops and self.way.wakes then
    self.holder:kill(signal.SIGCONT)
  end
  await('the holder ends', function()
    return self.holder:poll()
  end)
  local _, pids = stamps(self.work)
  await('all of the job has ended', function()
    for pid in pairs(pids) do
      if not program.is_gone(pid) then
        return false
      end
    end
    return true
  end)
  self.last_ms = math.max(self.last_ms, (stamps(self.work)))
  self.next:kill(signal.SIGKILL)
  self.err = utils.readfile(self.holder.err_file)
  return overlap_ms
end

-- --------------------------------------------------------------------------------------- ways --

local function by_signal(name)
  return { name = 'SIG' .. name, apply = function(case)
    case:signal(name)
  end }
end

local function to_keeper(name, number)
  return { name = name, code = 80, wakes = true, apply = function(case)
    signal.kill(case.holder:keeper(), number)
  end }
end

-- What cannot be promised: the server gives the lock to another before the holder can hear of it.
-- It hears when it next renews, tells of it, and ends all of the job within 5 s; 3 s are for the
-- machine.
local function behind_its_back(name, apply)
  return { name = name, code = 80, told = 'lost "', late_ms = LEASE_MS / 3 + 5000 + 3000,
    apply = apply }
end

job_cases.WAYS = {
  by_signal('TERM'),
  by_signal('INT'),
  by_signal('HUP'),
  behind_its_back('latchkey break', function(case)
    local words = { 'break', '--url', case.server.url, '--yes', case.lock }
    assert(program.run(words).code == 0)
  end),
  behind_its_back('a deleted key', function(case)
    assert(case.server:command('DEL', case.lock) == '1')
  end),
  { name = 'a stopped server', code = 80, own_server = true, apply = function(case)
    case.server.process:kill(signal.SIGSTOP)
    case.until_ms = now_ms() + LEASE_MS -- after the last renewal that it can have granted
    pause(LEASE_MS + 500)
    case.server.process:kill(signal.SIGCONT)
  end },
  { name = 'SIGKILL of the front', apply = function(case)
    case:signal('KILL')
  end },
  to_keeper('SIGKILL of the keeper', signal.SIGKILL),
  to_keeper('SIGSTOP of the keeper', signal.SIGSTOP),
  { name = 'a closed terminal', terminal = true, apply = function(case)
    unistd.close(case.master)
    case.master = nil
  end },
}

-- ---------------------------------------------------------------------------------- the table --

local function check(case, overlap_ms)
  local way, result = case.way, case.holder.result
  if way.late_ms then
    assert(overlap_ms <= way.late_ms, ('the job worked for %d ms beside the next holder')
      :format(overlap_ms))
    assert(case.err:find(way.told, 1, true), 'nobody was told: ' .. case.err)
  else
    assert(overlap_ms <= 0, ('the job worked for %d ms beside the next holder'):format(overlap_ms))
  end
  if case.until_ms then
    assert(case.last_ms <= case.until_ms, ('the job worked for %d ms after its lease')
      :format(case.last_ms - case.until_ms))
  end
  assert(not way.code or result.code == way.code, ('it ended with code %s, signal %s: %s'):format(
    result.code, result.signal, case.err))
end

local serial = 0

---A function that runs one case; an error where the job works beside the next holder.
function job_cases.case(server, way, job)
  return function()
    serial = serial + 1
    local folder = program.folder()
    local case = setmetatable({ way = way, job = job, lock = 'job' .. serial,
      server = way.own_server and program.server() or server, work = folder .. '/work',
      next_work = folder .. '/next' }, Case)
    case:start()
    way.apply(case)
    check(case, case:finish())
    if way.own_server then
      case.server.process:kill(signal.SIGKILL)
    end
  end
end

return job_cases
