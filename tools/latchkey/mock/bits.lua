-- SPDX-License-Identifier: Apache-2.0
-- The server's library `bit`: what numbers far from 32 bits come to there, which LuaJIT's own takes
-- otherwise.
local bit = require('bit')

local lua51 = require('latchkey.mock.lua51')

local DIGITS = 8

-- How many arguments are looked at, where not all are.
local ARITY = { arshift = 2, bnot = 1, bswap = 1, lshift = 2, rol = 2, ror = 2, rshift = 2,
  tobit = 1, tohex = 2 }

local bits = {}
for name, own in pairs(bit) do
  bits[name] = own
end

local function wrong(place, name, value, count)
  error(("bad argument #%d to '%s' (number expected, got %s)"):format(place, name,
    place > count and 'no value' or type(value)), 3)
end

-- Under LuaJIT arguments are brought to 32 bits first, as the server does: it adds a number so
-- large that what is wanted stands in the lowest bits of the sum.
if rawget(_G, 'jit') then
  local ffi = require('ffi')
  local sum = ffi.new('union { double number; int32_t words[2]; }')
  local low = ffi.abi('le') and 0 or 1

  local function brought(value)
    sum.number = value + 6755399441055744
    return sum.words[low]
  end

  for name, own in pairs(bit) do
    bits[name] = function(...)
      local list = { ... }
      local count = math.min(select('#', ...), ARITY[name] or math.huge)
      for place = 1, math.max(count, 1) do
        local number = lua51.base.tonumber(list[place])
        if number == nil then
          wrong(place, name, list[place], count)
        end
        list[place] = brought(number)
      end
      return own(unpack(list, 1, count))
    end
  end
end

local tohex = bits.tohex
local tonumber = lua51.base.tonumber or tonumber -- PUC Lua has the right one

-- Eight digits at most; a count of -2^31 breaks libraries that have not been mended. Arguments are
-- looked at here, so that an error names the script's line and not this one.
function bits.tohex(...)
  local given = math.min(select('#', ...), ARITY.tohex)
  for place = 1, math.max(given, 1) do
    local value = select(place, ...)
    if tonumber(value) == nil then
      wrong(place, 'tohex', value, given)
    end
  end
  local value, count = ...
  if given < 2 then
    return tohex(value)
  end
  return tohex(value, math.max(math.min(bits.tobit(count), DIGITS), -DIGITS))
end

return bits
