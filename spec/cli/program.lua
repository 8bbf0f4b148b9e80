-- SPDX-License-Identifier: Apache-2.0
-- What the specs of the program stand on: the program as its users start it, servers of their own,
-- and commands that run until they are told to end.
local cjson = require('cjson')
local fcntl = require('posix.fcntl')
local lfs = require('lfs')
local path = require('pl.path')
local signal = require('posix.signal')
local stat = require('posix.sys.stat')
local stdlib = require('posix.stdlib')
local time = require('posix.time')
local unistd = require('posix.unistd')
local utils = require('pl.utils')
local wait = require('posix.sys.wait')

local program = {}

local here = debug.getinfo(1, 'S').source:match('^@(.*)spec/cli/program%.lua$')
program.root = path.abspath(here .. '.')
program.path = path.abspath(os.getenv('LATCHKEY_PROGRAM') or program.root .. '/build/latchkey')
assert(path.exists(program.path), program.path .. ' is not built; LATCHKEY_PROGRAM names another')

---The sanitizer that the program is built with: `address`, `thread`; nil: none.
function program.sanitizer()
  local cache = utils.readfile(path.dirname(program.path) .. '/CMakeCache.txt') or ''
  return cache:match('\nLK_SANITIZE:[^=\n]+=(%l+)')
end

-- How long a condition may take that comes true within milliseconds on an idle machine.
local DEADLINE_S = 60

local folders, processes = {}, {}

function program.now_ms()
  local now = time.clock_gettime(time.CLOCK_REALTIME)
  return now.tv_sec * 1000 + math.floor(now.tv_nsec / 1e6)
end

---Looks until `condition` gives something; an error when it never does.
function program.eventually(what, condition, deadline_s)
  local deadline = program.now_ms() + (deadline_s or DEADLINE_S) * 1000
  repeat
    local result = condition()
    if result then
      return result
    end
    time.nanosleep({ tv_sec = 0, tv_nsec = 5e6 })
  until program.now_ms() > deadline
  error('it never came to this: ' .. what, 2)
end

---A private folder, removed by program.clean().
function program.folder()
  local folder = assert(stdlib.mkdtemp((os.getenv('TMPDIR') or '/tmp') .. '/latchkey-cli.XXXXXX'))
  folders[#folders + 1] = folder
  return folder
end

local Process = {}
Process.__index = Process

local function become(file, arguments, options, out, err)
  for name, value in pairs(options.env or {}) do
    stdlib.setenv(name, value or nil)
  end
  local input = fcntl.open(options.input or '/dev/null', fcntl.O_RDONLY)
  unistd.dup2(input, 0)
  unistd.dup2(out, 1)
  unistd.dup2(options.err or err, 2)
  unistd.execp(file, arguments)
  unistd._exit(125)
end

---Starts a program. `options.env`: variables, false for none; `options.err`: a descriptor for
---standard error, in the place of a file.
function program.start_any(file, arguments, options)
  local folder = program.folder()
  local self = setmetatable({ out_file = folder .. '/out', err_file = folder .. '/err' }, Process)
  local flags, mode = fcntl.O_WRONLY + fcntl.O_CREAT, tonumber('600', 8)
  local out = assert(fcntl.open(self.out_file, flags, mode))
  local err = assert(fcntl.open(self.err_file, flags, mode))
  self.pid = assert(unistd.fork())
  if self.pid == 0 then
    become(file, arguments, options or {}, out, err)
  end
  unistd.close(out)
  unistd.close(err)
  processes[#processes + 1] = self
  return self
end

-- No variable of the machine that runs the specs reaches the program.
local CLEAN = { LATCHKEY_URL = false, LATCHKEY_PASSWORD = false, LATCHKEY_HELD = false,
  LATCHKEY_LOCK = false, LATCHKEY_TOKEN = false, LATCHKEY_HOME = false, LATCHKEY_LIB = false }

---Starts latchkey.
function program.start(arguments, options)
  options = options or {}
  local env = {}
  for name, value in pairs(CLEAN) do
    env[name] = value
  end
  for name, value in pairs(options.env or {}) do
    env[name] = value
  end
  return program.start_any(program.path, arguments, { env = env, input = options.input,
    err = options.err })
end

---Runs latchkey to its end: { code, signal, out, err }.
function program.run(arguments, options)
  return program.start(arguments, options):wait()
end

function Process:kill(number)
  signal.kill(self.pid, number)
end

-- True when it has ended.
function Process:poll()
  if not self.result then
    local pid, how, number = wait.wait(self.pid, wait.WNOHANG)
    if pid == self.pid and how ~= 'running' then
      -- A comparison with the code that was expected says what came in its place.
      self.result = { code = how == 'exited' and number or 'death by signal ' .. number,
        signal = how == 'killed' and number or nil }
    end
  end
  return self.result ~= nil
end

function Process:wait(deadline_s)
  program.eventually('process ' .. self.pid .. ' ends', function()
    return self:poll()
  end, deadline_s)
  self.result.out = assert(utils.readfile(self.out_file))
  self.result.err = assert(utils.readfile(self.err_file))
  return self.result
end

---The children of a process: what each is called by the system.
function program.children(pid)
  local children = {}
  for name in lfs.dir('/proc') do
    local text = name:find('^%d+$') and utils.readfile('/proc/' .. name .. '/stat')
    local called, parent = (text or ''):match('%((.*)%) %a (%d+)')
    if tonumber(parent) == pid then
      children[tonumber(name)] = called
    end
  end
  return children
end

---The process that keeps the lock of an exec.
function Process:keeper()
  return program.eventually('there is a keeper', function()
    for child, name in pairs(program.children(self.pid)) do
      if name == 'latchkey:keeper' then
        return child
      end
    end
  end)
end

---The state of a process as the system shows it ("S", "T", "Z" ...); nil when there is none.
function program.state(pid)
  local text = utils.readfile('/proc/' .. pid .. '/stat')
  return text and text:match('%) (%a)')
end

---Has the process ended? One that is not yet waited for has, as soon as no thread of it is left:
---the first is a zombie sooner, with all that the process has open.
function program.is_gone(pid)
  local state = program.state(pid)
  if state ~= 'Z' then
    return state == nil
  end
  local is_there, next_thread, threads = pcall(lfs.dir, '/proc/' .. pid .. '/task')
  for thread in is_there and next_thread or function() end, threads do
    if thread:match('^%d+$') and thread ~= tostring(pid) then
      threads:close()
      return false
    end
  end
  return true
end

program.decode = cjson.decode

---The JSON document in a file.
function program.json(file)
  local text = assert(utils.readfile(file))
  return cjson.decode(text)
end

local Server = {}
Server.__index = Server

---A redis-server of the spec's own, which keeps nothing. Further arguments are its options.
function program.server(...)
  local folder = program.folder()
  local socket = folder .. '/s'
  local self = setmetatable({ socket = socket, url = 'unix://' .. socket }, Server)
  self.options = { '--port', '0', '--unixsocket', socket, '--dir', folder, '--save', '',
    '--appendonly', 'no', ... }
  self:start()
  return self
end

function Server:start()
  self.process = program.start_any('redis-server', self.options)
  program.eventually('the server answers', function()
    if self.process:poll() then
      error('redis-server ended: ' .. utils.readfile(self.process.out_file), 0)
    end
    local answer = self:command('PING')
    return answer == 'PONG' or answer:find('NOAUTH', 1, true)
      or answer:find("unknown command 'PING'", 1, true)
  end)
end

---Ends the server at once and starts it again, empty.
function Server:restart()
  self.process:kill(signal.SIGKILL)
  self.process:wait()
  self:start()
end

---One command; the reply as redis-cli writes it into a pipe.
function Server:command(...)
  local result = program.start_any('redis-cli', { '-s', self.socket, ... }):wait()
  return (result.out:gsub('\n$', ''))
end

---The remaining lease of a name as a number, -2 when it is free.
function Server:lease_ms(name)
  return tonumber(self:command('PTTL', name))
end

---Waits until `times` renewals of a name were seen; false when it became free first, or none came.
---With a lease of some seconds this says what waiting for the end of a short one does, and a
---machine that stands still for a moment changes nothing.
function Server:is_renewed(name, times)
  local seen, lease_ms = 0, self:lease_ms(name)
  local good = pcall(program.eventually, 'renewals', function()
    local before_ms = lease_ms
    self:command('BLPOP', 'nothing', '0.1')
    lease_ms = self:lease_ms(name)
    seen = seen + (lease_ms > before_ms and 1 or 0)
    return lease_ms < 0 or seen == times
  end)
  return good and lease_ms >= 0
end

function Server:is_free(name)
  return self:command('EXISTS', name) == '0'
end

---How many listen for the release of a re-entrant lock.
function Server:waiters(name)
  return tonumber(self:command('PUBSUB', 'NUMSUB', 'redisson_lock__channel:{' .. name .. '}')
    :match('(%d+)$'))
end

---A command that runs until gate:open(), or until it is killed. `script` runs in its shell before.
function program.gate(script)
  local folder = program.folder()
  local self = { started_file = folder .. '/started', pipe = folder .. '/gate' }
  assert(stat.mkfifo(self.pipe, tonumber('600', 8)))
  -- The pipe is opened for reading and writing, so that nobody waits for another in opening it.
  self.command = { 'sh', '-c', (script or '') .. '\nexec 9<>"$1"; echo $$ >"$2.new"\n'
    .. 'mv "$2.new" "$2"; read line <&9', 'sh', self.pipe, self.started_file }

  ---Waits until the command runs; its process.
  function self.started()
    return tonumber(program.eventually('the command starts', function()
      return utils.readfile(self.started_file)
    end))
  end

  function self.open()
    local pipe = assert(fcntl.open(self.pipe, fcntl.O_RDWR))
    unistd.write(pipe, 'go\n')
    -- Kept open: the line must not be lost before the command has it.
    self.held = pipe
  end

  return self
end

---Words of `latchkey exec`: options, then the command behind a "--".
function program.exec(server, options, command)
  local words = { 'exec', '--url', server.url }
  for _, word in ipairs(options) do
    words[#words + 1] = word
  end
  words[#words + 1] = '--'
  for _, word in ipairs(command) do
    words[#words + 1] = word
  end
  return words
end

---Ends what was started and removes what was written since the last call.
function program.clean()
  for _, process in ipairs(processes) do
    if not process:poll() then
      process:kill(signal.SIGKILL)
      process:wait()
    end
  end
  -- Not by hand: a folder may hold links, and what they lead to stays.
  for _, folder in ipairs(folders) do
    assert(utils.execute('rm -rf -- ' .. utils.quote_arg(folder)))
  end
  processes, folders = {}, {}
end

return program
