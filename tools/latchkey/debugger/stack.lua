-- SPDX-License-Identifier: Apache-2.0
-- The script's part of the call stack while it is stopped: its functions, their variables, and
-- expressions in the midst of them.
--
-- A function is known by its height, how many there are from it to the bottom of the stack: that
-- stays, whatever is called above it.
local parser = require('latchkey.lua51.parser')

local stack = {}

-- What the server calls the text of a script, and that of functions.
stack.SOURCES = { ['@user_script'] = true, ['@user_function'] = true }

---How many functions there are from the caller of this one to the bottom, itself included. Lua
---comes to a level from the top, by one step for each: so few levels are asked for.
---@return integer
function stack.height()
  local there, beyond = 1, 2
  while debug.getinfo(beyond, 'l') do
    there, beyond = beyond, beyond * 2
  end
  while beyond - there > 1 do
    local middle = math.floor((there + beyond) / 2)
    if debug.getinfo(middle, 'l') then
      there = middle
    else
      beyond = middle
    end
  end
  return there - 1
end

local height = stack.height

local function name_of(info)
  return info.what == 'main' and '(script)' or info.name
    or ('(function at line %d)'):format(info.linedefined)
end

---The functions of the script that are under way, the one that runs first.
---@return table[] frames { height, line, name, func }
function stack.frames()
  local frames, total = {}, height()
  for level = 1, total do
    local info = debug.getinfo(level, 'Slnf')
    if stack.SOURCES[info.source] then
      frames[#frames + 1] = { height = total - level + 1, line = info.currentline,
        name = name_of(info), func = info.func }
    end
  end
  return frames
end

-- Where a name stands that can be seen: "local" or "upvalue", and its place there. Of two locals
-- of one name the later hides the earlier.
local function find(frame, wanted)
  local level = height() - frame.height + 1
  local found
  for place = 1, math.huge do
    local name = debug.getlocal(level, place)
    if not name then
      break
    elseif name == wanted then
      found = place
    end
  end
  if found then
    return 'local', found
  end
  for place = 1, math.huge do
    local name = debug.getupvalue(frame.func, place)
    if not name then
      return nil
    elseif name == wanted then
      return 'upvalue', place
    end
  end
end

---@param frame table
---@param name string
---@return boolean is there such a variable?
---@return any value
function stack.get(frame, name)
  local kind, place = find(frame, name)
  if not kind then
    return false
  elseif kind == 'upvalue' then
    local _, value = debug.getupvalue(frame.func, place)
    return true, value
  end
  local _, value = debug.getlocal(height() - frame.height + 1, place)
  return true, value
end

---@param frame table
---@param name string
---@param value any
---@return boolean is there such a variable?
function stack.set(frame, name, value)
  local kind, place = find(frame, name)
  if kind == 'upvalue' then
    debug.setupvalue(frame.func, place, value)
  elseif kind then
    debug.setlocal(height() - frame.height + 1, place, value)
  end
  return kind ~= nil
end

---The local variables that can be seen, in the order in which they were made.
---@param frame table
---@return table[] list { name, value }
function stack.locals(frame)
  local level, list, places = height() - frame.height + 1, {}, {}
  for place = 1, math.huge do
    local name, value = debug.getlocal(level, place)
    if not name then
      break
    elseif not name:find('^%(') then
      local at = places[name] or #list + 1
      list[at], places[name] = { name = name, value = value }, at
    end
  end
  return list
end

---The variables of outer functions that a function uses.
---@param frame table
---@return table[] list { name, value }
function stack.upvalues(frame)
  local list = {}
  for place = 1, math.huge do
    local name, value = debug.getupvalue(frame.func, place)
    if not name then
      return list
    end
    list[place] = { name = name, value = value }
  end
end

-- What is typed runs in the hook of the script's line, where no other hook is called: it counts its
-- rounds and calls itself.
stack.ROUNDS_MAX = 1000000
local COUNT = '_latchkey_count'
local rounds_left = math.huge

local function count()
  rounds_left = rounds_left - 1
  if rounds_left < 0 then
    error(('stopped after %d rounds or calls'):format(stack.ROUNDS_MAX), 0)
  end
end

---Lets typed code have its rounds from now on, or else as many as it likes.
---@param on boolean
function stack.limit(on)
  rounds_left = on and stack.ROUNDS_MAX or math.huge
end

-- The code with a count at the begin of each body of a loop or a function.
local function counted(code)
  local _, _, tokens = parser.parse(code)
  local parts, at, in_head = {}, 1, false
  for _, token in ipairs(tokens or {}) do
    in_head = in_head or token.kind == 'keyword' and token.text == 'function'
    local begins = token.kind == 'keyword' and (token.text == 'do' or token.text == 'repeat')
      or in_head and token.text == ')'
    if begins then
      in_head = false
      parts[#parts + 1] = code:sub(at, token.at + #token.text - 1) .. (' %s(); '):format(COUNT)
      at = token.at + #token.text
    end
  end
  return table.concat(parts) .. code:sub(at)
end

-- The names that code sees which stands at the frame's line.
local function names_at(frame)
  return setmetatable({}, {
    __index = function(_, name)
      if name == COUNT then
        return count
      end
      local known, value = stack.get(frame, name)
      if known then
        return value
      end
      return getfenv(frame.func)[name]
    end,
    __newindex = function(_, name, value)
      if not stack.set(frame, name, value) then
        error(('no local variable is named %s'):format(tostring(name)), 2)
      end
    end,
  })
end

---Compiles an expression or a statement that stands at the frame's line.
---@param frame table
---@param code string
---@param sandbox table of the mock, which compiles as the server does
---@return function|nil chunk
---@return string|nil why
function stack.compile(frame, code, sandbox)
  local chunk = sandbox:compile(counted('return ' .. code), '=typed')
  local why
  if not chunk then
    chunk, why = sandbox:compile(counted(code), '=typed')
  end
  if not chunk then
    return nil, (why:gsub('^typed:%d+: ', ''))
  end
  return setfenv(chunk, names_at(frame))
end

return stack
