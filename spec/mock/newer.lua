-- SPDX-License-Identifier: Apache-2.0
-- What servers newer than the mock's model do otherwise, as docs/explanation/mock.md lists it:
-- random sequences do not ask them for it.
local newer = {}

-- A command by itself, or as the scripts of the grammar send it.
local function words_of(argv)
  if argv[1] == 'EVAL' and argv[3] == '0' then
    return { unpack(argv, 4) }
  end
  return argv
end

local function has(words, wanted)
  for _, word in ipairs(words) do
    if word == wanted then
      return true
    end
  end
  return false
end

-- The command, and which calls of it.
local OTHERWISE = {
  -- What is no range is refused also where there is no key.
  BITCOUNT = function(words)
    local unit = words[5] or 'BIT'
    return #words == 3 or #words > 5 or unit ~= 'BIT' and unit ~= 'BYTE'
  end,
}

-- The end of a range "(" is an error.
for _, name in ipairs({ 'ZRANGE', 'ZRANGEBYLEX', 'ZREVRANGEBYLEX', 'ZLEXCOUNT',
  'ZREMRANGEBYLEX' }) do
  OTHERWISE[name] = function(words)
    return has(words, '(')
  end
end

---@param commands string[][]
---@return string[][] commands less those that newer servers answer otherwise
function newer.without(commands)
  local kept = {}
  for _, argv in ipairs(commands) do
    local words = words_of(argv)
    local is_other = OTHERWISE[words[1]]
    if not (is_other and is_other(words)) then
      kept[#kept + 1] = argv
    end
  end
  return kept
end

return newer
