-- SPDX-License-Identifier: Apache-2.0
-- A folder of this process's own, which goes with it: whatever ends the process, another one waits
-- for that, and takes the folder away.
local dir = require('pl.dir')
local errno = require('posix.errno')
local fcntl = require('posix.fcntl')
local signal = require('posix.signal')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local temporary_folder = {}

-- No key of the terminal reaches who has a session of its own, and nobody waits for what it might
-- still write. The folder is there only once somebody guards it.
local function stand_guard(template, told, ends)
  unistd.setpid('s')
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)
  local nowhere = fcntl.open('/dev/null', fcntl.O_RDWR)
  for fd = 0, 2 do
    unistd.dup2(nowhere, fd)
  end
  local folder, why = stdlib.mkdtemp(template)
  unistd.write(told, folder and '=' .. folder or '!' .. why)
  unistd.close(told)
  local bytes, _, code
  repeat
    bytes, _, code = unistd.read(ends, 1)
  until bytes or code ~= errno.EINTR
  if folder then
    dir.rmtree(folder)
  end
end

-- All that is written there, up to its end.
local function read_all(fd)
  local parts = {}
  repeat
    local bytes, _, code = unistd.read(fd, 4096)
    parts[#parts + 1] = bytes
  until bytes == '' or not bytes and code ~= errno.EINTR
  return table.concat(parts)
end

-- What the guard says of the folder that it made, and what lets it go on and waits until the folder
-- is gone; nil where there is no guard.
local function start_guard(template)
  local ends, lives = unistd.pipe()
  local answer, told = unistd.pipe()
  local pid = ends and answer and unistd.fork()
  if not pid then
    return nil
  elseif pid == 0 then
    unistd.close(lives)
    unistd.close(answer)
    pcall(stand_guard, template, told, ends)
    unistd._exit(0)
  end
  unistd.close(ends)
  unistd.close(told)
  fcntl.fcntl(lives, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  local said = read_all(answer)
  unistd.close(answer)
  return said, function()
    unistd.close(lives)
    wait.wait(pid)
  end
end

local function without_guard(template)
  local folder, why = stdlib.mkdtemp(template)
  return folder and '=' .. folder or '!' .. why, function()
    return folder and dir.rmtree(folder)
  end
end

---Makes a folder below TMPDIR, or /tmp where that is empty or not set.
---@param name string what its name begins with
---@return string|nil folder
---@return function|string remove takes it away; without a folder: why
function temporary_folder.make(name)
  local place = os.getenv('TMPDIR') or ''
  place = place ~= '' and place or '/tmp'
  local template = ('%s/%s.XXXXXX'):format(place, name)
  local said, remove = start_guard(template)
  if not said then
    said, remove = without_guard(template)
  end
  local folder = said:match('^=(.*)$')
  if not folder then
    remove()
    return nil, ('%s: %s'):format(place, (said:gsub('^!', ''):gsub('^.*: ', '')))
  end
  return folder, remove
end

return temporary_folder
