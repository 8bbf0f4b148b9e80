-- SPDX-License-Identifier: Apache-2.0
-- What clients answer who were asked what they hold and what they wait for. It is written by
-- others, and is taken apart with care.
local cjson = require('cjson.safe').new()

local kinds = require('latchkey.locks.kinds')
local names = require('latchkey.script.names')

-- Answers are flat.
cjson.decode_max_depth(5)

local answer = {}

local function text_of(value)
  return type(value) == 'string' and value or nil
end

-- In bytes again: JSON has them as code points of the same numbers.
local function bytes_of(value)
  local text = text_of(value)
  return text and (text:gsub('([\194\195])([\128-\191])', function(first, second)
    return string.char((first:byte() - 194) * 64 + second:byte())
  end))
end

local function number_of(value)
  return type(value) == 'number' and value - value == 0 and value or nil
end

-- The number of a database.
local function database_of(value)
  local number = number_of(value)
  return number and number >= 0 and number < 2 ^ 31 and number % 1 == 0 and number or nil
end

-- A kind that locks of this version have; read and write are the two of one.
local function kind_of(value)
  return (kinds.ROWS[value] or value == 'read' or value == 'write') and value or nil
end

-- In bytes; nil for what no lock is called.
local function name_of(value)
  local name = bytes_of(value)
  return name and names.check(name) and name or nil
end

-- The entries of a list that have a kind and a name. What a later version may have beside them is
-- passed over.
local function list_of(value)
  local list = {}
  for _, entry in ipairs(type(value) == 'table' and value or {}) do
    local kind = type(entry) == 'table' and kind_of(text_of(entry.kind))
    local name = kind and name_of(entry.name)
    if name then
      list[#list + 1] = { kind = kind, name = name, owner = text_of(entry.owner),
        caller = number_of(entry.caller), count = number_of(entry.count),
        token = number_of(entry.token), place = number_of(entry.place),
        held_ms = number_of(entry.held_ms), left_ms = number_of(entry.left_ms),
        waited_ms = number_of(entry.waited_ms), rest_ms = number_of(entry.rest_ms) }
    end
  end
  return list
end

---What an answer says; nil for what is none.
---@param payload string
---@return table|nil answer { client, uuid, within, db, waits, holds }; within: owners' names, or
---  nil; db: the database of its locks, nil of an older client
function answer.read(payload)
  local document = cjson.decode(payload)
  if type(document) ~= 'table' or document.answer ~= 1 then
    return nil
  end
  local uuid, name = text_of(document.uuid), text_of(document.client)
  if not uuid or not name or not uuid:find('^%x+%-[%x%-]+$') then
    return nil
  end
  local within = text_of(document.within)
  local owners = within and {} or nil
  for owner in (within or ''):gmatch('%S+') do
    owners[#owners + 1] = owner
  end
  return { uuid = uuid, client = name, within = owners, db = database_of(document.db),
    waits = list_of(document.waits), holds = list_of(document.holds) }
end

return answer
