-- SPDX-License-Identifier: Apache-2.0
-- A server that answers what a spec wants, one connection after the other.
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

local function attend(connection, answer)
  local bytes = ''
  repeat
    local words, rest = take(bytes)
    if words then
      bytes = rest
      socket.send(connection, answer(words))
    else
      local more = socket.recv(connection, 65536)
      if not more or more == '' then
        break
      end
      bytes = bytes .. more
    end
  until false
  unistd.close(connection)
end

---Never comes back; for a program of its own.
---@param at string the socket to listen at
---@param answer fun(words: string[]): string the bytes of the reply to a command
function stub.serve(at, answer)
  local listener = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
  assert(socket.bind(listener, { family = socket.AF_UNIX, path = at }))
  assert(socket.listen(listener, 8))
  repeat
    attend(assert(socket.accept(listener)), answer)
  until false
end

return stub
