-- SPDX-License-Identifier: Apache-2.0
---A copy of a value with another text in place of `from`, in its keys as well; but not where a
---number goes on: lk-ann:1 does not stand in lk-ann:12.
---@param value any
---@param from string
---@param to string
---@return any
local function renamed(value, from, to)
  if type(value) == 'string' then
    local parts, at = {}, 1
    local first, last = value:find(from, at, true)
    if not first then
      return value
    end
    while first do
      local goes_on = from:find('%d$') and value:find('^%d', last + 1)
      parts[#parts + 1] = value:sub(at, first - 1) .. (goes_on and from or to)
      at = last + 1
      first, last = value:find(from, at, true)
    end
    return table.concat(parts) .. value:sub(at)
  elseif type(value) ~= 'table' then
    return value
  end
  local new = {}
  for key, part in pairs(value) do
    new[renamed(key, from, to)] = renamed(part, from, to)
  end
  return new
end

return renamed
