-- SPDX-License-Identifier: Apache-2.0
-- Words for people: durations, bytes that may be anything, what was probably meant.
local utils = require('pl.utils')

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

-- So far is the time of a mock moved at once.
local FURTHEST_MS = 2 ^ 41

---@param words string milliseconds or a duration: "500", "2s"
---@return integer|nil ms
---@return string|nil why
function text.span(words)
  local ms, why = words:find('^%d+$') and tonumber(words) or nil, nil
  if not ms then
    ms, why = text.duration(words)
  end
  if ms and ms > FURTHEST_MS then
    return nil, words .. ' is too far: 2^41 ms (69 years) at most'
  end
  return ms, why
end

---@param number number|ffi.cdata* cdata: a whole number that no number of Lua is
---@return string digits all of those that a whole number has, up to 2^63
function text.number(number)
  if type(number) == 'cdata' then
    return (tostring(number):gsub('U?LL$', ''))
  end
  local is_whole = number % 1 == 0 and math.abs(number) < 2 ^ 63
  return (is_whole and '%.0f' or '%.14g'):format(number)
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

-- UTF-8 as RFC 3629 has it: the bytes of one character, by its first byte. No surrogates, nothing
-- above U+10FFFF, and no character in more bytes than it needs.
local FIRST = {
  { 0x00, 0x7F, '' }, { 0xC2, 0xDF, '[\128-\191]' }, { 0xE0, 0xE0, '[\160-\191][\128-\191]' },
  { 0xE1, 0xEC, '[\128-\191][\128-\191]' }, { 0xED, 0xED, '[\128-\159][\128-\191]' },
  { 0xEE, 0xEF, '[\128-\191][\128-\191]' },
  { 0xF0, 0xF0, '[\144-\191][\128-\191][\128-\191]' },
  { 0xF1, 0xF3, '[\128-\191][\128-\191][\128-\191]' },
  { 0xF4, 0xF4, '[\128-\143][\128-\191][\128-\191]' },
}
local REST = {}
for _, row in ipairs(FIRST) do
  for byte = row[1], row[2] do
    REST[byte] = '^.' .. row[3]
  end
end

-- What a terminal obeys: control characters, which those of U+0080 to U+009F are as well; ends of
-- lines and paragraphs; and what turns the direction of a text, by which a name may look like
-- another one (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
local OBEYED = { '^[%z\1-\31\127]', '^\194[\128-\159]', '^\216\156', '^\226\128[\142\143\168-\174]',
  '^\226\129[\166-\169]' }

local function is_obeyed(character)
  for _, pattern in ipairs(OBEYED) do
    if character:find(pattern) then
      return true
    end
  end
  return false
end

local function hexadecimal(bytes)
  return (bytes:gsub('.', function(byte)
    return ('\\x%02x'):format(byte:byte())
  end))
end

local function escape(bytes, is_unsafe)
  local parts, i = {}, 1
  while i <= #bytes do
    local rest = REST[bytes:byte(i)]
    local character = rest and bytes:match(rest, i)
    if character and not is_unsafe(character) then
      parts[#parts + 1] = character
    else
      parts[#parts + 1] = hexadecimal(character or bytes:sub(i, i))
    end
    i = i + #(character or '.')
  end
  return table.concat(parts)
end

---Text that may stand in JSON and on a terminal: control characters, what turns or ends a line, and
---bytes that are no UTF-8, as \xNN.
---@param bytes string
---@return string
function text.safe(bytes)
  return bytes:find('[^ -~]') and escape(bytes, is_obeyed) or bytes
end

---The same of several lines, which stay lines; tabulators stay, too.
---@param bytes string
---@return string
function text.safe_lines(bytes)
  return (bytes:gsub('[^\n\t]+', text.safe))
end

local function never()
  return false
end

---Text that may stand in JSON, where control characters have a form of their own: bytes that are no
---UTF-8 as \xNN.
---@param bytes string
---@return string
function text.utf8(bytes)
  return bytes:find('[\128-\255]') and escape(bytes, never) or bytes
end

-- Of two or three bytes of UTF-8.
local function code_of(a, b, c)
  return c and a % 16 * 4096 + b % 64 * 64 + c % 64 or a % 32 * 64 + b % 64
end

---JSON that a terminal shows as it is: what it would obey stands as \uNNNN, which is read as the
---same. Of control characters up to U+001F, JSON has none.
---@param document string JSON in UTF-8
---@return string
function text.safe_json(document)
  return (document:gsub('[\194\216\226][\128-\191]+', function(character)
    return is_obeyed(character) and ('\\u%04x'):format(code_of(character:byte(1, 3))) or nil
  end))
end

---A word of a command that is to be typed, as a shell takes it. One with control characters is none
---that can be typed so.
---@param bytes string
---@return string
function text.shell_word(bytes)
  return utils.quote_arg(text.safe(bytes))
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

---The words of a text as a set: { word -> true }.
---@param words string with blanks between
---@return table<string, boolean>
function text.set(words)
  local set = {}
  for word in words:gmatch('%S+') do
    set[word] = true
  end
  return set
end

return text
