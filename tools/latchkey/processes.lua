-- SPDX-License-Identifier: Apache-2.0
-- Runs a function for each of many items, in processes of their own, some at a time.
local cjson = require('cjson')
local fcntl = require('posix.fcntl')
local poll = require('posix.poll')
local signal = require('posix.signal')
local time = require('posix.time')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local has_ffi, ffi = pcall(require, 'ffi')
if has_ffi then
  ffi.cdef('int prctl(int option, ...);')
end

local processes = {}

-- Of prctl(): which signal one gets when its parent has ended.
local PARENT_DEATH_SIGNAL = 1
-- Of fcntl(): SIGIO to the owner when there is something to read, the end among it. As Linux has
-- it, and luaposix does not.
local TELL, SIGIO = 0x2000, 29

---@return number seconds of a clock that nobody sets
function processes.now_s()
  local now = time.clock_gettime(time.CLOCK_MONOTONIC)
  return now.tv_sec + now.tv_nsec / 1e9
end

-- What ends workers with the one that waits for them, however that ends: else they would compute on
-- for nobody. Without ffi, a pipe to which only that one holds on, and whose end comes as a signal.
local function new_tie()
  local tie = { parent = unistd.getpid() }
  if not has_ffi then
    tie.ends, tie.lives = unistd.pipe()
  end
  return tie
end

local function is_untied(tie)
  if has_ffi then
    local long = ffi.typeof('unsigned long')
    ffi.C.prctl(PARENT_DEATH_SIGNAL, long(signal.SIGKILL), long(0), long(0), long(0))
    return unistd.getppid() ~= tie.parent
  end
  unistd.close(tie.lives)
  signal.signal(SIGIO, signal.SIG_DFL)
  -- Opened anew: what workers have from their parent has one owner for all of them.
  local ends = assert(fcntl.open('/proc/self/fd/' .. tie.ends, fcntl.O_RDONLY))
  fcntl.fcntl(ends, fcntl.F_SETOWN, unistd.getpid())
  fcntl.fcntl(ends, fcntl.F_SETFL, TELL)
  return poll.rpoll(ends, 0) == 1
end

local function drop(tie)
  if not has_ffi then
    unistd.close(tie.ends)
    unistd.close(tie.lives)
  end
end

-- What the function prints is nobody's business; what it gives back goes through the pipe.
local function become_child(write_end, run, item)
  local nowhere = fcntl.open('/dev/null', fcntl.O_WRONLY)
  unistd.dup2(nowhere, 1)
  unistd.dup2(nowhere, 2)
  local ok, result = pcall(run, item)
  local text, at = (ok and '=' or '!') .. tostring(result or ''), 1
  while at <= #text do
    at = at + (unistd.write(write_end, text:sub(at)) or #text)
  end
  unistd._exit(0)
end

local function start(run, item, tie)
  local read_end, write_end = unistd.pipe()
  local pid = assert(unistd.fork())
  if pid == 0 then
    if is_untied(tie) then
      unistd._exit(0)
    end
    unistd.close(read_end)
    become_child(write_end, run, item)
  end
  unistd.close(write_end)
  return { pid = pid, fd = read_end, item = item, started_s = processes.now_s(), parts = {} }
end

-- Has it said all? Its output ends when it does.
local function read_some(child)
  local bytes = unistd.read(child.fd, 65536)
  if bytes and bytes ~= '' then
    child.parts[#child.parts + 1] = bytes
    return false
  end
  return true
end

local function finish(child, done, timed_out)
  if timed_out then
    signal.kill(child.pid, signal.SIGKILL)
  end
  unistd.close(child.fd)
  wait.wait(child.pid)
  local text = table.concat(child.parts)
  local mark, result = text:sub(1, 1), text:sub(2)
  if timed_out then
    done(child.item, 'it did not end', nil, true)
  elseif mark == '=' then
    done(child.item, result)
  else
    done(child.item, nil, mark == '!' and result or 'the process died')
  end
end

-- Waits for any child to say something or to be late; the ones that are over leave the list.
local function attend(children, limit_s, done)
  local fds = {}
  for _, child in ipairs(children) do
    fds[child.fd] = { events = { IN = true } }
  end
  poll.poll(fds, 200)
  for i = #children, 1, -1 do
    local child = children[i]
    local ready = fds[child.fd].revents
    local said_all = ready and (ready.IN or ready.HUP) and read_some(child)
    local late = processes.now_s() - child.started_s > limit_s
    if said_all or late then
      table.remove(children, i)
      finish(child, done, not said_all)
    end
  end
end

---@param items any[]
---@param options { workers: integer, limit_s: number }
---@param run fun(item: any): string|nil in a process of its own
---@param done fun(item: any, result: string|nil, defect: string|nil, late: true|nil) here, in any
---  order; what gave nil has the result "", what did not end in time says so and is late, and what
---  failed has a defect
function processes.each(items, options, run, done)
  local children, at, tie = {}, 1, new_tie()
  io.stdout:flush()
  while at <= #items or #children > 0 do
    while at <= #items and #children < options.workers do
      children[#children + 1] = start(run, items[at], tie)
      at = at + 1
    end
    attend(children, options.limit_s, done)
  end
  drop(tie)
end

---Results of the function for many items, in their order. What fails there is an error here.
---@param items any[] the heavy ones first
---@param workers integer processes at a time; with one, this one does it all
---@param run fun(item: any): table a result that JSON can carry
---@return table[] results
function processes.map(items, workers, run)
  local places, results, alone = {}, {}, workers <= 1 or #items <= 1
  for place, item in ipairs(items) do
    places[place] = place
    results[place] = alone and run(item) or nil
  end
  if alone then
    return results
  end
  processes.each(places, { workers = workers, limit_s = math.huge }, function(place)
    return cjson.encode(run(items[place]))
  end, function(place, text, defect)
    if defect then
      error(defect, 0)
    end
    results[place] = cjson.decode(text)
  end)
  return results
end

return processes
