-- SPDX-License-Identifier: Apache-2.0
-- A text as lines without their ends. Carriage returns stay: a server hashes them.
local lines = {}

---@param text string
---@return string[]
function lines.split(text)
  local list = {}
  for line in (text:gsub('\n$', '') .. '\n'):gmatch('(.-)\n') do
    list[#list + 1] = line
  end
  return list
end

---@param list string[]
---@return string text whose last line has an end
function lines.join(list)
  return table.concat(list, '\n') .. '\n'
end

return lines
