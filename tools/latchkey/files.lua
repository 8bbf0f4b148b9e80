-- SPDX-License-Identifier: Apache-2.0
-- The files below a folder: scripts as the library finds them (c/src/harness/catalog.c), and specs.
local lfs = require('lfs')
local path = require('pl.path')
local tablex = require('pl.tablex')

local files = {}

-- Folders inside of one another: a link that leads back would have no end.
local LEVELS_MAX = 8

-- Of a link that leads nowhere.
local ENOENT = 2

local walk

-- What stands in a folder under a name. Why it cannot be taken, if so.
local function add_entry(list, file, level, suffix)
  local kind, why, code = lfs.attributes(file, 'mode')
  if kind == 'directory' then
    return walk(list, file, level + 1, suffix)
  elseif not kind then
    return code ~= ENOENT and why or nil
  elseif file:sub(-#suffix) ~= suffix then
    return nil
  elseif kind ~= 'file' then
    return file .. ' is not a regular file'
  end
  list[#list + 1] = file
end

function walk(list, folder, level, suffix)
  if level > LEVELS_MAX then
    return ('%s: more than %d folders inside of one another'):format(folder, LEVELS_MAX)
  end
  local opened, next_name, state = pcall(lfs.dir, folder)
  if not opened then
    return next_name
  end
  for name in next_name, state do
    local why = not name:find('^[_.]') and add_entry(list, path.join(folder, name), level, suffix)
    if why then
      return why
    end
  end
end

---The files below a folder whose names end so, in byte order. What begins with "_" or "." is passed
---over, and so is a link that leads nowhere.
---@param folder string
---@param suffix string
---@return string[]|nil list
---@return string|nil why
function files.below(folder, suffix)
  if not path.isdir(folder) then
    return nil, folder .. ' is not a folder'
  end
  local list = {}
  local why = walk(list, folder, 0, suffix)
  if why then
    return nil, why
  end
  table.sort(list)
  return list
end

---What is named: each file, and of a folder what is below it.
---@param targets string[]
---@param suffix string
---@return string[]|nil list
---@return string|nil why
function files.named(targets, suffix)
  local list = {}
  for _, target in ipairs(targets) do
    local found, why = { target }, nil
    if path.isdir(target) then
      found, why = files.below(target, suffix)
    end
    if not found then
      return nil, why
    end
    tablex.insertvalues(list, found)
  end
  return list
end

return files
