-- SPDX-License-Identifier: Apache-2.0
-- A private Redis server to compare the mock with: in a folder of its own, on a Unix socket, asked
-- in plain RESP2. Replies have the form that a mock world gives.
local poll = require('posix.poll')
local socket = require('posix.sys.socket')
local stat = require('posix.sys.stat')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local convert = require('mock.convert')
local values = require('support.values')

local Oracle = {}
Oracle.__index = Oracle

local START_MS, REPLY_MS = 10000, 10000

-- The server and its folder are gone when the standard input of this ends: with stop(), or with the
-- process that runs the specs, however that ends.
local KEEPER = [[
  command -v redis-server > /dev/null || { rmdir "$1"; exit 127; }
  redis-server --port 0 --save '' --dir "$1" --unixsocket "$1/redis.sock" > "$1/log" 2>&1 &
  read -r _
  kill -9 $!
  wait
  rm -r "$1"
]]

local function start(folder)
  local read_end, write_end = unistd.pipe()
  local pid = assert(unistd.fork())
  if pid == 0 then
    unistd.close(write_end)
    unistd.dup2(read_end, 0)
    unistd.execp('sh', { [0] = 'sh', '-c', KEEPER, 'sh', folder })
    unistd._exit(127)
  end
  unistd.close(read_end)
  return pid, write_end
end

-- The server is there when its socket answers, and will not be when its keeper has ended.
function Oracle:connect()
  local path = self.folder .. '/redis.sock'
  for _ = 1, START_MS / 10 do
    local fd = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    if stat.stat(path) and socket.connect(fd, { family = socket.AF_UNIX, path = path }) then
      self.fd = fd
      return true
    end
    unistd.close(fd)
    if wait.wait(self.keeper, wait.WNOHANG) ~= 0 then
      self.keeper = nil
      return false
    end
    poll.poll({}, 10)
  end
  return false
end

---@return table|nil oracle
---@return string|nil why there is none
function Oracle.start()
  local temporary = os.getenv('TMPDIR') or '/tmp'
  local folder = assert(stdlib.mkdtemp(temporary .. '/latchkey-oracle-XXXXXX'))
  local self = setmetatable({ folder = folder, buffer = '' }, Oracle)
  self.keeper, self.lifeline = start(folder)
  if not self:connect() then
    self:stop()
    return nil, 'redis-server does not start'
  end
  local version = self:command('INFO', 'server'):match('redis_version:(%S+)')
  if not version:find('^7%.0%.') then
    self:stop()
    return nil, 'the server has version ' .. version .. ', the texts are those of 7.0'
  end
  return self
end

function Oracle:stop()
  if self.fd then
    unistd.close(self.fd)
  end
  unistd.close(self.lifeline)
  if self.keeper then
    wait.wait(self.keeper)
  end
end

function Oracle:fill()
  if poll.rpoll(self.fd, REPLY_MS) ~= 1 then
    error('the server does not answer', 0)
  end
  local bytes = socket.recv(self.fd, 65536)
  if not bytes or bytes == '' then
    error('the server closed the connection', 0)
  end
  self.buffer = self.buffer .. bytes
end

function Oracle:read_line()
  local stop = self.buffer:find('\r\n', 1, true)
  while not stop do
    self:fill()
    stop = self.buffer:find('\r\n', 1, true)
  end
  local line = self.buffer:sub(1, stop - 1)
  self.buffer = self.buffer:sub(stop + 2)
  return line
end

function Oracle:read_bytes(count)
  while #self.buffer < count + 2 do
    self:fill()
  end
  local bytes = self.buffer:sub(1, count)
  self.buffer = self.buffer:sub(count + 3)
  return bytes
end

function Oracle:read_reply()
  local line = self:read_line()
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == '+' then
    return { ok = rest }
  elseif kind == '-' then
    return { err = rest }
  elseif kind == ':' then
    return tonumber(rest)
  elseif rest == '-1' then
    return nil
  elseif kind == '$' then
    return self:read_bytes(tonumber(rest))
  end
  local array = { n = tonumber(rest) }
  for i = 1, array.n do
    local element = self:read_reply()
    array[i] = element == nil and convert.null or element
  end
  return array
end

---@return any reply
---@return table|nil err { code, message }
function Oracle:command(...)
  local parts = { ('*%d\r\n'):format(select('#', ...)) }
  for _, argument in ipairs({ ... }) do
    local text = convert.argument(argument)
    parts[#parts + 1] = '$' .. #text .. '\r\n' .. text .. '\r\n'
  end
  local bytes = table.concat(parts)
  while #bytes > 0 do
    bytes = bytes:sub(assert(socket.send(self.fd, bytes)) + 1)
  end
  local reply = self:read_reply()
  if type(reply) == 'table' and reply.err then
    return nil, { code = reply.err:match('^%S*'), message = reply.err }
  end
  return reply
end

---EVAL, as a world's method of the same name.
function Oracle:eval_source(source, keys, args)
  local argv = { 'EVAL', source, #keys }
  for _, list in ipairs({ keys, args }) do
    for _, value in ipairs(list) do
      argv[#argv + 1] = value
    end
  end
  return self:command(unpack(argv))
end

function Oracle:now_ms()
  local time = self:command('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

function Oracle:set_oom(on)
  assert(self:command('CONFIG', 'SET', 'maxmemory', on and 1 or 0))
end

-- A replica of a master that is not there, which answers from what it has.
function Oracle:set_readonly(on)
  if on then
    assert(self:command('REPLICAOF', '127.0.0.1', 1))
  else
    assert(self:command('REPLICAOF', 'NO', 'ONE'))
  end
end

---No keys, no scripts, no faults.
function Oracle:reset()
  self:set_oom(false)
  self:set_readonly(false)
  assert(self:command('FLUSHALL'))
  assert(self:command('SCRIPT', 'FLUSH'))
end

---Every key, as a world's method of the same name.
function Oracle:dump()
  local dump = {}
  for _, key in ipairs(self:command('KEYS', '*')) do
    local kind = self:command('TYPE', key).ok
    local read = values.READ[kind]
    local reply = self:command(read[1], key, unpack(read, 2))
    dump[key] = { type = kind, value = values.DECODE[kind](reply),
      pttl = self:command('PTTL', key) }
  end
  return dump
end

return Oracle
