-- SPDX-License-Identifier: Apache-2.0
-- The other side of the scenarios: a real Redisson, in the process that tools/interop has prepared
-- (tools/lib/interop/RedissonDriver.java).
local fcntl = require('posix.fcntl')
local signal = require('posix.signal')
local time = require('posix.time')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local stringx = require('pl.stringx')

local Java = {}
Java.__index = Java

local AWAIT_MS = 20000

-- One process for all scenarios: it takes a second to start.
local shared

-- A driver that has ended is noticed when it is asked, and ends no specs.
local function start(command)
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)
  local to_read, to_write = unistd.pipe()
  local from_read, from_write = unistd.pipe()
  for _, fd in ipairs({ to_write, from_read }) do
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  end
  local pid = assert(unistd.fork())
  if pid == 0 then
    unistd.dup2(to_read, 0)
    unistd.dup2(from_write, 1)
    unistd.execp('/bin/sh', { [0] = 'sh', '-c', 'exec ' .. command })
    unistd._exit(127)
  end
  unistd.close(to_read)
  unistd.close(from_write)
  return { pid = pid, calls = to_write, answers = from_read, rest = '' }
end

-- Unlike latchkey's, Redisson's scripts write after they have told.
local function collect(world)
  for _, event in ipairs(world.observer:take()) do
    if event.verb then
      table.insert(world.outbox, event)
    end
  end
end

local function read_line(process)
  while not process.rest:find('\n', 1, true) do
    local part = unistd.read(process.answers, 4096)
    if not part or part == '' then
      error('the driver of Redisson has ended, ' .. tostring(select(2, wait.wait(process.pid))), 0)
    end
    process.rest = process.rest .. part
  end
  local line, rest = process.rest:match('^([^\n]*)\n(.*)$')
  process.rest = rest
  return line
end

---@param command string that starts the driver
---@param world table a live server, which the driver knows, too
function Java.new(command, world)
  world.collect = collect
  shared = shared or setmetatable({ process = start(command) }, Java)
  return shared
end

function Java:ask(...)
  local words = { ... }
  for i, word in ipairs(words) do
    words[i] = tostring(word)
  end
  unistd.write(self.process.calls, table.concat(words, '\t') .. '\n')
  local line = read_line(self.process)
  local outcome, text = line:match('^([=!]) (.*)$')
  if outcome ~= '=' then
    error(text or line, 0)
  end
  if text ~= 'nil' then
    return tonumber(text) and #text <= 16 and tonumber(text) or stringx.strip(text)
  end
end

function Java:call(thread, kind, method, name, ...)
  return self:ask(thread, kind, method, name, ...)
end

function Java:begin(thread, ...)
  self:ask('begin', thread, ...)
end

function Java:await(thread)
  return self:ask('await', thread, AWAIT_MS)
end

---What its threads do comes to be seen only after a while.
function Java.see(_, is_seen)
  for _ = 1, AWAIT_MS / 10 do
    if is_seen() then
      return
    end
    time.nanosleep({ tv_sec = 0, tv_nsec = 1e7 })
  end
  error('nothing to be seen of it in time', 2)
end

return Java
