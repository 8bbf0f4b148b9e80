-- SPDX-License-Identifier: Apache-2.0
-- A server that answers what a spec wants, on any number of connections.
local poll = require('posix.poll')
local signal = require('posix.signal')
local socket = require('posix.sys.socket')
local unistd = require('posix.unistd')

local stub = {}

-- The first whole command of what came, and the rest; nothing before it is whole.
local function take(bytes)
  local count, place = bytes:match('^%*(%d+)\r\n()')
  local words = {}
  for i = 1, tonumber(count) or 0 do
    local length, start = bytes:match('^%$(%d+)\r\n()', place)
    if not length or #bytes < start + length + 1 then
      return nil
    end
    words[i] = bytes:sub(start, start + length - 1)
    place = start + length + 2
  end
  return count and words, count and bytes:sub(place)
end

-- The bytes that are left for the next time; nil: the connection is at its end.
local function attend(connection, bytes, answer)
  local more = socket.recv(connection, 65536)
  if not more or more == '' then
    return nil
  end
  bytes = bytes .. more
  repeat
    local words, rest = take(bytes)
    local reply = words and answer(words, connection)
    if reply == false then
      return nil
    elseif reply then
      socket.send(connection, reply)
    end
    bytes = rest or bytes
  until not words
  return bytes
end

---Never comes back; for a program of its own.
---@param at string the socket to listen at
---@param answer fun(words: string[], connection: integer): string|false the bytes of the reply to a
---  command; false ends the connection
---@param ended? fun(connection: integer) told of each connection that has ended
function stub.serve(at, answer, ended)
  local listener = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
  assert(socket.bind(listener, { family = socket.AF_UNIX, path = at .. '.new' }))
  assert(socket.listen(listener, 8))
  assert(os.rename(at .. '.new', at)) -- who sees it can connect
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)
  local fds, left = { [listener] = { events = { IN = true } } }, {}
  repeat
    poll.poll(fds, -1)
    for connection, bytes in pairs(left) do
      local revents = fds[connection].revents
      if revents and (revents.IN or revents.HUP or revents.ERR) then
        left[connection] = attend(connection, bytes, answer)
        if not left[connection] then
          fds[connection] = nil
          unistd.close(connection)
          if ended then
            ended(connection)
          end
        end
      end
    end
    if fds[listener].revents.IN then
      local connection = assert(socket.accept(listener))
      fds[connection], left[connection] = { events = { IN = true } }, ''
    end
  until false
end

return stub
