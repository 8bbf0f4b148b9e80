-- SPDX-License-Identifier: Apache-2.0
-- Mistakes in a model file that show only while it is checked. They are errors of Lua with a mark,
-- so that they also come through from another process.
local mistakes = {}

local MARK = 'MODEL '

-- A promise or a step takes some hundred; the text of a file, once, not many more.
local MOST_INSTRUCTIONS = 1e7

---@param text string
function mistakes.raise(text)
  error(MARK .. text, 0)
end

local function stop()
  debug.sethook()
  local place = debug.getinfo(2, 'Sl')
  error(('%s:%d: it does not end: more than %.0f instructions'):format(place.short_src,
    place.currentline, MOST_INSTRUCTIONS), 0)
end

local function unhooked(...)
  debug.sethook()
  return ...
end

---Calls a function as pcall does, and ends it where it has no end itself. A hook that somebody else
---has set, a coverage tool's, stays instead.
function mistakes.pcall(run, ...)
  if debug.gethook() then
    return pcall(run, ...)
  end
  debug.sethook(stop, '', MOST_INSTRUCTIONS)
  return unhooked(pcall(run, ...))
end

---A chunk whose functions can be ended: compiled loops call no hooks.
---@param chunk function
function mistakes.interpreted(chunk)
  if jit then
    jit.off(chunk, true)
  end
  return chunk
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
  return passed(what, mistakes.pcall(run, ...))
end

---@param err any what was caught
---@return string|nil text nil: it is no mistake of a model
function mistakes.text(err)
  return type(err) == 'string' and err:match('^' .. MARK .. '(.*)$') or nil
end

return mistakes
