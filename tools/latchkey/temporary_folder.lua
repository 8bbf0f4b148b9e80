-- SPDX-License-Identifier: Apache-2.0
-- A folder of this process's own, which goes with it: whatever ends the process, another one waits
-- for that, and takes the folder away.
local dir = require('pl.dir')
local errno = require('posix.errno')
local fcntl = require('posix.fcntl')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')
local wait = require('posix.sys.wait')

local temporary_folder = {}

-- No key of the terminal reaches who has a session of its own, and nobody waits for what it might
-- still write.
local function stand_guard(folder, ends)
  unistd.setpid('s')
  local nowhere = fcntl.open('/dev/null', fcntl.O_RDWR)
  for fd = 0, 2 do
    unistd.dup2(nowhere, fd)
  end
  local bytes, _, code
  repeat
    bytes, _, code = unistd.read(ends, 1)
  until bytes or code ~= errno.EINTR
  dir.rmtree(folder)
end

-- Lets it go on, and waits until the folder is gone; nil where there is no guard.
local function start_guard(folder)
  local ends, lives = unistd.pipe()
  local pid = ends and unistd.fork()
  if not pid then
    return nil
  elseif pid == 0 then
    unistd.close(lives)
    pcall(stand_guard, folder, ends)
    unistd._exit(0)
  end
  unistd.close(ends)
  fcntl.fcntl(lives, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  return function()
    unistd.close(lives)
    wait.wait(pid)
  end
end

---Makes a folder below TMPDIR, or /tmp where that is empty or not set.
---@param name string what its name begins with
---@return string|nil folder
---@return function|string remove takes it away; without a folder: why
function temporary_folder.make(name)
  local place = os.getenv('TMPDIR') or ''
  place = place ~= '' and place or '/tmp'
  local folder, why = stdlib.mkdtemp(('%s/%s.XXXXXX'):format(place, name))
  if not folder then
    return nil, ('%s: %s'):format(place, (why:gsub('^.*: ', '')))
  end
  return folder, start_guard(folder) or function()
    dir.rmtree(folder)
  end
end

return temporary_folder
