-- SPDX-License-Identifier: Apache-2.0
-- A tree of its own for a tool of the workshop: copies of what is tested, and stand-ins for what
-- it calls.
local dir = require('pl.dir')
local path = require('pl.path')
local signal = require('posix.signal')
local stdlib = require('posix.stdlib')
local time = require('posix.time')
local unistd = require('posix.unistd')
local utils = require('pl.utils')
local wait = require('posix.sys.wait')

local helper = require('helper')

local Workshop = {}
Workshop.__index = Workshop

local workshop = {}

-- What ends at once on an idle machine.
local DEADLINE_S = 60

local function now_s()
  local now = time.clock_gettime(time.CLOCK_MONOTONIC)
  return now.tv_sec + now.tv_nsec / 1e9
end

---@param below? string the tree is this folder of one that is new
function workshop.new(below)
  local made = assert(stdlib.mkdtemp('/tmp/latchkey-workshop.XXXXXX'))
  local self = setmetatable({ made = made, root = below and path.join(made, below) or made,
    started = {} }, Workshop)
  dir.makepath(self.root)
  return self
end

---What was started is ended with its group, and nothing is left.
function Workshop:remove()
  for pid, state in pairs(self.started) do
    signal.kill(-pid, signal.SIGKILL)
    if state == 'runs' then
      wait.wait(pid)
    end
  end
  dir.rmtree(self.made)
end

---Copies of these files of the project, at the same places.
function Workshop:copy(...)
  for _, name in ipairs({ ... }) do
    dir.makepath(path.dirname(path.join(self.root, name)))
    local from, to = path.join(helper.root, name), path.join(self.root, name)
    assert(utils.execute(('cp -r %s %s'):format(utils.quote_arg(from), utils.quote_arg(to))))
  end
end

function Workshop:write(name, text)
  local file = path.join(self.root, name)
  dir.makepath(path.dirname(file))
  assert(utils.writefile(file, text))
  return file
end

---A program of this text.
function Workshop:program(name, text)
  local file = self:write(name, text)
  assert(utils.execute('chmod +x ' .. utils.quote_arg(file)))
  return file
end

---@return string? nil: there is none
function Workshop:read(name)
  return (utils.readfile(path.join(self.root, name)))
end

---A shell's words, run in the tree to their end, at most a minute.
---@return integer exit code
---@return string what it said, on both
function Workshop:run(words)
  local command = ('{ cd %s && timeout -k 1 %d sh -c %s 2>&1; }'):format(
    utils.quote_arg(self.root), DEADLINE_S, utils.quote_arg(words))
  local _, code, said = utils.executeex(command)
  return code, said
end

---The same in the background, as a terminal's foreground job: its number is that of its group.
---@return integer pid
function Workshop:start(words)
  local pid = assert(unistd.fork())
  if pid == 0 then
    unistd.setpid('s')
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    unistd.exec('/bin/sh', { '-c', ('cd %s && exec >said 2>&1 && %s'):format(
      utils.quote_arg(self.root), words) })
    os.exit(127)
  end
  self.started[pid] = 'runs'
  return pid
end

---The end of one that was started; nil: it has none within the time.
---@return string? how `exited` or `killed`
---@return integer? code or signal
function Workshop:ended(pid, within_s)
  local limit = now_s() + (within_s or DEADLINE_S)
  repeat
    local gone, how, code = wait.wait(pid, wait.WNOHANG)
    if gone and gone ~= 0 then
      self.started[pid] = 'ended'
      return how, code
    end
    time.nanosleep({ tv_sec = 0, tv_nsec = 1e7 })
  until now_s() > limit
end

---The first of these needs that is not met, for pending(): a spec that is not even defined where
---its tool is missing would be missed by nobody.
---@param ... string a program, or several of which one will do: `redis-server|valkey-server`
---@return string?
function workshop.lacks(...)
  for _, need in ipairs({ ... }) do
    local found = false
    for program in need:gmatch('[^|]+') do
      found = found or utils.execute(('command -v %s >/dev/null'):format(program))
    end
    if not found then
      return need:gsub('|', ' or ') .. ' is not installed'
    end
  end
end

---Waits until a file is there.
function Workshop:await(name)
  local limit = now_s() + DEADLINE_S
  while not path.exists(path.join(self.root, name)) do
    assert(now_s() < limit, name .. ' never came to be')
    time.nanosleep({ tv_sec = 0, tv_nsec = 1e7 })
  end
end

---Has the process ended within this time? One that nobody has waited for yet has.
function Workshop:has_gone(pid, within_s) -- luacheck: ignore 212/self
  local limit = now_s() + within_s
  repeat
    local text = utils.readfile(('/proc/%d/stat'):format(pid))
    if not text or text:match('%) (%a)') == 'Z' then
      return true
    end
    time.nanosleep({ tv_sec = 0, tv_nsec = 1e7 })
  until now_s() > limit
  return false
end

return workshop
