-- SPDX-License-Identifier: Apache-2.0
-- A text as lines without their ends. Carriage returns stay: a server hashes them.
local lines = {}

---@param text string
---@return string[]
function lines.split(text)
  local list, from = {}, 1
  local last = text:sub(-1) == '\n' and #text - 1 or #text
  local at = text:find('\n', from, true)
  while at and at <= last do
    list[#list + 1] = text:sub(from, at - 1)
    from = at + 1
    at = text:find('\n', from, true)
  end
  list[#list + 1] = text:sub(from, last)
  return list
end

---@param list string[]
---@return string text whose last line has an end
function lines.join(list)
  return table.concat(list, '\n') .. '\n'
end

return lines
