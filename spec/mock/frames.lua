-- SPDX-License-Identifier: Apache-2.0
-- What a server sends, frame by frame, as texts that can be compared and read.
local frames = {}

local function line_at(bytes, at)
  local stop = bytes:find('\r\n', at, true)
  if stop then
    return bytes:sub(at, stop - 1), stop + 2
  end
end

local AGGREGATES = { ['*'] = 1, ['~'] = 1, ['>'] = 1, ['%'] = 2 }

---@param bytes string
---@param at integer
---@return string|nil text nil: its end is not there yet
---@return integer after where the next begins
function frames.read(bytes, at)
  local line, after = line_at(bytes, at)
  if not line then
    return nil, at
  end
  local kind, rest = line:sub(1, 1), line:sub(2)
  if (kind == '$' or kind == '=') and rest ~= '-1' then
    local last = after + tonumber(rest) + 1
    local text = ('%q'):format(bytes:sub(after, last - 2))
    return #bytes >= last and (kind == '=' and '=' or '') .. text or nil, last + 1
  elseif not AGGREGATES[kind] or rest == '-1' then
    return line, after
  end
  local parts = {}
  for i = 1, tonumber(rest) * AGGREGATES[kind] do
    parts[i], after = frames.read(bytes, after)
    if not parts[i] then
      return nil, at
    end
  end
  return kind .. '[' .. table.concat(parts, ' ') .. ']', after
end

---All whole frames.
---@return string[] list
---@return string rest
function frames.split(bytes)
  local list, at = {}, 1
  while at <= #bytes do
    local text, after = frames.read(bytes, at)
    if not text then
      break
    end
    list[#list + 1], at = text, after
  end
  return list, bytes:sub(at)
end

return frames
