-- SPDX-License-Identifier: Apache-2.0
-- A front behind a real socket: one thread that waits for bytes, for the time and for signals.
local errno = require('posix.errno')
local fcntl = require('posix.fcntl')
local poll = require('posix.poll')
local socket = require('posix.sys.socket')
local stat = require('posix.sys.stat')
local time = require('posix.time')
local unistd = require('posix.unistd')

local address = require('latchkey.mock.address')

local Listener = {}
Listener.__index = Listener

local BACKLOG, READ_BYTES = 128, 65536
-- A client that does not read what it is sent is cut off here.
local MAX_UNREAD = 64 * 1048576
local READ, BOTH, NONE = { IN = true }, { IN = true, OUT = true }, {}
-- How long who comes waits before another descriptor is asked for, where there was none.
local FULL_MS = 100

local function monotonic_us()
  local now = time.clock_gettime(time.CLOCK_MONOTONIC)
  return now.tv_sec * 1e6 + math.floor(now.tv_nsec / 1e3)
end

local function prepare(fd)
  fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.O_NONBLOCK)
end

-- A socket that nobody answers on any more is in the way, and goes; nothing else does. Not one of
-- another kind, which refuses a connection as such, and not one that others alone may use.
local function clear_path(path)
  local there = stat.stat(path)
  if not there then
    return true
  elseif stat.S_ISSOCK(there.st_mode) == 0 then
    return nil, path .. ' is there, and is no socket'
  end
  local fd = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
  prepare(fd)
  local taken, why, code = socket.connect(fd, { family = socket.AF_UNIX, path = path })
  unistd.close(fd)
  -- EAGAIN: so many wait there already that one more would have to wait, too.
  if taken or code == errno.EAGAIN then
    return nil, path .. ': another server answers there'
  elseif code ~= errno.ECONNREFUSED then
    return nil, ('%s: whether another server uses it is not known: %s'):format(path, why)
  end
  return unistd.unlink(path)
end

local function listen(fd, where)
  local ok, why = socket.bind(fd, where)
  if ok then
    ok, why = socket.listen(fd, BACKLOG)
  end
  if not ok then
    unistd.close(fd)
    return nil, why
  end
  prepare(fd)
  return fd
end

-- Which file it is that has this name now.
local function identity(path)
  local there = stat.lstat(path)
  return there and ('%d:%d'):format(there.st_dev, there.st_ino)
end

local function open_path(path)
  local free, why = clear_path(path)
  if not free then
    return nil, why
  end
  local fd = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
  local before = stat.umask(tonumber('077', 8))
  fd, why = listen(fd, { family = socket.AF_UNIX, path = path })
  stat.umask(before)
  return fd, why
end

local function open_port(place)
  local family = place.host == '::1' and socket.AF_INET6 or socket.AF_INET
  local fd, why = socket.socket(family, socket.SOCK_STREAM, 0)
  if not fd then
    return nil, why
  end
  socket.setsockopt(fd, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  fd, why = listen(fd, { family = family, addr = place.host, port = place.port })
  return fd, why, fd and socket.getsockname(fd).port
end

local function open_place(self, place)
  local fd, why, port
  if place.path then
    fd, why = open_path(place.path)
  else
    fd, why, port = open_port(place)
  end
  if not fd then
    return nil, why
  end
  self.port = self.port or port
  self.urls[#self.urls + 1] = address.url(place, port)
  self.places[fd], self.fds[fd] = place, { events = READ }
  self.files[fd] = place.path and identity(place.path)
  return true
end

---@param places table[] of mock.address
---@return table|nil listener with its `urls`
---@return string|nil why
function Listener.open(places)
  local self = setmetatable({ places = {}, files = {}, urls = {}, peers = {}, by_conn = {},
    fds = {}, calls = {} }, Listener)
  for _, place in ipairs(places) do
    local ok, why = open_place(self, place)
    if not ok then
      self:close()
      return nil, ('%s: %s'):format(address.url(place, place.port), why)
    end
  end
  return self
end

---Has `call` called when there is something to read.
function Listener:watch(fd, call)
  self.fds[fd] = { events = READ }
  self.calls[fd] = call
end

local function drop(self, peer)
  self.peers[peer.fd], self.by_conn[peer.conn], self.fds[peer.fd] = nil, nil, nil
  peer.conn:close()
  unistd.close(peer.fd)
end

-- Sends what it takes; the rest waits until the socket takes more.
local function flush(self, peer)
  while #peer.unsent > 0 do
    local sent, _, code = socket.send(peer.fd, peer.unsent)
    if sent then
      peer.unsent = peer.unsent:sub(sent + 1)
    elseif code == errno.EAGAIN then
      break
    elseif code ~= errno.EINTR then
      return drop(self, peer)
    end
  end
  if #peer.unsent == 0 and peer.ends or #peer.unsent > MAX_UNREAD then
    return drop(self, peer)
  end
  self.fds[peer.fd].events = #peer.unsent > 0 and BOTH or READ
end

local function deliver(self, outputs)
  for _, output in ipairs(outputs) do
    local peer = self.by_conn[output.conn]
    if peer then
      peer.unsent = peer.unsent .. output.bytes
      peer.ends = peer.ends or output.close
      flush(self, peer)
    end
  end
end

-- While there are no descriptors to be had, who comes waits in line, and the poll tells of nobody:
-- it would do so again and again.
local function set_full(self, is_full)
  self.is_full = is_full
  for fd in pairs(self.places) do
    self.fds[fd].events = is_full and NONE or READ
  end
end

local NO_ROOM = { [errno.EMFILE] = true, [errno.ENFILE] = true, [errno.ENOBUFS] = true,
  [errno.ENOMEM] = true }

local function accept(self, listening)
  local place = self.places[listening]
  local fd, from, code = socket.accept(listening)
  if not fd then
    return NO_ROOM[code] and set_full(self, true)
  end
  prepare(fd)
  if not place.path then
    socket.setsockopt(fd, socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
  end
  local conn = self.front:connect(place.path and place.path .. ':0'
    or ('%s:%d'):format(place.shown, from.port))
  local peer = { fd = fd, conn = conn, unsent = '' }
  self.peers[fd], self.by_conn[conn] = peer, peer
  self.fds[fd] = { events = READ }
  deliver(self, self.front:take())
end

local function receive(self, peer)
  local bytes, _, code = socket.recv(peer.fd, READ_BYTES)
  if bytes and bytes ~= '' then
    deliver(self, peer.conn:feed(bytes))
  elseif bytes or (code ~= errno.EAGAIN and code ~= errno.EINTR) then
    drop(self, peer)
    deliver(self, self.front:take())
  end
end

-- Time that passes here passes there, where it flows.
local function pass_time(self)
  local now, front = monotonic_us(), self.front
  if front.flows then
    local us = front.world.clock.beyond_us + now - self.last_us
    front:at(front:now_ms() + math.floor(us / 1000), us % 1000)
  end
  self.last_us = now
  deliver(self, self.front:tick())
end

local function wait_ms(self)
  local due = self.front.flows and self.front:due_ms()
  local wait = due and math.max(due - self.front:now_ms(), 0) or -1
  return self.is_full and (wait < 0 or wait > FULL_MS) and FULL_MS or wait
end

-- What is ready, in the order of its numbers.
local function ready(self)
  local list = {}
  for fd, item in pairs(self.fds) do
    local found = item.revents
    if found and (found.IN or found.OUT or found.HUP or found.ERR or found.NVAL) then
      list[#list + 1] = fd
    end
  end
  table.sort(list)
  return list
end

local function serve(self, fd)
  local events, peer = self.fds[fd] and self.fds[fd].revents, self.peers[fd]
  if not events then
    return
  elseif self.places[fd] then
    accept(self, fd)
  elseif self.calls[fd] then
    self.calls[fd]()
  elseif peer then
    if events.OUT then
      flush(self, peer)
    end
    if self.peers[fd] == peer and (events.IN or events.HUP or events.ERR) then
      receive(self, peer)
    end
  end
end

---Serves until `stop` is called.
---@param front table
function Listener:run(front)
  self.front, self.last_us = front, monotonic_us()
  while not self.stopped do
    local count = poll.poll(self.fds, wait_ms(self))
    if self.is_full then
      set_full(self, false)
    end
    pass_time(self)
    if count and count > 0 then
      for _, fd in ipairs(ready(self)) do
        serve(self, fd)
      end
    end
  end
end

function Listener:stop()
  self.stopped = true
end

---Nobody is served any more, and nothing of it is left. What has the name of its socket by now, and
---is another's, stays.
function Listener:close()
  for fd in pairs(self.peers) do
    unistd.close(fd)
  end
  for fd, place in pairs(self.places) do
    unistd.close(fd)
    if place.path and identity(place.path) == self.files[fd] then
      unistd.unlink(place.path)
    end
  end
end

return Listener
