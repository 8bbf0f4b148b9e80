-- SPDX-License-Identifier: Apache-2.0
-- Patterns of channels, settings and keys: "?" is any byte, "*" any number of them, "[a-z]" one of
-- some, "[^a]" one of the others, "\" takes the next as it is.
local glob = {}

-- From "[" on: does the byte belong to it, and where does it end? One that is not closed ends with
-- the pattern.
local function in_class(pattern, at, byte)
  at = at + 1
  local negated = pattern:byte(at) == 94
  if negated then
    at = at + 1
  end
  local found = false
  while at <= #pattern do
    local first = pattern:byte(at)
    if first == 92 and at < #pattern then
      at = at + 1
      found = found or pattern:byte(at) == byte
    elseif first == 93 then
      return found ~= negated, at
    elseif pattern:byte(at + 1) == 45 and at + 2 <= #pattern then
      local last = pattern:byte(at + 2)
      found = found or (byte >= math.min(first, last) and byte <= math.max(first, last))
      at = at + 2
    else
      found = found or first == byte
    end
    at = at + 1
  end
  return found ~= negated, #pattern
end

-- The byte at a place of the pattern, and where the next begins.
local function matches_one(pattern, at, byte)
  local mark = pattern:byte(at)
  if mark == 63 then
    return true, at + 1
  elseif mark == 91 then
    local found, last = in_class(pattern, at, byte)
    return found, last + 1
  elseif mark == 92 and at < #pattern then
    at = at + 1
  end
  return pattern:byte(at) == byte, at + 1
end

---@param pattern string
---@param text string
---@return boolean
function glob.match(pattern, text)
  local at, place = 1, 1
  local star, resume
  while place <= #text do
    local mark = pattern:byte(at)
    local found, after = false, at
    if mark == 42 then
      star, resume = at, place
      found, after, place = true, at + 1, place - 1
    elseif mark then
      found, after = matches_one(pattern, at, text:byte(place))
    end
    if found then
      at, place = after, place + 1
    elseif star then
      resume = resume + 1
      at, place = star + 1, resume
    else
      return false
    end
  end
  return not pattern:find('[^*]', at)
end

return glob
