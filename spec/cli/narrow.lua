-- SPDX-License-Identifier: Apache-2.0
-- A `latchkey load` that stands still in the middle. With --verbose a line for each script goes to
-- standard error; where that is a pipe with little room that nobody reads, the program waits there.
local fcntl = require('posix.fcntl')
local stat = require('posix.sys.stat')
local unistd = require('posix.unistd')

local program = require('cli.program')

local narrow = {}

local ROOM = 1000

-- A pipe with so much room left, open here for both ends.
local function narrow_pipe()
  local file = program.folder() .. '/pipe'
  assert(stat.mkfifo(file, tonumber('600', 8)))
  local pipe = assert(fcntl.open(file, fcntl.O_RDWR + fcntl.O_NONBLOCK))
  local size = 0
  repeat
    local written = unistd.write(pipe, ('x'):rep(1024))
    size = size + (written or 0)
  until not written
  unistd.read(pipe, size)
  for _ = 1, size - ROOM do
    unistd.write(pipe, 'x')
  end
  return file, pipe
end

---@return table process
---@return integer pipe
function narrow.start(urls, words)
  local file, pipe = narrow_pipe()
  local script = 'exec "$0" load -v --url "$2" $3 2>"$1"'
  local process = program.start_any('sh', { '-c', script, program.path, file, urls, words or '' })
  return process, pipe
end

---Waits until it stands still; `count` tells how many a server has.
function narrow.stopped(server, count)
  local before, same = -1, 0
  program.eventually('some are loaded, and no more', function()
    local now = count(server)
    same = now >= 4 and now == before and same + 1 or 0
    before = now
    return same >= 10
  end)
end

---Reads the pipe until the process has ended; its result and what it wrote.
function narrow.finish(process, pipe)
  local said = {}
  program.eventually('it ends', function()
    said[#said + 1] = unistd.read(pipe, 65536)
    return process:poll()
  end)
  said[#said + 1] = unistd.read(pipe, 65536)
  unistd.close(pipe)
  return process:wait(), table.concat(said):gsub('^x+', '')
end

return narrow
