-- SPDX-License-Identifier: Apache-2.0
-- What the debugger shows: values of Lua, the keyspace beside what it was, lines of the source.
local text = require('latchkey.text')

local show = {}

local DEEPEST = 6
-- So many values of a table are shown: one that holds itself a few times has no end of them.
local MOST_VALUES = 10000

local WORD = '^[%a_][%w_]*$'

local function sorted_keys(value)
  local keys = {}
  for key in next, value do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(one, other)
    if type(one) == type(other) and (type(one) == 'number' or type(one) == 'string') then
      return one < other
    elseif type(one) ~= type(other) then
      return type(one) < type(other)
    end
    return ('%p'):format(one) < ('%p'):format(other)
  end)
  return keys
end

---The entries of a table: its array first. What a metatable would answer is none of them.
---@param value table
---@return table[] entries { name, value, index = of the array }
function show.entries(value)
  local list, count = {}, 0
  while rawget(value, count + 1) ~= nil do
    count = count + 1
    list[count] = { name = ('[%d]'):format(count), index = count,
      value = rawget(value, count) }
  end
  for _, key in ipairs(sorted_keys(value)) do
    local in_array = type(key) == 'number' and key % 1 == 0 and key >= 1 and key <= count
    if not in_array then
      local name = type(key) == 'string' and key:find(WORD) and key
      list[#list + 1] = { name = name or '[' .. show.value(key) .. ']', value = rawget(value, key) }
    end
  end
  return list
end

local function show_table(value, depth, room)
  if depth >= DEEPEST or room.left <= 0 then
    return '{...}'
  end
  local parts = {}
  for i, entry in ipairs(show.entries(value)) do
    if room.left <= 0 then
      parts[i] = '...'
      break
    end
    room.left = room.left - 1
    local shown = show.value(entry.value, depth + 1, room)
    parts[i] = entry.index and shown or entry.name .. ' = ' .. shown
  end
  return '{' .. table.concat(parts, ', ') .. '}'
end

---A value as a script has it.
---@param value any
---@param depth? integer
---@param room? { left: integer } how many more values may be shown
---@return string
function show.value(value, depth, room)
  if type(value) == 'string' then
    return text.quoted(value)
  elseif type(value) == 'number' then
    return text.number(value)
  elseif type(value) == 'table' then
    return show_table(value, depth or 0, room or { left = MOST_VALUES })
  elseif type(value) == 'function' then
    local info = debug.getinfo(value, 'S')
    return info.what == 'Lua' and ('function (line %d)'):format(info.linedefined) or 'function'
  end
  return tostring(value)
end

---What is left out of a text that is longer than `most`; 0: nothing.
---@param shown string
---@param most integer
---@return string
function show.cut(shown, most)
  if most > 0 and #shown > most then
    return shown:sub(1, most) .. ' ...'
  end
  return shown
end

local PAIRED = { hash = true }

local function value_of(record)
  local value, parts = record.value, {}
  if type(value) ~= 'table' then
    return show.value(value)
  end
  for i, element in ipairs(value) do
    if record.type == 'zset' then
      parts[i] = ('%s %.17g'):format(text.quoted(element[1]), element[2])
    elseif not PAIRED[record.type] then
      parts[i] = show.value(element)
    elseif i % 2 == 1 then
      parts[#parts + 1] = ('%s=%s'):format(text.safe(element),
        show.value(value[i + 1]))
    end
  end
  return '{' .. table.concat(parts, ', ') .. '}'
end

---A record of the mock.
---@param record table|nil
---@param now_ms integer
---@return string
function show.record(record, now_ms)
  if not record then
    return '(none)'
  end
  local left = record.expires_at and ('  %d ms left'):format(record.expires_at - now_ms) or ''
  return ('%s  %s%s'):format(record.type, value_of(record), left)
end

local function live(record, clock)
  return record and not (record.expires_at and clock.begun > record.expires_at) and record or nil
end

---Every key that is there, or was when the script began.
---@param world table
---@param before table name -> record, when it began
---@return table[] keys { name, record, was, mark = " ", "+", "~" or "-" }
function show.keyspace(world, before)
  local seen, keys = {}, {}
  for _, records in ipairs({ world.store.keys, before }) do
    for name in pairs(records) do
      local record = live(world.store.keys[name], world.clock)
      local was = live(before[name], world.clock)
      if not seen[name] and (record or was) then
        seen[name] = true
        keys[#keys + 1] = { name = name, record = record, was = was,
          mark = record == was and ' ' or not was and '+' or not record and '-' or '~' }
      end
    end
  end
  table.sort(keys, function(one, other)
    return one.name < other.name
  end)
  return keys
end

---@param words string[]
---@return string command quoted where a word would not be read as one
function show.command(words)
  local shown = {}
  for i, word in ipairs(words) do
    shown[i] = word:find('^[%w_:{}.-]+$') and word or text.quoted(word)
  end
  return table.concat(shown, ' ')
end

---@param source string
---@return string[]
function show.lines(source)
  local lines = {}
  for line in (source:gsub('\n$', '') .. '\n'):gmatch('(.-)\r?\n') do
    lines[#lines + 1] = line
  end
  return lines
end

return show
