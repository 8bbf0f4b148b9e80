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

-- What was given in the order of the header, and the rest for what stands for many.
local function by_place(script, values, count)
  local given, at = {}, 1
  for _, field in ipairs(script.header.argv) do
    if not is_implied(field) and field.many then
      given[field.name], at = { unpack(values, at, count) }, count + 1
    elseif not is_implied(field) then
      given[field.name], at = values[at], at + 1
    end
  end
  if at <= count then
    error(('%s: one value too many'):format(call.usage(script)), 0)
  end
  return given
end

-- What was given by name; what is implied can be given, too.
local function by_field(script, fields)
  local known = { name = true }
  for _, field in ipairs(script.header.argv) do
    known[field.name] = true
  end
  for field in pairs(fields) do
    if not known[field] then
      error(('%s has no argument %s'):format(script.name, tostring(field)), 0)
    end
  end
  return fields
end

-- The values of an argument that was given: one, or a list where it stands for many.
local function given_values(field, given)
  local values = {}
  local list = field.many and type(given) == 'table' and given or { given }
  for i = 1, table.maxn(list) do
    values[i] = argument(list[i], field)
  end
  return values
end

-- A name that is formed may need an argument that was left out.
local function formed(script, field, name, by_name)
  local wanted = names.argument(field.form)
  if wanted and by_name[wanted] == nil then
    return not field.optional and error(('%s: %s is missing, which the name of %s needs'):format(
      call.usage(script), wanted, field.name), 0) or nil
  end
  return names.form(field.form, name, by_name)
end

local function implied_values(script, field, name, by_name)
  local values = {}
  for _, one in ipairs(field.many and type(name) == 'table' and name or { name }) do
    values[#values + 1] = field.form and formed(script, field, one, by_name) or field.values
      and field.values[1]
  end
  return values
end

-- What stands for each argument: what was given, or what is implied.
local function values_of(script, name, given)
  local list, by_name = {}, {}
  for i, field in ipairs(script.header.argv) do
    local value = given[field.name]
    list[i] = value ~= nil and given_values(field, value) or {}
    by_name[field.name] = list[i][#list[i]]
  end
  for i, field in ipairs(script.header.argv) do
    if given[field.name] == nil and is_implied(field) then
      list[i] = implied_values(script, field, name, by_name)
    end
    if not (list[i][1] or field.many or field.optional) then
      error(('%s: %s is missing'):format(call.usage(script), field.name), 0)
    end
  end
  return list, by_name
end

-- The arguments in their order. What is implied is left out behind one that was left out; what was
-- given would come to its place.
local function in_order(script, name, given)
  local args, missing = {}, nil
  local list, by_name = values_of(script, name, given)
  for i, field in ipairs(script.header.argv) do
    if missing and given[field.name] ~= nil then
      error(('%s: %s is missing before %s'):format(call.usage(script), missing, field.name), 0)
    end
    missing = missing or not list[i][1] and field.name or nil
    for _, value in ipairs(missing and {} or list[i]) do
      args[#args + 1] = value
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
    keys[i] = formed(script, key, name, by_name)
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
  local given = named and by_field(script, first) or by_place(script, { ... }, select('#', ...))
  local args, by_name = in_order(script, name, given)
  return keys_of(script, name, by_name), args
end

return call
