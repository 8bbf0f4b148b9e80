-- SPDX-License-Identifier: Apache-2.0
-- Replies of a server or of the mock: as redis-cli shows them, and for JSON.
local cjson = require('cjson')

local text = require('latchkey.text')

local replies = {}

---@param reply any integer (cdata where no number of Lua is it), string, { ok }, { err }, nil or
---  null, or array with .n
---@param null any what stands for nothing inside arrays
---@param indent? string
---@return string without a line end
function replies.show(reply, null, indent)
  indent = indent or ''
  if reply == nil or reply == null then
    return '(nil)'
  elseif type(reply) == 'number' or type(reply) == 'cdata' then
    return '(integer) ' .. text.number(reply)
  elseif type(reply) == 'string' then
    return text.quoted(reply)
  elseif reply.ok then
    return text.safe(reply.ok)
  elseif reply.err then
    return '(error) ' .. text.safe(reply.err)
  elseif reply.n == 0 then
    return '(empty array)'
  end
  local lines, width = {}, #tostring(reply.n)
  for i = 1, reply.n do
    local number = ('%' .. width .. 'd) '):format(i)
    local shown = replies.show(reply[i], null, indent .. (' '):rep(#number))
    lines[i] = (i > 1 and indent or '') .. number .. shown
  end
  return table.concat(lines, '\n')
end

---@param reply any
---@param null any
---@return any value that report.json takes
function replies.plain(reply, null)
  if reply == nil or reply == null then
    return cjson.null
  elseif type(reply) == 'string' then
    return text.utf8(reply)
  elseif type(reply) == 'cdata' then
    return text.number(reply)
  elseif type(reply) ~= 'table' or not reply.n then
    return reply
  end
  local array = {}
  for i = 1, reply.n do
    array[i] = replies.plain(reply[i], null)
  end
  return array
end

return replies
