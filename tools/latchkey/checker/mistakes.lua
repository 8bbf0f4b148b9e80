-- SPDX-License-Identifier: Apache-2.0
-- Mistakes in a model file that show only while it is checked. They are errors of Lua with a mark,
-- so that they also come through from another process.
local mistakes = {}

local MARK = 'MODEL '

---@param text string
function mistakes.raise(text)
  error(MARK .. text, 0)
end

local function passed(what, good, ...)
  if good then
    return ...
  end
  mistakes.raise(('%s: %s'):format(what, tostring((...))))
end

---Calls a function of a model file.
---@param what string that is called, such as 'the step "take"'
function mistakes.call(what, run, ...)
  return passed(what, pcall(run, ...))
end

---@param err any what was caught
---@return string|nil text nil: it is no mistake of a model
function mistakes.text(err)
  return type(err) == 'string' and err:match('^' .. MARK .. '(.*)$') or nil
end

return mistakes
