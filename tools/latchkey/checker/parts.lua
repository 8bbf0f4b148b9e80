-- SPDX-License-Identifier: Apache-2.0
-- The parts of a state: keyspace, clients, ghosts. A part is plain data that is never changed, and
-- equal data is one part, so that states are compared by numbers and steps can be remembered.
--
-- Now is always START_MS. When time passes, all moments come nearer instead: numbers and texts near
-- START_MS (13 digits) or, in microseconds, near a thousand times that (16 digits) are moments. So
-- absolute time is in no state, and two states that differ by it alone are one.
local START_MS = require('latchkey.mock.clock').START_MS
local NEAR_MS = 1e9
-- What is longer ago is as if it were so long ago: longer than any lease of a model.
local PAST_MS = 400

local byte, format, sort = string.byte, string.format, table.sort

-- DIGITS: the whole numbers in a part's text.
local parts = { START_MS = START_MS, DIGITS = '%f[%d]%d+%f[%D]' }

local sized, new_table = pcall(require, 'table.new')

---An array of this size: places that are filled one by one would make it grow several times.
---@type fun(size: integer): table
parts.array = sized and function(size)
  return new_table(size, 0)
end or function()
  return {}
end

local Pool = {}
Pool.__index = Pool

---The names of a table in one order, numbers first. Names that begin with NUL are remembered values
---and no data: keys, fields and what models note may have any other name.
local function sorted_names(data)
  local numbers, texts, n, m = {}, {}, 0, 0
  for name in pairs(data) do
    local kind = type(name)
    if kind == 'number' then
      n = n + 1
      numbers[n] = name
    elseif kind ~= 'string' or byte(name) ~= 0 then
      m = m + 1
      texts[m] = name
    end
  end
  sort(texts)
  if n == 0 then
    return texts
  end
  sort(numbers)
  for i = 1, m do
    numbers[n + i] = texts[i]
  end
  return numbers
end
parts.sorted_names = sorted_names

-- Quotes inside are doubled, so that no two texts look like one.
local function quoted(text)
  return '"' .. (text:find('"', 1, true) and text:gsub('"', '""') or text) .. '"'
end

local function plain_text(data)
  local kind = type(data)
  return kind == 'string' and quoted(data) or kind == 'number' and format('%.17g', data)
    or tostring(data)
end

-- Appends to a list of n pieces, and says how many there are then.
local function write(data, out, n)
  out[n + 1] = '{'
  n = n + 1
  local names = sorted_names(data)
  for i = 1, #names do
    local name, value = names[i], data[names[i]]
    out[n + 1] = type(name) == 'number' and name or quoted(name)
    out[n + 2] = '='
    if type(value) == 'table' and next(value) ~= nil then
      n = write(value, out, n + 2)
    elseif type(value) == 'table' then
      n = n + 3
      out[n] = '{}'
    else
      n = n + 3
      out[n] = plain_text(value)
    end
    n = n + 1
    out[n] = ','
  end
  out[n + 1] = '}'
  return n + 1
end

---One text for equal data, and another for other data.
---@return string
function parts.text(data)
  if type(data) ~= 'table' then
    return plain_text(data)
  end
  local out = {}
  write(data, out, 0)
  return table.concat(out)
end

local function copy(data)
  local new = {}
  for name, value in pairs(data) do
    if type(name) ~= 'string' or byte(name) ~= 0 then
      new[name] = type(value) == 'table' and copy(value) or value
    end
  end
  return new
end

---A copy that may be changed.
function parts.copy(data)
  return type(data) == 'table' and copy(data) or data
end

---A table with the same members.
function parts.shallow(data)
  local new = {}
  for name, value in pairs(data) do
    new[name] = value
  end
  return new
end

local function map(data, text, number)
  local kind = type(data)
  if kind == 'string' then
    return text(data)
  elseif kind == 'number' then
    return number(data)
  elseif kind ~= 'table' then
    return data
  end
  local new = {}
  for name, value in pairs(data) do
    if type(name) ~= 'string' then
      new[name] = map(value, text, number)
    elseif name:byte() ~= 0 then
      new[text(name)] = map(value, text, number)
    end
  end
  return new
end

local function same(value)
  return value
end

---@return boolean is this number a moment in ms?
function parts.is_moment(n)
  return n > START_MS - NEAR_MS and n < START_MS + NEAR_MS
end

local function is_token(n)
  return n > (START_MS - NEAR_MS) * 1000 and n < (START_MS + NEAR_MS) * 1000
end
parts.is_token = is_token

-- Wider than what passing time brings nearer: ends in years are moved with the time of day.
local WIDE_MS = 1e11

-- Changes all numbers, also those in texts that are as long as moments and tokens.
local function changed(number)
  local function digits(text)
    local length = #text
    if length ~= 13 and length ~= 16 then
      return nil
    end
    return ('%.0f'):format(number(tonumber(text)))
  end
  return number, function(text)
    return #text >= 13 and (text:gsub('%d+', digits)) or text
  end
end

local function nearer(ms, past_ms)
  return changed(function(n)
    if parts.is_moment(n) then
      return math.max(n - ms, START_MS - past_ms)
    elseif is_token(n) then
      return n - ms * 1000
    end
    return n
  end)
end

---Plain data as it would be at another time of day, with clients of other names.
---@param ms integer so much later
---@param names? table<string, string> "lk-A" -> what it is called there
function parts.moved(data, ms, names)
  local number, text = changed(function(n)
    local is_wide = math.abs(n - START_MS) < WIDE_MS
    return is_wide and n + ms or math.abs(n / 1000 - START_MS) < WIDE_MS and n + ms * 1000 or n
  end)
  return map(data, names and function(value)
    return (text(value):gsub('lk%-%u', names))
  end or text, number)
end

---Plain data whose moments of the distant past are as distant as they may really be.
---@param past_ms integer what is longer ago is as if it were so long ago
function parts.older(data, past_ms)
  local number, text = changed(function(n)
    return n == START_MS - past_ms and n - NEAR_MS / 4 or n
  end)
  return map(data, text, number)
end

---The opposite of that.
function parts.no_older(data, past_ms)
  return map(data, select(2, nearer(0, past_ms)), (nearer(0, past_ms)))
end

local function wrong_name(name)
  local kind = type(name)
  if kind == 'number' and (parts.is_moment(name) or is_token(name)) then
    return 'has a time for a name: times age only as values'
  elseif kind ~= 'number' and kind ~= 'string' then
    return 'has a name that is a ' .. kind
  elseif kind == 'string' and byte(name) == 0 then
    return 'has a name that begins with NUL'
  end
end

-- `inside` has the tables that this one is in.
local function unfit(data, place, inside)
  inside[data] = true
  for name, value in pairs(data) do
    local why, kind = wrong_name(name), type(value)
    local there = place .. (place == '' and '' or '.') .. tostring(name)
    if why then
      return (place == '' and '' or ('"%s" '):format(place)) .. why
    elseif inside[value] then
      return ('"%s" has itself in it'):format(there)
    elseif kind == 'table' then
      why = unfit(value, there, inside)
    elseif kind ~= 'string' and kind ~= 'number' and kind ~= 'boolean' then
      why = ('"%s" is a %s'):format(there, kind)
    end
    if why then
      return why
    end
  end
  inside[data] = nil
end

---Why this is no plain data, of which a part can be made, if it is none.
---@param data table
---@return string|nil why
function parts.unfit(data)
  return unfit(data, '', {})
end

---@param past_ms? integer what is longer ago is as if it were so long ago
function parts.pool(past_ms)
  return setmetatable({ by_text = {}, count = 0, past_ms = past_ms or PAST_MS }, Pool)
end

---@param data table is the pool's from now on
---@param text? string of the data, if the caller has it
---@return table part { id, data, text }
function Pool:part(data, text)
  text = text or parts.text(data)
  local part = self.by_text[text]
  if not part then
    self.count = self.count + 1
    part = { id = self.count, data = data, text = text, memo = {}, later = {}, renamed = {},
      serials = {} }
    self.by_text[text] = part
  end
  return part
end

---The part after so many ms.
function Pool:shift(part, ms)
  local shifted = part.later[ms]
  if not shifted then
    local number, text = nearer(ms, self.past_ms)
    shifted = self:part(map(part.data, text, number))
    part.later[ms] = shifted
  end
  return shifted
end

---The part with moments that are at least far_ms off so much later.
---@param server? table whose keyspace the part is
function Pool:put_off(part, ms, far_ms, server)
  local name = 'later ' .. ms
  local new = part.renamed[name]
  if not new then
    local number, text = changed(function(n)
      return parts.is_moment(n) and n - START_MS >= far_ms and n + ms or n
    end)
    local data = map(part.data, text, number)
    new = server and server:keyspace(data) or self:part(data)
    part.renamed[name] = new
  end
  return new
end

---The part with clients called by other letters.
---@param letters string "BAC": A is called B, and B is called A
function Pool:rename(part, letters)
  local renamed = part.renamed[letters]
  if not renamed then
    if not part.text:find('lk%-%u') then
      renamed = part
    else
      renamed = self:part(map(part.data, function(text)
        return (text:gsub('lk%-(%u)', function(letter)
          local place = letter:byte() - 64
          return 'lk-' .. (place <= #letters and letters:sub(place, place) or letter)
        end))
      end, same))
    end
    part.renamed[letters] = renamed
  end
  return renamed
end

---The fencing tokens in a part, each once.
function parts.tokens(part)
  local tokens = part.tokens
  if not tokens then
    tokens = {}
    local seen = {}
    for digits in part.text:gmatch(parts.DIGITS) do
      local n = #digits == 16 and tonumber(digits)
      if n and is_token(n) and not seen[n] then
        seen[n] = true
        tokens[#tokens + 1] = n
      end
    end
    part.tokens = tokens
  end
  return tokens
end

---A token as its distance from now.
function parts.token_text(token)
  return ('now%+d us'):format(token - START_MS * 1000)
end

---The part with other tokens.
---@param name string one for each different `change`
---@param change fun(token: number): number
---@param server? table whose keyspace the part is
function Pool:map_tokens(part, name, change, server)
  if #parts.tokens(part) == 0 then
    return part
  end
  local mapped = part.renamed[name]
  if not mapped then
    local function number(n)
      return is_token(n) and change(n) or n
    end
    local data = map(part.data, function(text)
      return #text < 16 and text or (text:gsub('%d+', function(digits)
        return #digits == 16 and ('%.0f'):format(number(tonumber(digits))) or nil
      end))
    end, number)
    mapped = server and server:keyspace(data) or self:part(data)
    part.renamed[name] = mapped
  end
  return mapped
end

-- Above it, serials are counted on: numbers of 15 digits are written with an exponent, and those of
-- 13 look like moments.
local SERIAL_MAX = 1e11

---The serial after this one: 1, 12, 123, so that each name begins like the next one of its client.
---A script that compares only how names begin takes them for one.
---@param serial integer 0 before the first
---@return integer
function parts.next_serial(serial)
  if serial == 0 or serial > SERIAL_MAX then
    return serial + 1
  end
  return serial * 10 + (#('%.0f'):format(serial) + 1) % 10
end

---The highest serial of this client's owners that stands in the part; its own part calls it "@".
---@return integer 0 if there is none
function parts.serial(part, letter)
  local highest = part.serials[letter]
  if not highest then
    highest = 0
    for serial in part.text:gmatch('lk%-' .. letter .. ':(%d+)') do
      highest = math.max(highest, tonumber(serial))
    end
    part.serials[letter] = highest
  end
  return highest
end

return parts
