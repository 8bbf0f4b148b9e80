-- SPDX-License-Identifier: Apache-2.0
-- Values of Lua as the C calls take them, and what these answer as values of Lua. A value that C
-- would take for another one is a mistake of the program: its error names the call of the binding,
-- which calls the functions here by itself.
local cjson = require('cjson')
local ffi = require('ffi')

local lib = require('latchkey.library').lib

local values = {
  null = cjson.null,
  -- What every call of the library writes its failure to.
  raised = ffi.new('lk_error'),
}

-- ---- to C ---------------------------------------------------------------------------------------

local function flaw_of_text(value, what)
  if type(value) ~= 'string' then
    return ('%s is %s; give a string'):format(what, tostring(value))
  end
  local nul = value:find('\0', 1, true)
  return nul and ('%s has a NUL byte at %d, where a text of C ends; give one without')
    :format(what, nul)
end

-- From 2^53 on a number of Lua may stand for others than itself.
local function flaw_of_integer(value, what)
  local is_integer = ffi.istype('int64_t', value)
    or type(value) == 'number' and value % 1 == 0 and math.abs(value) <= 2 ^ 53
  return not is_integer and ('%s is %s; give an integer up to 2^53, or an int64_t of ffi')
    :format(what, tostring(value))
end

---A text that C reads up to its NUL.
---@param value any
---@param what string the parameter's name
---@return string
function values.text(value, what)
  local flaw = flaw_of_text(value, what)
  return flaw and error(flaw, 3) or value
end

---@param value any
---@param what string the parameter's name
---@return integer
function values.integer(value, what)
  local flaw = flaw_of_integer(value, what)
  return flaw and error(flaw, 3) or value
end

-- A function of Lua that C calls on another thread, or inside a call, ends the process.
local OF_CALLBACKS = { on_lost = true, trace = true, trace_user = true, callbacks = true }

local function flaw_of_option(field, name, value)
  if OF_CALLBACKS[name] or type(value) == 'function' then
    return name .. ' is for callbacks, and Lua has none; ask lock:lost() or watch:lost()'
  elseif ffi.istype('int64_t', field) or type(value) == 'number' then
    return flaw_of_integer(value, name)
  end
  return type(value) == 'string' and flaw_of_text(value, name)
end

---A C structure of options with the given fields set; its first member is its size.
---@param kind string
---@param fields table<string, any> their strings must live as long as the structure
---@return ffi.cdata*
function values.options(kind, fields)
  local options = ffi.new(kind)
  for name, value in pairs(fields) do
    local flaw = flaw_of_option(options[name], name, value)
    if flaw then
      error(flaw, 3)
    end
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

---@param list (string|integer)[] of any bytes
---@param count? integer of what is in the list, nils included; else its n, as of table.pack(), or
---  where the last is that is not nil
---@return ffi.cdata* array of lk_bytes
---@return integer count
function values.bytes(list, count)
  local texts = {}
  for i = 1, count or list.n or table.maxn(list) do
    texts[i] = argument_text(list[i])
      or error(('value %d is %s; give a string or an integer'):format(i, tostring(list[i])), 3)
  end
  local array = ffi.new('lk_bytes[?]', #texts)
  for i, text in ipairs(texts) do
    array[i - 1].data, array[i - 1].len = text, #text
  end
  kept[array] = texts
  return array, #texts
end

---The words of a command, given one by one, or as a list that unpack() may have no room for.
---@return (string|integer)[] list
---@return integer|nil count as of values.bytes
function values.words(...)
  local first, count = ..., select('#', ...)
  if type(first) ~= 'table' then
    return { ... }, count
  elseif count > 1 then
    error('words stand behind a list of words; give all in the list, or all one by one', 3)
  end
  return first
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
  local is_exact = number >= -2 ^ 63 and number < 2 ^ 63 and ffi.cast('int64_t', number) == integer
  return is_exact and number or integer
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
  -- A finalizer could free it while its bytes are copied, when nothing but a bare pointer is left.
  local is_copied, reply = pcall(from_reply, out[0])
  lib.lk_reply_free(out[0])
  if not is_copied then
    error(reply, 0)
  end
  return reply ~= values.null and reply or nil
end

return values
