-- SPDX-License-Identifier: Apache-2.0
local texts = {}

---A text with one other text, which has to be there, in another one's place.
---@param text string
---@param old string as it is, no pattern; where it stands first
---@param new string
---@return string
function texts.with(text, old, new)
  local first, last = text:find(old, 1, true)
  assert(first, old)
  return text:sub(1, first - 1) .. new .. text:sub(last + 1)
end

---How source is named in a title: the start of it, on one line.
---@param source string
---@return string
function texts.shown(source)
  return (source:sub(1, 60):gsub('\n', ' '))
end

return texts
