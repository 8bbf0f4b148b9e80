-- SPDX-License-Identifier: Apache-2.0
-- The files below a folder: scripts as the library finds them (c/src/harness/catalog.c), and specs.
local lfs = require('lfs')
local path = require('pl.path')
local stdlib = require('posix.stdlib')
local stringx = require('pl.stringx')
local tablex = require('pl.tablex')

local files = {}

-- Folders inside of one another: the library takes no more.
local LEVELS_MAX = 8

-- Of a link that leads nowhere.
local ENOENT = 2

local walk

-- What stands in a folder under a name. Why it cannot be taken, if so.
local function add_entry(found, file, level)
  local kind, why, code = lfs.attributes(file, 'mode')
  if kind == 'directory' then
    return walk(found, file, level + 1)
  elseif not kind then
    return code ~= ENOENT and why or nil
  elseif file:sub(-#found.suffix) ~= found.suffix then
    return nil
  elseif kind ~= 'file' then
    return file .. ' is not a regular file'
  end
  found.list[#found.list + 1] = file
end

-- The folder on the way that it leads back to, or that lies in what it leads to.
local function leads_back(way, real)
  for _, one in ipairs(way) do
    if stringx.startswith(one .. '/', real == '/' and real or real .. '/') then
      return one
    end
  end
end

-- Why the folder is not entered; false: it is passed over; nil: it is entered.
local function refuse(found, folder, level, real)
  if level > LEVELS_MAX and not found.problems then
    return ('%s: more than %d folders inside of one another'):format(folder, LEVELS_MAX)
  elseif level > LEVELS_MAX then
    found.passed_over[#found.passed_over + 1] = folder
    return false
  end
  local back = found.problems and leads_back(found.way, real)
  return back and ('%s: a link that leads back to %s'):format(folder, back)
end

-- `found.problems`: what cannot be taken is noted there, and the rest is looked at. Without it, the
-- first problem is returned.
function walk(found, folder, level)
  local real = stdlib.realpath(folder) or folder
  local refused = refuse(found, folder, level, real)
  if refused ~= nil then
    return refused or nil
  end
  local opened, next_name, state = pcall(lfs.dir, folder)
  if not opened then
    return next_name
  end
  table.insert(found.way, real)
  for name in next_name, state do
    local why = not name:find('^[_.]') and add_entry(found, path.join(folder, name), level)
    if why and not found.problems then
      return why
    end
    table.insert(found.problems or {}, why or nil)
  end
  table.remove(found.way)
end

---The files below a folder whose names end so, in byte order. What begins with "_" or "." is passed
---over, and so is a link that leads nowhere. What the library refuses of a folder is refused.
---@param folder string
---@param suffix string
---@return string[]|nil list
---@return string|nil why
function files.below(folder, suffix)
  if not path.isdir(folder) then
    return nil, folder .. ' is not a folder'
  end
  local found = { list = {}, suffix = suffix, way = {} }
  local why = walk(found, folder, 0)
  if why then
    return nil, why
  end
  table.sort(found.list)
  return found.list
end

---What is named: each file, and of a folder what is below it. Folders that are too deep are passed
---over: they may be of anything else.
---@param targets string[]
---@param suffix string
---@return string[] list
---@return string[] problems what could not be taken
---@return string[] passed_over folders
function files.named(targets, suffix)
  local list, problems, passed_over = {}, {}, {}
  for _, target in ipairs(targets) do
    if path.isdir(target) then
      local found = { list = {}, suffix = suffix, way = {}, problems = problems,
        passed_over = passed_over }
      table.insert(problems, (walk(found, target, 0)))
      table.sort(found.list)
      tablex.insertvalues(list, found.list)
    else
      list[#list + 1] = target
    end
  end
  table.sort(passed_over)
  return list, problems, passed_over
end

---@param passed_over string[] of files.named()
---@return string|nil what is to be said of it
function files.passed_over(passed_over)
  local more = #passed_over > 1 and (' (and %d more)'):format(#passed_over - 1) or ''
  return passed_over[1] and ('passed over, since it is more than %d folders deep: %s%s'):format(
    LEVELS_MAX, passed_over[1], more) or nil
end

return files
