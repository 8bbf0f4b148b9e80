-- SPDX-License-Identifier: Apache-2.0
-- From `lock.acquire('k', 1000, 'me', 1)` to the script's keys and arguments, by its header.
local lexer = require('latchkey.lua51.lexer')
local names = require('latchkey.script.names')
local text = require('latchkey.text')

local call = {}

-- Lua for people at a prompt; files and processes are not for it.
call.LUA = { 'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'select', 'string',
  'table', 'tonumber', 'tostring', 'type', 'unpack' }

-- What the prompt has itself, and how it is completed.
call.OWN = { advance = '(', call = '(', dump = '()', help = '(', messages = '()', print = '(',
  quit = '()', redis = '(', reset = '()' }

---Is a family called like something of Lua's or of the prompt's? Its scripts are called by `call`.
---@param family string
---@return boolean
function call.is_taken(family)
  for _, name in ipairs(call.LUA) do
    if name == family then
      return true
    end
  end
  return call.OWN[family] ~= nil or lexer.tokens(family)[1].kind == 'keyword'
end

-- What the name forms, or has one usual value, is left out of a call: channels and the verb.
local function is_implied(field)
  return field.form ~= nil or field.type == 'verb'
end

---How a script is called here, such as "lock.acquire(name, lease, owner, hold)", or
---"call('table/take', name)".
---@param script table of lib.catalog
---@return string
function call.usage(script)
  local words = { #script.header.keys > 0 and 'name' or nil }
  for _, key in ipairs(script.header.keys) do
    if key.many or key.form.kind == 'slot' then
      words[1] = '{key, ...}'
    end
  end
  for _, field in ipairs(script.header.argv) do
    if not is_implied(field) then
      words[#words + 1] = field.name .. (field.many and '...' or field.optional and '?' or '')
    end
  end
  if call.is_taken(script.name:match('^[^/]+')) then
    table.insert(words, 1, ("'%s'"):format(script.name))
    return ('call(%s)'):format(table.concat(words, ', '))
  end
  return ('%s(%s)'):format(script.name:gsub('/', '.'), table.concat(words, ', '))
end

---A number that was typed with more digits than Lua keeps has become another one.
function call.check_number(value)
  if type(value) == 'number' and value % 1 == 0 and math.abs(value) >= 2 ^ 53 then
    error(('numbers from 2^53 on lose digits; write this one in quotes: %s'):format(
      text.number(value)), 0)
  end
end

local function argument(value, field)
  if type(value) == 'string' and field.type == 'ms' and value:find('^%d+%l+$') then
    return assert(text.duration(value))
  elseif type(value) ~= 'string' and type(value) ~= 'number' then
    error(('%s is a string or a number'):format(field.name), 0)
  end
  call.check_number(value)
  return value
end

local function implied(field, name)
  if field.form then
    return names.form(field.form, name)
  end
  return field.values[1]
end

-- From the values of a call, in the order of the header, and the rest for what stands for many.
local function by_place(script, name, values)
  local args, by_name, at = {}, {}, 1
  for _, field in ipairs(script.header.argv) do
    local several = field.many and #values - at + 1 or 1
    if is_implied(field) then
      for _, one in ipairs(field.many and type(name) == 'table' and name or { name }) do
        args[#args + 1] = implied(field, one)
      end
      several = 0
    end
    for _ = 1, several do
      if values[at] == nil and not field.optional then
        error(('%s: %s is missing'):format(call.usage(script), field.name), 0)
      elseif values[at] ~= nil then
        args[#args + 1] = argument(values[at], field)
      end
      at = at + 1
    end
    by_name[field.name] = args[#args]
  end
  if values[at] ~= nil then
    error(('%s: one value too many'):format(call.usage(script)), 0)
  end
  return args, by_name
end

-- From fields by their names; those that are implied can be given too.
local function by_field(script, fields)
  local args, by_name, known = {}, {}, { name = true }
  for _, field in ipairs(script.header.argv) do
    local value = fields[field.name]
    known[field.name] = true
    if value == nil and is_implied(field) then
      value = implied(field, fields.name)
    elseif value == nil and not field.optional then
      error(('%s: %s is missing'):format(call.usage(script), field.name), 0)
    end
    if value ~= nil then
      args[#args + 1] = argument(value, field)
      by_name[field.name] = value
    end
  end
  for field in pairs(fields) do
    if not known[field] then
      error(('%s has no argument %s'):format(script.name, tostring(field)), 0)
    end
  end
  return args, by_name
end

local function keys_of(script, name, by_name)
  if type(name) == 'table' then
    return name
  end
  local keys = {}
  for i, key in ipairs(script.header.keys) do
    if key.form.kind == 'slot' or key.many then
      error(('%s: the keys are chosen, not formed; write them as a table'):format(
        call.usage(script)), 0)
    end
    keys[i] = names.form(key.form, name, by_name)
  end
  return keys
end

---@param script table of lib.catalog
---@param first any the name; a table of keys; or a table with all by their names
---@param ... any values
---@return (string|number)[] keys
---@return (string|number)[] args
function call.form(script, first, ...)
  local named = type(first) == 'table' and first[1] == nil
  local name = first
  if named then
    name = first.name
  end
  if type(name) ~= 'table' then
    local good, why = names.check(tostring(name or ''))
    if not good then
      error(why, 0)
    end
    name = tostring(name)
  end
  local args, by_name
  if named then
    args, by_name = by_field(script, first)
  else
    args, by_name = by_place(script, name, { ... })
  end
  return keys_of(script, name, by_name), args
end

return call
