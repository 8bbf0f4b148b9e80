-- SPDX-License-Identifier: Apache-2.0
-- What a server picks at random: the mock does so where there is nothing to choose, and refuses the
-- rest, for whoever compares a choice compares chance.
local arrays = require('latchkey.mock.arrays')
local integers = require('latchkey.mock.integers')

local choice = {}

local UNKNOWN = 'MOCK a random choice is not modelled'

---The count of SPOP and its like; nil: one element and no array.
---@param kind? string 'any': also below 0, which is so many with repeats
---@return integer|nil
---@return string|nil err
function choice.count(argv, kind)
  if #argv > 3 then
    return nil, arrays.SYNTAX
  elseif not argv[3] then
    return nil
  elseif kind == 'any' then
    return integers.parse(argv[3])
  end
  return arrays.read_count(argv[3])
end

---@param list any[]
---@param count integer|nil of `choice.count`
---@return any reply
---@return string|nil err
function choice.of(list, count)
  if #list == 0 or count == 0 then
    return count and {} or false
  elseif not count then
    return #list == 1 and list[1], #list > 1 and UNKNOWN or nil
  elseif count < 0 and #list == 1 then
    local same = {}
    for i = 1, -count do
      same[i] = list[1]
    end
    return same
  elseif count < #list then
    return nil, UNKNOWN
  end
  return arrays.copy(list)
end

return choice
