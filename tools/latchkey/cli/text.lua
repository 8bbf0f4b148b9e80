-- SPDX-License-Identifier: Apache-2.0
-- Words for people: durations, bytes that may be anything, what was probably meant.
local text = {}

local QUOTED = {
  ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t', ['\a'] = '\\a',
  ['\b'] = '\\b',
}
-- From the largest on; each may stand once, in this order.
local UNITS = { { 'h', 3600000 }, { 'm', 60000 }, { 's', 1000 }, { 'ms', 1 } }

-- The ms of one number and its unit, and the place of that unit; nil when it is none, or comes too
-- late.
local function part_of(count, name, place)
  for i = place, #UNITS do
    if UNITS[i][1] == name and #count <= 9 then
      return tonumber(count) * UNITS[i][2], i + 1
    end
  end
end

---@param words string "250ms", "10s", "1m30s", "0"
---@return integer|nil ms
---@return string|nil why
function text.duration(words)
  if words == '0' then
    return 0
  end
  local rest, sum, place = words, 0, 1
  repeat
    local count, name, more = rest:match('^(%d+)(%l+)(.*)$')
    local ms
    if count then
      ms, place = part_of(count, name, place)
    end
    if not ms then
      return nil, words .. ' is not a duration; write numbers and their units: 250ms, 10s, '
        .. '1m30s or 1h'
    end
    sum, rest = sum + ms, more
  until rest == ''
  return sum
end

---@param ms integer
---@return string for people: "12.3 s"
function text.show_ms(ms)
  if ms < 1000 then
    return ('%d ms'):format(ms)
  elseif ms < 120000 then
    return ('%.1f s'):format(ms / 1000)
  end
  return ('%d min'):format(ms / 60000)
end

-- What follows a first byte of UTF-8: how many continuation bytes.
local function continuations(byte)
  if byte < 0x80 then
    return 0
  elseif byte < 0xC2 or byte > 0xF4 then
    return nil
  end
  return byte < 0xE0 and 1 or byte < 0xF0 and 2 or 3
end

---Text that may stand in JSON and on a terminal: control characters, and bytes that are no UTF-8,
---as \xNN.
---@param bytes string
---@return string
function text.safe(bytes)
  local parts, i = {}, 1
  while i <= #bytes do
    local byte = bytes:byte(i)
    local more = continuations(byte)
    local sequence = more and bytes:match('^[%z\1-\127\194-\244]' .. ('[\128-\191]'):rep(more), i)
    if not sequence or byte < 0x20 or byte == 0x7F then
      parts[#parts + 1] = ('\\x%02x'):format(byte)
      i = i + 1
    else
      parts[#parts + 1] = sequence
      i = i + #sequence
    end
  end
  return table.concat(parts)
end

local function edits(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local change = diagonal + (a:sub(i, i) == b:sub(j, j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(change, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

---@param word string
---@param words string[]
---@return string|nil nearest when one is near enough to be meant
function text.nearest(word, words)
  local best, best_edits = nil, math.max(1, math.floor(#word / 2)) + 1
  for _, candidate in ipairs(words) do
    local count = edits(word, candidate)
    if count < best_edits then
      best, best_edits = candidate, count
    end
  end
  return best
end

---As redis-cli shows a string.
---@param bytes string
---@return string
function text.quoted(bytes)
  return '"' .. bytes:gsub('[%c"\\\127-\255]', function(byte)
    return QUOTED[byte] or ('\\x%02x'):format(byte:byte())
  end) .. '"'
end

return text
