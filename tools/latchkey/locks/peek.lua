-- SPDX-License-Identifier: Apache-2.0
-- A short look at many keys in one round trip: <latchkey/peek.h>.
local ffi = require('ffi')

-- Declares and loads the library.
require('latchkey')

local lib = debug.getregistry()['latchkey.library']
local raised = ffi.new('lk_error')

local peek = {}

-- LK_PEEK_MAX
local MAX = 1000

local function failure(status, message)
  return { status = ffi.string(lib.lk_status_name(status)), message = message,
    hint = ffi.string(lib.lk_status_hint(status)) }
end

-- What the server says of one key.
local function refusal(text)
  if text:find('^WRONGTYPE') then
    return false
  end
  return failure(text:find('^NOPERM') and lib.LK_DENIED or lib.LK_CLUSTERDOWN, text)
end

-- An integer, a string, or an error; false for nothing, and for a key of another type.
local function value_of(reply)
  if reply == nil then
    return failure(lib.LK_CLUSTERDOWN, 'the slot is on its way, and no server has it')
  end
  local kind = tonumber(lib.lk_reply_type_of(reply))
  if kind == lib.LK_REPLY_INTEGER then
    return tonumber(lib.lk_reply_integer(reply))
  elseif kind ~= lib.LK_REPLY_STRING and kind ~= lib.LK_REPLY_ERROR then
    return false
  end
  local bytes = lib.lk_reply_bytes(reply)
  local text = ffi.string(bytes.data, bytes.len)
  return kind == lib.LK_REPLY_STRING and text or refusal(text)
end

local function look(client, command, keys, from, count)
  local array, replies = ffi.new('lk_bytes[?]', count), ffi.new('lk_reply *[?]', count)
  for i = 1, count do
    array[i - 1].data, array[i - 1].len = keys[from + i], #keys[from + i]
  end
  local status = lib.lk_peek(client.pointer, command, array, count, replies, raised)
  if tonumber(status) ~= lib.LK_OK then
    return nil, failure(status, ffi.string(raised.message))
  end
  return replies
end

---@param client latchkey.client
---@param command string "HRANDFIELD", "STRLEN" ...: one that answers an integer or a string
---@param keys string[]
---@return table|nil values by place: integer, string, or false; an error that is about this key
---@return latchkey.error|nil err
function peek.all(client, command, keys)
  local values = {}
  for from = 0, #keys - 1, MAX do
    local count = math.min(MAX, #keys - from)
    local replies, err = look(client, command, keys, from, count)
    if not replies then
      return nil, err
    end
    for i = 1, count do
      values[from + i] = value_of(replies[i - 1])
      lib.lk_reply_free(replies[i - 1])
    end
  end
  return values
end

return peek
