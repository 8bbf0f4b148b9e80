-- SPDX-License-Identifier: Apache-2.0
-- Which lines of a text have code: of a statement over several lines, often not the first. LuaJIT
-- alone tells.
local is_told, jutil = pcall(require, 'jit.util')

-- A prototype's own lines and those of the functions defined in it, also of those never called.
-- Bytecode 0 opens a function and runs with its first line.
local function add_lines(prototype, lines)
  local info = jutil.funcinfo(prototype)
  for pc = 1, info.bytecodes - 1 do
    lines[jutil.funcinfo(prototype, pc).currentline] = true
  end
  for i = -1, -info.gcconsts, -1 do
    local constant = jutil.funck(prototype, i)
    if type(constant) == 'proto' then
      add_lines(constant, lines)
    end
  end
end

---@param source string of a script
---@return table<integer, boolean>|nil lines nil: this Lua does not tell, or cannot compile the text
return function(source)
  local chunk = is_told and loadstring((source:gsub('^#![^\n]*', '')))
  if not chunk then
    return nil
  end
  local lines = {}
  add_lines(chunk, lines)
  return lines
end
