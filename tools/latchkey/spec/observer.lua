-- SPDX-License-Identifier: Apache-2.0
-- A subscriber of its own connection, which sees what a server publishes and which keys it changes,
-- in the order in which the server did it.
local socket = require('posix.sys.socket')
local unistd = require('posix.unistd')

local Observer = {}
Observer.__index = Observer

local KEY_EVENT = '^__keyevent@%d+__:(.*)$'

local function encode(words)
  local parts = { ('*%d\r\n'):format(#words) }
  for i, word in ipairs(words) do
    parts[i + 1] = ('$%d\r\n%s\r\n'):format(#word, word)
  end
  return table.concat(parts)
end

-- Where a URL leads: a path, or a host and a port without a password.
local function address_of(url)
  local path = url:match('^unix://([^?]+)')
  if path then
    return { family = socket.AF_UNIX, path = (path:gsub('%%(%x%x)', function(hex)
      return string.char(tonumber(hex, 16))
    end)) }
  end
  local host, port = url:match('^redis://([^/:@?]+):?(%d*)')
  assert(host, 'specs connect to unix:///path or redis://host:port, not to ' .. url)
  local found = assert(socket.getaddrinfo(host, port ~= '' and port or '6379',
    { socktype = socket.SOCK_STREAM }))
  return found[1]
end

---@param url string unix:///path or redis://host:port
function Observer.open(url)
  local address = address_of(url)
  local fd = assert(socket.socket(address.family, socket.SOCK_STREAM, 0))
  assert(socket.connect(fd, address))
  local observer = setmetatable({ fd = fd, buffer = '', channels = {}, events = {} },
    Observer)
  observer:send('CONFIG', 'SET', 'notify-keyspace-events', 'AE')
  assert(observer:read() == 'OK')
  observer:send('PSUBSCRIBE', '*')
  observer:await('psubscribe')
  return observer
end

function Observer:send(...)
  local text = encode({ ... })
  while text ~= '' do
    text = text:sub(assert(socket.send(self.fd, text)) + 1)
  end
end

function Observer:fill()
  local bytes = assert(socket.recv(self.fd, 65536))
  assert(bytes ~= '', 'the server closed the connection')
  self.buffer = self.buffer .. bytes
end

function Observer:take_bytes(count)
  while #self.buffer < count do
    self:fill()
  end
  local bytes = self.buffer:sub(1, count)
  self.buffer = self.buffer:sub(count + 1)
  return bytes
end

function Observer:read()
  while not self.buffer:find('\r\n', 1, true) do
    self:fill()
  end
  local line = self:take_bytes(self.buffer:find('\r\n', 1, true) + 1)
  local kind, rest = line:match('^(.)(.*)\r\n$')
  if kind == '$' then
    return self:take_bytes(tonumber(rest) + 2):sub(1, -3)
  elseif kind == '*' then
    local array = {}
    for i = 1, tonumber(rest) do
      array[i] = self:read()
    end
    return array
  end
  assert(kind ~= '-', rest)
  return kind == ':' and tonumber(rest) or rest
end

-- Reads up to the confirmation of this kind; what was pushed before it is kept.
function Observer:await(kind)
  local push
  repeat
    push = self:read()
    local channel, message = push[#push - 1], push[#push]
    local event = push[1] == 'pmessage' and channel:match(KEY_EVENT)
    if event then
      table.insert(self.events, { event = event, key = message })
    elseif push[1] == 'pmessage' or push[1] == 'smessage' then
      local verb = push[1] == 'smessage' and 'SPUBLISH' or 'PUBLISH'
      table.insert(self.events, { verb = verb, channel = channel, message = message })
    end
  until push[1] == kind
end

---Sharded channels know no patterns: each is subscribed by name.
function Observer:listen(channel)
  if not self.channels[channel] then
    self.channels[channel] = true
    self:send('SSUBSCRIBE', channel)
    self:await('ssubscribe')
  end
end

---What happened since the last call. The answer to the PING comes behind everything that the
---server had sent before, so nothing is missed and nothing is waited for.
---@return table[] events { verb, channel, message } or { event, key }, in the server's order
function Observer:take()
  self:send('PING')
  self:await('pong')
  local events = self.events
  self.events = {}
  return events
end

function Observer:close()
  unistd.close(self.fd)
end

return Observer
