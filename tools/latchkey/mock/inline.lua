-- SPDX-License-Identifier: Apache-2.0
-- A command as a person types it: words between spaces, quoted where they have some.
local inline = {}

local ESCAPED = { n = '\n', r = '\r', t = '\t', b = '\b', a = '\a' }

-- Where a word that is quoted ends, and what it says.
local function read_quoted(line, at, quote)
  local parts = {}
  while at <= #line do
    local byte = line:sub(at, at)
    if byte == quote then
      local after = line:sub(at + 1, at + 1)
      return (after == '' or after:find('^%s')) and table.concat(parts) or nil, at + 1
    end
    local hex = quote == '"' and line:match('^\\x(%x%x)', at)
    if hex then
      parts[#parts + 1] = string.char(tonumber(hex, 16))
      at = at + 4
    elseif quote == '"' and byte == '\\' and at < #line then
      local escaped = line:sub(at + 1, at + 1)
      parts[#parts + 1] = ESCAPED[escaped] or escaped
      at = at + 2
    elseif byte == '\\' and line:sub(at + 1, at + 1) == "'" then
      parts[#parts + 1] = "'"
      at = at + 2
    else
      parts[#parts + 1] = byte
      at = at + 1
    end
  end
  return nil, at
end

---@param line string
---@return string[]|nil words nil: a quote is not closed, or something follows at once
function inline.split(line)
  local words, at = {}, 1
  while true do
    at = line:find('[^%s%z]', at)
    if not at then
      return words
    end
    local parts = {}
    while at <= #line and not line:find('^[%s%z]', at) do
      local quote = line:match('^["\']', at)
      local text
      if quote then
        text, at = read_quoted(line, at + 1, quote)
        if not text then
          return nil
        end
      else
        text = line:match('^[^%s%z"\']+', at)
        at = at + #text
      end
      parts[#parts + 1] = text
    end
    words[#words + 1] = table.concat(parts)
  end
end

return inline
