-- SPDX-License-Identifier: Apache-2.0
-- Values on their way between a script, the commands and a client.
--
-- Commands answer in the form that scripts see: number, string, false for nil, { ok = text }, and
-- arrays of these. A client sees nil as nil (`null` inside arrays), and every array with its n.
local cjson = require('cjson')

local lua51 = require('latchkey.mock.lua51')

local convert = {}

convert.null = cjson.null

local DEEPEST = 100
local RESP3 = { double = 'number', map = 'table', set = 'table', big_number = 'string',
  verbatim_string = 'table' }
local RESP3_NAMES = { 'double', 'map', 'set', 'big_number', 'verbatim_string' }

---What a number or string looks like as an argument: 17 digits, so integers to 2^53 are exact.
---@return string|nil text nil: not sendable
function convert.argument(value)
  local kind = type(value)
  if kind == 'string' then
    return value
  elseif kind == 'number' then
    return value == value and ('%.17g'):format(value) or lua51.text(value)
  end
  return nil
end

---A command's reply as a client of the older protocol sees it: a map is an array, and so is a set.
function convert.to_client(reply)
  if reply == false then
    return nil
  elseif type(reply) ~= 'table' or reply.ok then
    return reply
  end
  reply = reply.map or reply.set or reply
  local array = { n = #reply }
  for i = 1, #reply do
    local element = convert.to_client(reply[i])
    array[i] = element == nil and convert.null or element
  end
  return array
end

-- C's cast from double to a 64-bit integer; what does not fit gives the smallest.
local function to_integer(n)
  if n ~= n or n >= 2 ^ 63 or n < -2 ^ 63 then
    return -2 ^ 63
  end
  return (n < 0 and math.ceil(n) or math.floor(n)) + 0
end

-- Texts outside bulk strings are lines: they end at a NUL and have no line breaks.
local function one_line(text)
  return (text:gsub('%z.*', ''):gsub('[\r\n]', ' '))
end

---An error's text as it travels.
---@param text string
---@return string
function convert.error_text(text)
  return one_line((text:gsub('%z.*', ''):gsub('[\r\n]+$', '')))
end

local from_script

local function from_table(value, depth)
  if depth > DEEPEST then
    return nil, ('MOCK a reply nested deeper than %d is not modelled'):format(DEEPEST)
  end
  local err, ok = rawget(value, 'err'), rawget(value, 'ok')
  if type(err) == 'string' then
    return { err = convert.error_text(err) }
  elseif type(ok) == 'string' then
    return { ok = one_line(ok) }
  end
  for _, name in ipairs(RESP3_NAMES) do
    if type(rawget(value, name)) == RESP3[name] then
      return nil, ('MOCK a reply of the kind { %s = ... } is not modelled'):format(name)
    end
  end

  local array, n = {}, 0
  while rawget(value, n + 1) ~= nil do
    n = n + 1
    local element, why = from_script(rawget(value, n), depth + 1)
    if why then
      return nil, why
    end
    array[n] = element == nil and convert.null or element
  end
  array.n = n
  return array
end

-- Integers lose their fraction, true is 1, false and all that has no form on the wire is nil, and
-- an array ends at its first nil.
function from_script(value, depth)
  local kind = type(value)
  if kind == 'number' then
    return to_integer(value)
  elseif kind == 'string' then
    return value
  elseif kind == 'boolean' then
    return value and 1 or nil
  elseif kind == 'table' then
    return from_table(value, depth)
  end
  return nil
end

---What a script returned, as a client sees it.
---@return any reply
---@return string|nil err
function convert.from_script(value)
  local reply, why = from_script(value, 1)
  if type(reply) == 'table' and reply.err then
    return nil, reply.err
  end
  return reply, why
end

return convert
