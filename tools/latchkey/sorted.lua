-- SPDX-License-Identifier: Apache-2.0
-- The keys of a table as a list, in order. Where they are only gone through, tablex.sort() does.
local tablex = require('pl.tablex')

---@param t table
---@return any[]
return function(t)
  local list = {}
  for key in tablex.sort(t) do
    list[#list + 1] = key
  end
  return list
end
