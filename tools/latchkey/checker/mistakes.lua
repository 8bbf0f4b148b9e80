-- SPDX-License-Identifier: Apache-2.0
-- Mistakes in a model file that show only while it is checked. They are errors of Lua with a mark,
-- so that they also come through from another process.
local parts = require('latchkey.checker.parts')

local mistakes = {}

local MARK = 'MODEL '

-- A promise or a step takes some hundred; the text of a file, once, not many more.
local MOST_INSTRUCTIONS = 1e7

---@param text string
function mistakes.raise(text)
  error(MARK .. text, 0)
end

-- The texts of model files, as Lua calls them.
local texts = {}

-- Where it runs: the line of the model file, also while that calls something of the checker.
local function place_of_model()
  local level, place = 3, debug.getinfo(3, 'Sl')
  local innermost = place
  while place and not texts[place.source] do
    level = level + 1
    place = debug.getinfo(level, 'Sl')
  end
  return place or innermost
end

local function stop()
  debug.sethook()
  local place = place_of_model()
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
  texts[debug.getinfo(chunk, 'S').source] = true
  if jit then
    jit.off(chunk, true)
  end
  return chunk
end

local function passed(what, good, ...)
  if good then
    return ...
  end
  local err = ...
  if mistakes.text(err) then
    error(err, 0) -- of a function that this one called
  end
  mistakes.raise(('%s: %s'):format(what, tostring(err)))
end

---Calls a function of a model file.
---@param what string that is called, such as 'the step "take"'
function mistakes.call(what, run, ...)
  return passed(what, mistakes.pcall(run, ...))
end

---The same for one that notes what it likes in a table, which is kept.
---@param notes table
function mistakes.call_noting(what, notes, run, ...)
  local first, second = mistakes.call(what, run, ...)
  local wrong = parts.unfit(notes)
  if wrong then
    mistakes.raise(('%s: what it noted %s'):format(what, wrong))
  end
  return first, second
end

local function limit(about, prefix, seen)
  seen[about] = true
  for name, value in pairs(about) do
    local word = prefix .. tostring(name)
    if type(value) == 'table' and not seen[value] then
      limit(value, word .. '.', seen)
    elseif type(value) == 'function' and texts[debug.getinfo(value, 'S').source] then
      about[name] = function(...)
        return mistakes.call(('the word "%s"'):format(word), value, ...)
      end
    end
  end
end

---Lets each function of a model file that stands in its model be called as `call` does: the checker
---calls those of a family in many places.
---@param model table that is changed
function mistakes.limit(model)
  limit(model, '', {})
end

---@param err any what was caught
---@return string|nil text nil: it is no mistake of a model
function mistakes.text(err)
  return type(err) == 'string' and err:match('^' .. MARK .. '(.*)$') or nil
end

return mistakes
