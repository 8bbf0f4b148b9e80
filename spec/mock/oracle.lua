-- SPDX-License-Identifier: Apache-2.0
-- A private server to compare the mock with: in a folder of its own, on a Unix socket, asked in
-- plain RESP2. Replies have the form that a mock world gives. It is the redis-server of the search
-- path, in front of which `tools/test --server` puts another one.
local cjson = require('cjson')
local poll = require('posix.poll')
local socket = require('posix.sys.socket')
local stat = require('posix.sys.stat')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local convert = require('latchkey.mock.convert')
local values = require('latchkey.spec.values')

local Oracle = {}
Oracle.__index = Oracle

local START_MS, REPLY_MS = 10000, 10000

-- Hashes and sorted sets stay small ones, whose order is known, with values of any length. The
-- server and its folder are gone when the standard input of this ends: with stop(), or with the
-- process that runs the specs, however that ends.
local KEEPER = [[
  command -v "$2" > /dev/null || { rmdir "$1"; exit 127; }
  "$2" --port 0 --databases 1 --save '' --dir "$1" --unixsocket "$1/redis.sock" \
    --hash-max-listpack-value 9999 --zset-max-listpack-value 9999 > "$1/log" 2>&1 &
  read -r _
  kill -9 $!
  wait
  rm -r "$1"
]]

local function start(folder, program)
  local read_end, write_end = unistd.pipe()
  local pid = assert(unistd.fork())
  if pid == 0 then
    unistd.close(write_end)
    unistd.dup2(read_end, 0)
    unistd.execp('sh', { [0] = 'sh', '-c', KEEPER, 'sh', folder, program })
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

---@param program? string default redis-server
---@return table|nil oracle
---@return string|nil why there is none
function Oracle.start(program)
  program = program or 'redis-server'
  local temporary = os.getenv('TMPDIR') or '/tmp'
  local folder = assert(stdlib.mkdtemp(temporary .. '/latchkey-oracle-XXXXXX'))
  local self = setmetatable({ folder = folder, buffer = '', at = 1 }, Oracle)
  self.keeper, self.lifeline = start(folder, program)
  if not self:connect() then
    self:stop()
    return nil, program .. ' does not start'
  end
  local info = self:command('INFO', 'server')
  local valkey = info:match('valkey_version:(%S+)')
  local version = info:match('redis_version:(%S+)')
  self.name = valkey and 'Valkey ' .. valkey or 'Redis ' .. version
  -- The texts of errors are those of this version; others have the same codes.
  self.is_model = not valkey and version:find('^7%.0%.') ~= nil
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

-- What has been read is dropped when more comes, not line by line: replies come by the hundred.
function Oracle:fill()
  if poll.rpoll(self.fd, REPLY_MS) ~= 1 then
    error('the server does not answer', 0)
  end
  local bytes = socket.recv(self.fd, 65536)
  if not bytes or bytes == '' then
    error('the server closed the connection', 0)
  end
  self.buffer = self.buffer:sub(self.at) .. bytes
  self.at = 1
end

function Oracle:read_line()
  local stop = self.buffer:find('\r\n', self.at, true)
  while not stop do
    self:fill()
    stop = self.buffer:find('\r\n', 1, true)
  end
  local line = self.buffer:sub(self.at, stop - 1)
  self.at = stop + 2
  return line
end

function Oracle:read_bytes(count)
  while #self.buffer - self.at + 1 < count + 2 do
    self:fill()
  end
  local bytes = self.buffer:sub(self.at, self.at + count - 1)
  self.at = self.at + count + 2
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

local function encode(argv)
  local parts = { ('*%d\r\n'):format(#argv) }
  for _, argument in ipairs(argv) do
    local text = convert.argument(argument)
    parts[#parts + 1] = '$' .. #text .. '\r\n' .. text .. '\r\n'
  end
  return table.concat(parts)
end

function Oracle:send(bytes)
  while #bytes > 0 do
    bytes = bytes:sub(assert(socket.send(self.fd, bytes)) + 1)
  end
end

function Oracle:receive()
  local reply = self:read_reply()
  if type(reply) == 'table' and reply.err then
    return nil, { code = reply.err:match('^%S*'), message = reply.err }
  end
  return reply
end

---@return any reply
---@return table|nil err { code, message }
function Oracle:command(...)
  self:send(encode({ ... }))
  return self:receive()
end

---Several commands in one go.
---@param commands string[][]
---@return table[] outcomes { reply, err } each
function Oracle:pipeline(commands)
  local parts, outcomes = {}, {}
  for i, argv in ipairs(commands) do
    parts[i] = encode(argv)
  end
  self:send(table.concat(parts))
  for i = 1, #commands do
    local outcome = {}
    outcome.reply, outcome.err = self:receive()
    outcomes[i] = outcome
  end
  return outcomes
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

local function to_ms(time)
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

function Oracle:now_ms()
  return to_ms(self:command('TIME'))
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

---No keys, no scripts, no functions, no faults.
function Oracle:reset()
  self:set_oom(false)
  self:set_readonly(false)
  assert(self:command('FLUSHALL'))
  assert(self:command('SCRIPT', 'FLUSH'))
  assert(self:command('FUNCTION', 'FLUSH'))
end

-- The whole keyspace and the server's time in one script: no key can expire while it is read, and
-- what is read is of one moment.
local DUMP = [[#!lua flags=no-writes
local read, keys = cjson.decode(ARGV[1]), {}
for i, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  keys[i] = { key, kind, redis.call(read[kind][1], key, unpack(read[kind], 2)),
    redis.call('PTTL', key) }
end
return { redis.call('TIME'), keys }]]

local READ = cjson.encode(values.READ)

---Every key, as a world's method of the same name.
---@return table dump
---@return integer now_ms the moment of it
function Oracle:dump()
  local dump = {}
  local time, keys = unpack(assert(self:eval_source(DUMP, {}, { READ })))
  for i = 1, keys.n do
    local key, kind, value, pttl = unpack(keys[i])
    dump[key] = { type = kind, value = values.DECODE[kind](value), pttl = pttl }
  end
  return dump, to_ms(time)
end

return Oracle
