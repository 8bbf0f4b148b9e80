-- SPDX-License-Identifier: Apache-2.0
-- The server's library `cmsgpack`: values as MessagePack, and back.
local ieee = require('latchkey.mock.ieee')

local cmsgpack = { _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0',
  _COPYRIGHT = 'Copyright (C) 2012, Salvatore Sanfilippo',
  _DESCRIPTION = 'MessagePack C implementation for Lua' }

-- What is nested deeper is packed as nil.
local DEEPEST = 16

local function big(letter, number, size)
  return string.char(letter) .. ieee.from_integer(number, size):reverse()
end

local function pack_integer(n)
  if n > 127 then
    return n <= 0xff and big(0xcc, n, 1) or n <= 0xffff and big(0xcd, n, 2)
      or n <= 0xffffffff and big(0xce, n, 4) or big(0xcf, n, 8)
  elseif n >= -32 then
    return string.char(n % 256)
  end
  return n >= -0x80 and big(0xd0, n, 1) or n >= -0x8000 and big(0xd1, n, 2)
    or n >= -0x80000000 and big(0xd2, n, 4) or big(0xd3, n, 8)
end

local function pack_number(n)
  if n % 1 == 0 and n >= -2 ^ 63 and n < 2 ^ 63 then
    return pack_integer(n)
  end
  local float = ieee.from_float(n)
  if ieee.to_float(float) == n then
    return '\202' .. float:reverse()
  end
  return '\203' .. ieee.from_double(n):reverse()
end

-- The beginning of what has so many parts; `fixed` is for a few, up to `few`.
local function head(count, few, fixed, letters)
  if count <= few then
    return string.char(fixed + count)
  elseif letters[1] and count <= 0xff then
    return big(letters[1], count, 1)
  end
  return count <= 0xffff and big(letters[2], count, 2) or big(letters[3], count, 4)
end

local TEXT, ARRAY, MAP = { 0xd9, 0xda, 0xdb }, { false, 0xdc, 0xdd }, { false, 0xde, 0xdf }

local function is_array(value)
  local count, most = 0, 0
  for key in next, value do
    if type(key) ~= 'number' or key <= 0 or key % 1 ~= 0 then
      return false
    end
    count, most = count + 1, math.max(most, key)
  end
  return count == most
end

local pack_value

local function pack_table(value, depth, out)
  if is_array(value) then
    local count = #value
    out[#out + 1] = head(count, 15, 0x90, ARRAY)
    for i = 1, count do
      pack_value(value[i], depth + 1, out)
    end
    return
  end
  local at, count = #out + 1, 0
  out[at] = ''
  for key, element in next, value do
    count = count + 1
    pack_value(key, depth + 1, out)
    pack_value(element, depth + 1, out)
  end
  out[at] = head(count, 15, 0x80, MAP)
end

function pack_value(value, depth, out)
  local kind = type(value)
  if kind == 'string' then
    out[#out + 1] = head(#value, 31, 0xa0, TEXT) .. value
  elseif kind == 'number' then
    out[#out + 1] = pack_number(value)
  elseif kind == 'boolean' then
    out[#out + 1] = value and '\195' or '\194'
  elseif kind == 'table' and depth < DEEPEST then
    pack_table(value, depth, out)
  else
    out[#out + 1] = '\192'
  end
end

function cmsgpack.pack(...)
  local count, out = select('#', ...), {}
  if count == 0 then
    error("bad argument #0 to 'pack' (MessagePack pack needs input.)", 2)
  end
  for i = 1, count do
    pack_value((select(i, ...)), 0, out)
  end
  return table.concat(out)
end

-- Reads from a text; what is wrong is thrown as a plain text.
local Reader = {}
Reader.__index = Reader

function Reader:take(count)
  if self.at + count - 1 > #self.text then
    error({ why = 'Missing bytes in input.' })
  end
  local bytes = self.text:sub(self.at, self.at + count - 1)
  self.at = self.at + count
  return bytes
end

function Reader:number(size, is_signed)
  return ieee.to_integer(self:take(size):reverse(), is_signed)
end

function Reader:array(count)
  local list = {}
  for i = 1, count do
    list[i] = self:value()
  end
  return list
end

function Reader:map(count)
  local map = {}
  for _ = 1, count do
    local key = self:value()
    local value = self:value()
    if key == nil or key ~= key then
      error({ why = 'table index is ' .. (key == nil and 'nil' or 'NaN'), has_no_place = true })
    end
    map[key] = value
  end
  return map
end

local READ = {
  [0xc0] = function()
    return nil
  end,
  [0xc2] = function()
    return false
  end,
  [0xc3] = function()
    return true
  end,
  [0xca] = function(reader)
    return ieee.to_float(reader:take(4):reverse())
  end,
  [0xcb] = function(reader)
    return ieee.to_double(reader:take(8):reverse())
  end,
}

local function add(first, sizes, read)
  for i, size in ipairs(sizes) do
    READ[first + i - 1] = function(reader)
      return read(reader, size)
    end
  end
end

-- Those of 8 bytes are signed on a server, too.
add(0xcc, { 1, 2, 4, 8 }, function(reader, size)
  return reader:number(size, size == 8)
end)
add(0xd0, { 1, 2, 4, 8 }, function(reader, size)
  return reader:number(size, true)
end)
local function read_text(reader, size)
  return reader:take(reader:number(size))
end
add(0xd9, { 1, 2, 4 }, read_text)
add(0xdc, { 2, 4 }, function(reader, size)
  return reader:array(reader:number(size))
end)
add(0xde, { 2, 4 }, function(reader, size)
  return reader:map(reader:number(size))
end)

function Reader:value()
  local byte = self:take(1):byte()
  if byte < 0x80 then
    return byte
  elseif byte < 0x90 then
    return self:map(byte - 0x80)
  elseif byte < 0xa0 then
    return self:array(byte - 0x90)
  elseif byte < 0xc0 then
    return self:take(byte - 0xa0)
  elseif byte >= 0xe0 then
    return byte - 256
  elseif not READ[byte] then
    error({ why = 'Bad data format in input.' })
  end
  return READ[byte](self)
end

local function read_all(text, limit, offset, with_offset)
  local reader = setmetatable({ text = text, at = offset + 1 }, Reader)
  local values, count = {}, 0
  while reader.at <= #text and count < limit do
    count = count + 1
    values[count] = reader:value()
  end
  if with_offset then
    local next_offset = reader.at > #text and -1 or reader.at - 1
    return { n = count + 1, next_offset, unpack(values, 1, count) }
  end
  values.n = count
  return values
end

local function checked_text(name, ...)
  local text = ...
  if type(text) ~= 'string' and type(text) ~= 'number' then
    error(("bad argument #1 to '%s' (string expected, got %s)"):format(name,
      select('#', ...) == 0 and 'no value' or type(text)), 3)
  end
  return tostring(text)
end

local function unpack_from(text, limit, offset, with_offset)
  if offset < 0 or limit < 0 then
    error(('Invalid request to unpack with offset of %d and limit of %d.')
      :format(offset, #text), 3)
  elseif offset > #text then
    error(('Start offset %d greater than input length %d.'):format(offset, #text), 3)
  end
  local ok, values = pcall(read_all, text, limit, offset, with_offset)
  if not ok then
    error(type(values) == 'table' and values.why or values,
      type(values) == 'table' and values.has_no_place and 0 or 3)
  end
  return values
end

-- C cuts what is no integer.
local function integer(value)
  local number = tonumber(value)
  return number and (number < 0 and math.ceil(number) or math.floor(number))
end

function cmsgpack.unpack(...)
  local text = checked_text('unpack', ...)
  local values = unpack_from(text, math.huge, 0, false)
  return unpack(values, 1, values.n)
end

function cmsgpack.unpack_one(...)
  local text = checked_text('unpack_one', ...)
  local values = unpack_from(text, 1, integer((select(2, ...))) or 0, true)
  return unpack(values, 1, values.n)
end

function cmsgpack.unpack_limit(...)
  local limit = integer((select(2, ...)))
  if not limit then
    error(("bad argument #2 to 'unpack_limit' (number expected, got %s)")
      :format(select('#', ...) < 2 and 'no value' or type((select(2, ...)))), 2)
  end
  local text = checked_text('unpack_limit', ...)
  local offset = integer((select(3, ...))) or 0
  local is_all = limit == 0 and offset == 0
  local values = unpack_from(text, is_all and math.huge or limit, offset, not is_all)
  return unpack(values, 1, values.n)
end

return cmsgpack
