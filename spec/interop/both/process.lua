-- SPDX-License-Identifier: Apache-2.0
-- A program that is told on its standard input what to call, a line a call, its words between tabs,
-- and answers each with a line: "= VALUE", or "! WHY". tools/lib/interop has two of them: one for
-- Redisson, one for latchkey.
local fcntl = require('posix.fcntl')
local poll = require('posix.poll')
local signal = require('posix.signal')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local stringx = require('pl.stringx')
local utils = require('pl.utils')

local Process = {}
Process.__index = Process

-- Longer than any call of a scenario takes.
local ANSWER_MS = 120000
-- How much of what a program wrote before it died is worth showing.
local LAST_BYTES = 4000

-- A program that has ended is noticed when it is asked, and ends no specs.
---@param command string
---@return table process
function Process.start(command)
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)
  local to_read, to_write = unistd.pipe()
  local from_read, from_write = unistd.pipe()
  for _, fd in ipairs({ to_write, from_read }) do
    fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  end
  local log = os.tmpname()
  local pid = assert(unistd.fork())
  if pid == 0 then
    unistd.dup2(to_read, 0)
    unistd.dup2(from_write, 1)
    unistd.dup2(fcntl.open(log, fcntl.O_WRONLY + fcntl.O_APPEND), 2)
    unistd.execp('/bin/sh', { [0] = 'sh', '-c', 'exec ' .. command })
    unistd._exit(127)
  end
  unistd.close(to_read)
  unistd.close(from_write)
  return setmetatable({ pid = pid, calls = to_write, answers = from_read, rest = '', log = log,
    command = command }, Process)
end

local function last_words(log)
  local text = stringx.strip(utils.readfile(log) or '')
  if text == '' then
    return 'it wrote nothing to its standard error'
  end
  return 'the end of its standard error:\n' .. text:sub(-LAST_BYTES)
end

function Process:died()
  local _, how, code = wait.wait(self.pid)
  self.pid = nil
  error(('%s has ended (%s %s); %s'):format(self.command:match('%S+'), tostring(how),
    tostring(code), last_words(self.log)), 0)
end

---@param within_ms? integer
---@return string|nil line nil: none came in time
function Process:line(within_ms)
  while not self.rest:find('\n', 1, true) do
    if poll.rpoll(self.answers, within_ms or ANSWER_MS) == 0 then
      return nil
    end
    local part = unistd.read(self.answers, 4096)
    if not part or part == '' then
      self:died()
    end
    self.rest = self.rest .. part
  end
  local line, rest = self.rest:match('^([^\n]*)\n(.*)$')
  self.rest = rest
  return line
end

---Says what to call. The answer comes by `answer`.
function Process:say(...)
  local words = { ... }
  for i, word in ipairs(words) do
    words[i] = tostring(word)
  end
  unistd.write(self.calls, table.concat(words, '\t') .. '\n')
end

---What the oldest call came to that has not been answered yet; a failure is raised.
---@param within_ms? integer
function Process:answer(within_ms)
  local line = self:line(within_ms) or error('no answer in time', 0)
  local outcome, text = line:match('^([=!]) (.*)$')
  if outcome ~= '=' then
    error(text or line, 0)
  end
  if text ~= 'nil' then
    return tonumber(text) and #text <= 16 and tonumber(text) or stringx.strip(text)
  end
end

function Process:ask(...)
  self:say(...)
  return self:answer()
end

local function put_away(process)
  unistd.close(process.calls)
  unistd.close(process.answers)
  os.remove(process.log)
end

---As a crash does: nothing is given back.
function Process:kill()
  signal.kill(self.pid, signal.SIGKILL)
  wait.wait(self.pid)
  put_away(self)
end

---Lets it end by itself.
function Process:stop()
  unistd.close(self.calls)
  wait.wait(self.pid)
  unistd.close(self.answers)
  os.remove(self.log)
end

return Process
