-- SPDX-License-Identifier: Apache-2.0
-- A server that has no memory for scripts, which not every version can be made to say: it knows no
-- script, and refuses to load any. Run as a program; its arguments are the socket to listen at and
-- the version that it says it is.
local socket = require('posix.sys.socket')
local unistd = require('posix.unistd')

local INFO = ('redis_version:%s\r\nrole:master\r\nconnected_slaves:0\r\n'):format(arg[2])

local function answer(words)
  local first, second = words[1]:upper(), (words[2] or ''):upper()
  if first == 'INFO' then
    return ('$%d\r\n%s\r\n'):format(#INFO, INFO)
  elseif first == 'SCRIPT' and second == 'EXISTS' then
    return ('*%d\r\n%s'):format(#words - 2, (':0\r\n'):rep(#words - 2))
  elseif first == 'SCRIPT' then
    return "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
  end
  return '+OK\r\n'
end

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

local function serve(connection)
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

local listener = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
assert(socket.bind(listener, { family = socket.AF_UNIX, path = arg[1] }))
assert(socket.listen(listener, 8))
repeat
  serve((assert(socket.accept(listener))))
until false
