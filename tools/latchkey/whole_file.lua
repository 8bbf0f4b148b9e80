-- SPDX-License-Identifier: Apache-2.0
-- Files that are written whole or stay as they were: on a full disk the end of a file fails only
-- when it is closed, and what was there before is gone by then.
local bit = require('bit')
local dir = require('pl.dir')
local errno = require('posix.errno')
local fcntl = require('posix.fcntl')
local path = require('pl.path')
local stat = require('posix.sys.stat')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')

local whole_file = {}

local PERMISSIONS = tonumber('777', 8)
local FRESH = tonumber('666', 8)

-- Everything, and the close; the descriptor is closed in any case.
local function put(fd, bytes)
  local at = 1
  while at <= #bytes do
    local count, why, code = unistd.write(fd, at == 1 and bytes or bytes:sub(at))
    if not count and code ~= errno.EINTR then
      unistd.close(fd)
      return nil, why
    end
    at = at + (count or 0)
  end
  local closed, why = unistd.close(fd)
  return closed and true, why
end

-- Devices and pipes, and files in a folder that takes no others.
local function write_there(file, bytes)
  local fd, why = fcntl.open(file, fcntl.O_WRONLY + fcntl.O_CREAT + fcntl.O_TRUNC + fcntl.O_CLOEXEC,
    FRESH)
  if not fd then
    return nil, why
  end
  return put(fd, bytes)
end

-- Those of the file that is replaced; else what the user's mask leaves.
local function give_rights(fresh, there)
  if there then
    unistd.chown(fresh, there.st_uid, there.st_gid)
    return stat.chmod(fresh, there.st_mode % (PERMISSIONS + 1))
  end
  local mask = stat.umask(0)
  stat.umask(mask)
  return stat.chmod(fresh, FRESH - bit.band(FRESH, mask))
end

local function replace(fd, fresh, file, there, bytes)
  local done, why = put(fd, bytes)
  if done then
    done, why = give_rights(fresh, there)
  end
  if done then
    done, why = os.rename(fresh, file)
  end
  if not done then
    unistd.unlink(fresh)
    return nil, why
  end
  return true
end

local function write(file, bytes)
  local there, why, code = stat.stat(file)
  if there and stat.S_ISREG(there.st_mode) == 0 then
    return write_there(file, bytes)
  elseif not there and code ~= errno.ENOENT then
    return nil, why
  end
  -- What a link leads to is written, and the link stays.
  local target = there and stdlib.realpath(file) or file
  local fd, fresh = stdlib.mkstemp(target .. '.XXXXXX')
  if not fd and there then
    return write_there(file, bytes)
  elseif not fd then
    return nil, fresh
  end
  return replace(fd, fresh, target, there, bytes)
end

---Writes a file. Where that fails, what was there before stays, unless it is a device or a pipe, or
---its folder takes no new file.
---@param file string
---@param bytes string
---@return true|nil written
---@return string|nil why "FILE: No space left on device"
function whole_file.write(file, bytes)
  local written, why = write(file, bytes)
  if written then
    return true
  end
  -- The system's words stand behind the names of files, of which one is not the caller's.
  return nil, ('%s: %s'):format(file, (why:gsub('^.*: ', '')))
end

---The same; the folders that lead to the file are made, where there are none.
---@param file string
---@param bytes string
---@return true|nil written
---@return string|nil why
function whole_file.write_below(file, bytes)
  local made, why = dir.makepath(path.dirname(file))
  if not made then
    return nil, why
  end
  return whole_file.write(file, bytes)
end

return whole_file
