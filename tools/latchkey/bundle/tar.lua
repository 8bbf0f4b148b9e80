-- SPDX-License-Identifier: Apache-2.0
-- ustar archives (POSIX.1-2001, pax, "ustar Interchange Format") that hold plain files below one
-- folder, and nothing of the machine that wrote them.
local tablex = require('pl.tablex')

local tar = {}

local RECORD = 512
local END = ('\0'):rep(2 * RECORD)
local MTIME = 315532800 -- 1980-01-01: some tools warn of earlier times

-- Field widths of the header; those without a value are NULs.
local function header(folder, path, size)
  local function octal(number, width)
    return ('%0' .. width - 1 .. 'o\0'):format(number)
  end
  local function text(value, width)
    return value .. ('\0'):rep(width - #value)
  end
  local before = text(path, 100) .. octal(420, 8) .. octal(0, 8) .. octal(0, 8) .. octal(size, 12)
    .. octal(MTIME, 12)
  local after = '0' .. text('', 100) .. 'ustar\00000' .. text('', 64) .. octal(0, 8) .. octal(0, 8)
    .. text(folder, 155) .. text('', 12)
  local sum = 8 * 32 -- the sum counts itself as blanks
  for _, part in ipairs({ before, after }) do
    for i = 1, #part do
      sum = sum + part:byte(i)
    end
  end
  return before .. ('%06o\0 '):format(sum) .. after
end

---May a bundle hold a file of this path? Relative, plain words, nothing hidden and no "..".
---@param path string
---@return boolean
function tar.is_safe(path)
  if path == '' or #path > 100 then
    return false
  end
  for part in (path .. '/'):gmatch('([^/]*)/') do
    if not part:find('^[%w_][%w_.-]*$') then
      return false
    end
  end
  return true
end

---@param folder string the one folder that everything is in
---@param files table<string, string> content by path below the folder
---@return string archive
function tar.pack(folder, files)
  local parts = {}
  for path, content in tablex.sort(files) do
    parts[#parts + 1] = header(folder, path, #content)
    parts[#parts + 1] = content .. ('\0'):rep(-#content % RECORD)
  end
  return table.concat(parts) .. END
end

local function field(record, first, last)
  return (record:sub(first, last):match('^[^%z]*'))
end

-- What one header says; else why it is refused.
local function read_header(record)
  local path, folder = field(record, 1, 100), field(record, 346, 500)
  local octal = record:sub(125, 135):match('^[0-7]+$')
  local size = octal and tonumber(octal, 8)
  local shown = folder ~= '' and folder .. '/' .. path or path
  if not size then
    return nil, 'it is not an archive that latchkey bundle wrote'
  elseif not tar.is_safe(path) or not tar.is_safe(folder) or folder:find('/', 1, true) then
    return nil, ('"%s" is not a path of a bundle'):format(shown)
  elseif record:sub(157, 157) ~= '0' then
    return nil, ('"%s" is not a plain file'):format(shown)
  end
  return { path = path, folder = folder, size = size }
end

---The files of an archive that `pack` wrote; any other form is refused.
---@param archive string
---@param limits { files: integer, bytes: integer } at most so many files, each at most so large
---@return string|nil folder
---@return table<string, string>|string files, or why
function tar.unpack(archive, limits)
  local files, count, folder, place = {}, 0, nil, 1
  while place + RECORD <= #archive and archive:byte(place) ~= 0 do
    local entry, why = read_header(archive:sub(place, place + RECORD - 1))
    if not entry then
      return nil, why
    end
    count = count + 1
    folder = folder or entry.folder
    if count > limits.files then
      return nil, ('more than %d files are in it'):format(limits.files)
    elseif entry.size > limits.bytes then
      return nil, ('"%s" is larger than %d bytes'):format(entry.path, limits.bytes)
    elseif files[entry.path] then
      return nil, ('"%s" is there twice'):format(entry.path)
    end
    files[entry.path] = archive:sub(place + RECORD, place + RECORD + entry.size - 1)
    place = place + RECORD + entry.size + -entry.size % RECORD
  end
  if not folder or archive ~= tar.pack(folder, files) then
    return nil, 'it is not an archive that latchkey bundle wrote'
  end
  return folder, files
end

return tar
