-- SPDX-License-Identifier: Apache-2.0
-- The Redis protocol as a server speaks it: commands out of bytes, bytes out of replies.
local convert = require('latchkey.mock.convert')
local inline = require('latchkey.mock.inline')

local find, match, sub, format = string.find, string.match, string.sub, string.format
local concat = table.concat
local null = convert.null

local resp = {}

-- A line that tells a length or is a command of its own; arguments of a command; bytes of an
-- argument; and what a client may send before it has said its password.
local MAX_LINE, MAX_WORDS, MAX_BYTES = 65536, 1048576, 536870912
local MAX_WORDS_UNKNOWN, MAX_BYTES_UNKNOWN = 10, 16384

local LENGTHS = {}
for n = 0, 1024 do
  LENGTHS[tostring(n)] = n
end

local Parser = {}
Parser.__index = Parser

---Commands out of bytes that come in any pieces.
function resp.parser()
  return setmetatable({ buffer = '', at = 1, parts = {}, waiting = 0, need = 1, argv = nil,
    left = 0, length = nil }, Parser)
end

---@param bytes string
function Parser:append(bytes)
  if self.at > #self.buffer and self.waiting == 0 then
    self.buffer, self.at = bytes, 1
  else
    self.parts[#self.parts + 1] = bytes
    self.waiting = self.waiting + #bytes
  end
end

-- Pieces are joined when there may be enough of them: a large argument costs no copy for each.
local function has_enough(self)
  local there = #self.buffer - self.at + 1
  if there + self.waiting < self.need then
    return false
  elseif self.waiting > 0 then
    self.buffer = sub(self.buffer, self.at) .. concat(self.parts)
    self.at, self.parts, self.waiting = 1, {}, 0
  end
  return #self.buffer >= self.at
end

-- A line from behind its first byte. Its end is a carriage return and whatever byte comes next.
local function read_length(self, too_big)
  local buffer, at = self.buffer, self.at
  local stop = find(buffer, '\r', at, true)
  if not stop or stop == #buffer then
    self.need = #buffer - at + 2
    return nil, not stop and #buffer - at + 1 > MAX_LINE and too_big or nil
  end
  local text = sub(buffer, at + 1, stop - 1)
  self.at = stop + 2
  local length = LENGTHS[text]
  if not length and (text == '0' or find(text, '^%-?[1-9]%d*$')) and #text <= 12 then
    length = tonumber(text)
  end
  return length or false
end

local function read_inline(self)
  local stop = find(self.buffer, '\n', self.at, true)
  if not stop then
    self.need = #self.buffer - self.at + 2
    return nil, #self.buffer - self.at + 1 > MAX_LINE and 'too big inline request' or nil
  end
  local line = sub(self.buffer, self.at, stop - 1):gsub('\r$', '')
  self.at = stop + 1
  local argv = inline.split(line)
  return argv, not argv and 'unbalanced quotes in request' or nil
end

-- One that is short and has come whole, as most have.
local function read_short(self)
  local buffer = self.buffer
  local text, at = match(buffer, '^%$(%d+)\r.()', self.at)
  local length = LENGTHS[text]
  if length and at + length < #buffer then
    self.at = at + length + 2
    return sub(buffer, at, at + length - 1)
  end
end

-- One argument, or nil when its end has not come.
local function read_argument(self, trusted)
  local length = self.length
  local short = not length and read_short(self)
  if short then
    return short
  end
  if not length then
    local mark = sub(self.buffer, self.at, self.at)
    if mark == '' then
      self.need = 1
      return nil
    elseif mark ~= '$' then
      return nil, ("expected '$', got '%s'"):format(mark)
    end
    local wrong
    length, wrong = read_length(self, 'too big bulk count string')
    if length == nil then
      return nil, wrong
    elseif not length or length < 0 or length > MAX_BYTES then
      return nil, 'invalid bulk length'
    elseif not trusted and length > MAX_BYTES_UNKNOWN then
      return nil, 'unauthenticated bulk length'
    end
    self.length = length
  end
  local at = self.at
  if #self.buffer - at + 1 < length + 2 then
    self.need = length + 2
    return nil
  end
  self.at, self.length = at + length + 2, nil
  return sub(self.buffer, at, at + length - 1)
end

local function begin_array(self, trusted)
  local count, wrong = read_length(self, 'too big mbulk count string')
  if count == nil then
    return false, wrong
  elseif not count or count > MAX_WORDS then
    return false, 'invalid multibulk length'
  elseif not trusted and count > MAX_WORDS_UNKNOWN then
    return false, 'unauthenticated multibulk length'
  end
  if count > 0 then
    self.argv, self.left = {}, count
  end
  return true
end

---The next command.
---@param trusted boolean has the client said its password, if there is one?
---@return string[]|nil argv nil when its end has not come; without words: nothing was asked
---@return string|nil wrong what is no protocol; nothing more can be read
function Parser:next(trusted)
  self.need = math.max(self.need, 1)
  while has_enough(self) do
    self.need = 1
    local argv = self.argv
    if not argv then
      if sub(self.buffer, self.at, self.at) ~= '*' then
        return read_inline(self)
      end
      local begun, wrong = begin_array(self, trusted)
      if not begun then
        return nil, wrong
      end
    else
      local n = #argv
      while self.left > 0 do
        local argument, wrong = read_argument(self, trusted)
        if not argument then
          if wrong then
            return nil, wrong
          end
          break
        end
        n = n + 1
        argv[n] = argument
        self.left = self.left - 1
      end
      if self.left == 0 then
        self.argv = nil
        return argv
      end
    end
  end
  return nil
end

---@return boolean is anything left that has not been read?
function Parser:is_empty()
  return self.argv == nil and self.waiting == 0 and self.at > #self.buffer
end

local function bulk(text)
  return '$' .. #text .. '\r\n' .. text .. '\r\n'
end

-- What only the newer protocol has; the older one has an array or a text in its place.
local function add_typed(parts, reply, version, add)
  local text = reply.double or reply.verbatim
  if text then
    parts[#parts + 1] = version ~= 3 and bulk(text) or reply.double and ',' .. text .. '\r\n'
      or ('=%d\r\ntxt:%s\r\n'):format(#text + 4, text)
    return true
  end
  local list = reply.map or reply.set or reply.push
  if not list then
    return false
  end
  local mark, count = '*', list.n or #list
  if version == 3 then
    mark = reply.map and '%' or reply.set and '~' or '>'
    count = reply.map and count / 2 or count
  end
  parts[#parts + 1] = mark .. count .. '\r\n'
  for i = 1, list.n or #list do
    add(parts, list[i], version)
  end
  return true
end

local function add(parts, reply, version)
  local kind = type(reply)
  if kind == 'string' then
    parts[#parts + 1] = bulk(reply)
  elseif kind == 'number' then
    parts[#parts + 1] = format(':%.0f\r\n', reply)
  elseif reply == nil or reply == false or reply == null then
    parts[#parts + 1] = version == 3 and '_\r\n' or '$-1\r\n'
  elseif reply.ok then
    parts[#parts + 1] = '+' .. reply.ok .. '\r\n'
  elseif reply.err then
    parts[#parts + 1] = '-' .. convert.error_text(reply.err) .. '\r\n'
  elseif reply.bytes then
    parts[#parts + 1] = reply.bytes
  elseif reply == resp.NULL_ARRAY then
    parts[#parts + 1] = version == 3 and '_\r\n' or '*-1\r\n'
  elseif not add_typed(parts, reply, version, add) then
    local n = reply.n or #reply
    parts[#parts + 1] = '*' .. n .. '\r\n'
    for i = 1, n do
      add(parts, reply[i], version)
    end
  end
end

-- No array, where an array is asked for: older clients see the difference.
resp.NULL_ARRAY = {}

---A reply as bytes. Beside what scripts and commands answer: { err = text }, { map = list },
---{ set = list }, { push = list }, { double = text }, { verbatim = text }, { bytes = text } as it
---is.
---@param reply any
---@param version 2|3 of the protocol
---@return string
function resp.encode(reply, version)
  local kind = type(reply)
  if kind == 'number' then
    return format(':%.0f\r\n', reply)
  elseif kind == 'string' then
    return bulk(reply)
  end
  local parts = {}
  add(parts, reply, version)
  return concat(parts)
end

---@param text string
---@return string
function resp.error(text)
  return '-' .. convert.error_text(text) .. '\r\n'
end

return resp
