-- SPDX-License-Identifier: Apache-2.0
-- Messages of the Debug Adapter Protocol: a header with their length, and JSON.
local cjson = require('cjson')
local poll = require('posix.poll')
local stdio = require('posix.stdio')

local json = require('latchkey.json')

local Wire = {}
Wire.__index = Wire

local LONGEST = 16 * 1024 * 1024

---@param input file* is read byte by byte, so that what is ready can be asked for
---@param output file*
function Wire.new(input, output)
  input:setvbuf('no')
  return setmetatable({ input = input, output = output, sent = 0 }, Wire)
end

---Is something there to be read?
---@return boolean
function Wire:is_ready()
  return poll.rpoll(stdio.fileno(self.input), 0) == 1
end

-- The length in the header of the next message; nil at the end of the input, or with what is wrong.
local function read_header(input)
  local length
  local line, broken = input:read('*l')
  while line do
    line = line:gsub('\r$', '')
    local name, value = line:match('^([^:]+):%s*(.-)%s*$')
    if line == '' and length then
      return length
    elseif not name then
      return nil, 'a header is "Content-Length: N"'
    elseif name:lower() == 'content-length' then
      length = value:find('^%d+$') and tonumber(value)
      if not length or length > LONGEST then
        return nil, 'no length of a message: ' .. value
      end
    end
    line, broken = input:read('*l')
  end
  if broken then
    return nil, 'the input cannot be read: ' .. broken
  end
  return nil, length and 'the input ends within a header' or nil
end

---@return table|nil message nil at the end of the input
---@return string|nil why it is no message of the protocol
function Wire:read()
  local length, why = read_header(self.input)
  if not length then
    return nil, why
  end
  local bytes = length > 0 and self.input:read(length) or ''
  if not bytes or #bytes < length then
    return nil, 'the input ends within a message'
  end
  local good, message = pcall(cjson.decode, bytes)
  if not good or type(message) ~= 'table' or message.type ~= 'request'
    or type(message.command) ~= 'string' or type(message.seq) ~= 'number' then
    return nil, 'no request: ' .. bytes:sub(1, 60)
  end
  return message
end

local function send(self, message)
  self.sent = self.sent + 1
  message.seq = self.sent
  local bytes = json.encode(message)
  self.output:write(('Content-Length: %d\r\n\r\n'):format(#bytes), bytes)
  self.output:flush()
end

---@param event string
---@param body table|nil
function Wire:event(event, body)
  send(self, { type = 'event', event = event, body = body })
end

---@param request table
---@param body table|nil
function Wire:answer(request, body)
  send(self, { type = 'response', request_seq = request.seq, command = request.command,
    success = true, body = body })
end

---@param request table
---@param why string for people
function Wire:refuse(request, why)
  send(self, { type = 'response', request_seq = request.seq, command = request.command,
    success = false, message = why, body = { error = { id = 1, format = why:gsub('[{}]', '_'),
      showUser = true } } })
end

return Wire
