-- SPDX-License-Identifier: Apache-2.0
-- Which line of a script it is that runs, or that failed.
local place = {}

local jit = rawget(_G, 'jit')

-- What the server calls the text of a script, and that of functions.
local OURS = { ['@user_script'] = true, ['@user_function'] = true }

-- Of which functions the text is, since this is asked again and again.
local is_ours = setmetatable({}, { __mode = 'k' })

local function is_of_script(func)
  local ours = is_ours[func]
  if ours == nil then
    ours = OURS[debug.getinfo(func, 'S').source] or false
    is_ours[func] = ours
  end
  return ours
end

local function line_of(info)
  return info.func and is_of_script(info.func) and info.currentline or nil
end

---The line at this level of the stack; nil: that is no script's.
---@param level integer as debug.getinfo counts for who calls this
---@return integer|nil line
function place.line(level)
  local info = debug.getinfo(level + 1, 'fl')
  return info and line_of(info)
end

-- Has a library something of this name?
local function is_named(sandbox, name)
  for _, library in next, sandbox.globals do
    local full = sandbox.behind[library]
    if full and rawget(full, name) ~= nil then
      return true
    end
  end
  return false
end

-- Is a function of the server in the local or upvalue of that name? `level` is that of the script's
-- function.
local function is_in_local(level, name)
  local func, i, found = debug.getinfo(level, 'f').func, 1, nil
  repeat
    local known, value = debug.getlocal(level, i)
    found = known == name and value or found
    i = i + 1
  until not known
  for n = 1, found and 0 or 255 do
    local known, value = debug.getupvalue(func, n)
    found = known == name and value or found
  end
  return type(found) == 'function' and not is_of_script(found)
end

-- Has the script's last function called a function of the server, and not one of the script that
-- returned the result of it? That has left its frame: where the server's function is C, the mock's
-- is not. LuaJIT keeps nothing of a frame that is left, so it depends on what the call is named
-- after; globals are the server's.
local function is_called(sandbox, level)
  local above = debug.getinfo(level - 1, 'nS')
  if not jit then
    return above.what ~= 'tail'
  end
  local kind, name = above.namewhat, above.name
  return kind == 'metamethod' or kind == 'global'
    or (kind == 'field' or kind == 'method') and is_named(sandbox, name)
    or (kind == 'local' or kind == 'upvalue') and is_in_local(level + 1, name)
end

---The line of an error, for a handler of xpcall to ask: it is that of the last function of the
---script which is still on the stack.
---@param sandbox table of the script
---@return integer|nil line
---@return boolean is_certain false: another one may have left its frame
function place.of_error(sandbox)
  local first = 3
  local level = first
  while true do
    local info = debug.getinfo(level, 'fl')
    local line = info and line_of(info)
    if not info then
      return nil, false
    elseif line then
      return line, level == first or is_called(sandbox, level + 1)
    end
    level = level + 1
  end
end

return place
