-- SPDX-License-Identifier: Apache-2.0
-- Values of Lua as the C calls take them, and what these answer as values of Lua.
local cjson = require('cjson')
local ffi = require('ffi')

local lib = require('latchkey.library').lib

local values = {
  null = cjson.null,
  -- What every call of the library writes its failure to.
  raised = ffi.new('lk_error'),
}

-- ---- to C ---------------------------------------------------------------------------------------

-- A C structure of options with the given fields set; its first member is its size.
function values.options(kind, fields)
  local options = ffi.new(kind)
  for name, value in pairs(fields) do
    options[name] = value
  end
  options.size = ffi.sizeof(kind)
  return options
end

-- An argument as text; nil for what is none.
local function argument_text(value)
  if type(value) == 'number' then
    return value % 1 == 0 and ('%.0f'):format(value) or nil
  elseif ffi.istype('int64_t', value) then
    return (tostring(value):gsub('LL$', ''))
  end
  return type(value) == 'string' and value or nil
end

-- The lk_bytes point into strings, which must live as long as the array does.
local kept = setmetatable({}, { __mode = 'k' })

function values.bytes(list)
  local array, texts = ffi.new('lk_bytes[?]', #list), {}
  for i, value in ipairs(list) do
    texts[i] = argument_text(value)
      or error(('value %d is no string and no integer: %s'):format(i, tostring(value)), 3)
    array[i - 1].data, array[i - 1].len = texts[i], #texts[i]
  end
  kept[array] = texts
  return array
end

-- The words of a command, given one by one, or as a list that unpack() may have no room for.
function values.words(...)
  local first = ...
  return type(first) == 'table' and first or { ... }
end

-- ---- from C -------------------------------------------------------------------------------------

---@param bytes ffi.cdata* lk_bytes
---@return string
function values.from_bytes(bytes)
  return ffi.string(bytes.data, bytes.len)
end

-- A number of Lua, where that is exactly this one.
local function from_integer(integer)
  local number = tonumber(integer)
  return math.abs(number) < 2 ^ 63 and ffi.cast('int64_t', number) == integer and number or integer
end

local function from_reply(reply)
  local kind = tonumber(lib.lk_reply_type_of(reply))
  if kind == lib.LK_REPLY_INTEGER then
    return from_integer(lib.lk_reply_integer(reply))
  elseif kind == lib.LK_REPLY_STRING then
    return values.from_bytes(lib.lk_reply_bytes(reply))
  elseif kind == lib.LK_REPLY_STATUS then
    return { ok = values.from_bytes(lib.lk_reply_bytes(reply)) }
  elseif kind == lib.LK_REPLY_ERROR then
    return { err = values.from_bytes(lib.lk_reply_bytes(reply)) }
  elseif kind == lib.LK_REPLY_ARRAY then
    local array = { n = tonumber(lib.lk_reply_count(reply)) }
    for i = 1, array.n do
      array[i] = from_reply(lib.lk_reply_at(reply, i - 1))
    end
    return array
  end
  return values.null
end

---@class latchkey.error
---@field status string "LK_BUSY"
---@field message string
---@field hint string what to do about it
---@field retriable boolean
---@field code? string first word of the server's error
---@field script? string name of the script that failed
---@field line? integer its line

local function text_or_nil(chars)
  return chars[0] ~= 0 and ffi.string(chars) or nil
end

-- A server that has as many clients as it takes runs, at that address: the same words as those of
-- `latchkey exec` (c/cli/exit_of.c).
local FULL = 'max number of clients'
local FULL_HINT = "raise the server's maxclients, or end clients that it need not have: CLIENT LIST"

local function hint_of(status, message)
  if status == lib.LK_UNREACHABLE and message:find(FULL, 1, true) then
    return FULL_HINT
  end
  return ffi.string(lib.lk_status_hint(status))
end

---`...` when the call succeeded, else nil and the error.
---@param status integer that it returned
---@return any
---@return latchkey.error|nil err
function values.outcome(status, ...)
  status = tonumber(status)
  if status == lib.LK_OK then
    return ...
  end
  local raised = values.raised
  local message = ffi.string(raised.message)
  return nil, {
    status = ffi.string(lib.lk_status_name(status)),
    message = message,
    hint = hint_of(status, message),
    retriable = lib.lk_status_is_retriable(status),
    code = text_or_nil(raised.code),
    script = text_or_nil(raised.script),
    line = raised.line > 0 and raised.line or nil,
  }
end

---The reply that a call gave, which is freed.
---@param status integer that it returned
---@param out ffi.cdata* lk_reply *[1]
---@return any reply integer, string, { ok = text }, nil, or array with .n and values.null inside
---@return latchkey.error|nil err
function values.reply(status, out)
  if tonumber(status) ~= lib.LK_OK then
    return values.outcome(status)
  end
  local reply = from_reply(ffi.gc(out[0], lib.lk_reply_free))
  return reply ~= values.null and reply or nil
end

return values
