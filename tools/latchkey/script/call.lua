-- SPDX-License-Identifier: Apache-2.0
-- A call of a script as it is written on a command line: the script by its name, its keys and
-- arguments around a comma, or formed from --name and the options that its header makes.
local path = require('pl.path')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local domain = require('latchkey.script.domain')
local names = require('latchkey.script.names')
local text = require('latchkey.text')

local script_call = {}

local HEADER = '--[[ latchkey-script'

-- What eval and debug call options of their own: no argument of a script has one of that name.
script_call.OPTIONS = tablex.makeset({ 'allow_unsigned', 'allowed_signers', 'before', 'bundle',
  'dap', 'dir', 'function', 'help', 'json', 'library', 'mock', 'name', 'no_strict',
  'password_file', 'quiet', 'trace', 'url', 'verbose' })

---What stands behind an option, before the parser is made: which further options there are follows
---from the headers of the scripts that it names.
---@param arguments string[]
---@param option string
---@return string|nil
function script_call.option_in(arguments, option)
  for i, argument in ipairs(arguments) do
    local value = argument:match('^%-%-' .. option .. '=(.+)$')
      or argument == '--' .. option and arguments[i + 1]
    if value then
      return value
    end
  end
end

-- What has a header that is right; a mistake of a neighbour is no matter of theirs.
local function readable_scripts(folder)
  local scripts = {}
  for _, file in ipairs(catalog.files(folder) or {}) do
    scripts[#scripts + 1] = catalog.read_file(file)
  end
  return scripts
end

---The scripts that can be meant, as catalogs: a later one goes before an earlier.
---@param home string
---@param folder string|nil of further scripts
---@return table[][]
function script_call.catalogs(home, folder)
  local list = { catalog.read(path.join(home, 'scripts')) or {} }
  if folder and path.isdir(folder) then
    list[#list + 1] = readable_scripts(folder)
  end
  return list
end

---@param list table[][] catalogs
---@param wanted string name
---@return table|nil script
function script_call.find(list, wanted)
  local found
  for _, scripts in ipairs(list) do
    for _, script in ipairs(scripts) do
      if script.name == wanted then
        found = script
      end
    end
  end
  return found
end

-- The arguments of all scripts that can be options, each name once.
local function fields_of(list)
  local seen, fields = {}, {}
  for _, scripts in ipairs(list) do
    for _, script in ipairs(scripts) do
      for _, field in ipairs(script.header.argv) do
        if not seen[field.name] and not script_call.OPTIONS[field.name] then
          seen[field.name] = true
          fields[#fields + 1] = field
        end
      end
    end
  end
  table.sort(fields, function(one, other)
    return one.name < other.name
  end)
  return fields
end

local function describe(field)
  if field.type == 'ms' then
    return 'A duration: 30s.'
  elseif field.form then
    return 'Formed from --name unless it is given.'
  elseif field.values then
    return table.concat(field.values, ' or ') .. (field.type == 'verb'
      and '; as the servers receive it unless it is given.' or '.')
  elseif field.min then
    return ('%.0f to %.0f%s.'):format(field.min, field.max,
      field.kind == 'integer' and '' or ' bytes')
  end
  return field.text
end

---The options by which a call is formed from a name.
---@param parser table of argparse
---@param list table[][] catalogs
function script_call.options(parser, list)
  parser:option('--name', 'The lock\'s name, from which keys and channels are formed; the '
    .. 'arguments are then given by these options:'):argname('NAME')
  for _, field in ipairs(fields_of(list)) do
    parser:option('--' .. field.name, describe(field)):target('field_' .. field.name)
      :argname(field.name:upper())
  end
end

local function split(words)
  local keys, args = {}, {}
  local list = keys
  for i = 2, #words do
    if words[i] == ',' and list == keys then
      list = args
    else
      list[#list + 1] = words[i]
    end
  end
  return keys, args
end

-- A key or channel. The argument in its name may be one that was left out.
local function form_name(field, name, by_name)
  local wanted = names.argument(field.form)
  if wanted and by_name[wanted] == nil then
    return nil, ('--%s is missing: it is in the name of "%s"'):format(wanted, field.name)
  end
  return names.form(field.form, name, by_name)
end

local function form_argument(field, given)
  if given == nil and field.type == 'verb' then
    return field.values[1]
  elseif given == nil and script_call.OPTIONS[field.name] then
    return nil, ('"%s" is an option, not the argument of that name; write keys and arguments out')
      :format(field.name)
  elseif given == nil and not field.optional then
    return nil, ('--%s is missing: %s'):format(field.name, field.text)
  elseif field.type == 'ms' and given then
    return text.duration(given)
  end
  return given
end

-- An option that another script takes, if this one does not.
local function foreign_option(script, args)
  local known = {}
  for _, field in ipairs(script.header.argv) do
    known['field_' .. field.name] = true
  end
  for option in pairs(args) do
    if option:find('^field_') and not known[option] then
      return ('%s has no argument "%s"'):format(script.name, option:sub(7))
    end
  end
end

-- The arguments by their names, channels after those that may be in theirs.
local function arguments_of(script, args)
  local by_name, channels = {}, {}
  for _, field in ipairs(script.header.argv) do
    local given, why = args['field_' .. field.name], nil
    if field.form and given == nil then
      channels[#channels + 1] = field
    else
      by_name[field.name], why = form_argument(field, given)
    end
    if why then
      return nil, why
    end
  end
  for _, field in ipairs(channels) do
    local channel, why = form_name(field, args.name, by_name)
    if why and not field.optional then
      return nil, why
    end
    by_name[field.name] = channel
  end
  return by_name
end

-- The arguments in their order. What goes without saying is left out behind one that was left out;
-- another one would come to its place.
local function in_order(script, args, by_name)
  local values, missing = {}, nil
  for i, field in ipairs(script.header.argv) do
    if missing and args['field_' .. field.name] then
      return nil, ('--%s is missing before --%s'):format(missing, field.name)
    end
    missing = missing or by_name[field.name] == nil and field.name or nil
    values[i] = not missing and by_name[field.name] or nil
  end
  return values
end

-- Keys and arguments from --name and the header.
local function form(script, args)
  local good, why = names.check(args.name)
  why = not good and why or foreign_option(script, args)
  if why then
    return nil, why
  end
  local by_name, values
  by_name, why = arguments_of(script, args)
  if by_name then
    values, why = in_order(script, args, by_name)
  end
  if not values then
    return nil, why
  end
  local keys, told = {}, {}
  for i, field in ipairs(script.header.argv) do
    if field.type == 'verb' and not args['field_' .. field.name] then
      told[i] = values[i] and by_name.channel
    end
  end
  for i, key in ipairs(script.header.keys) do
    if key.many or key.form.kind == 'slot' then
      return nil, script.name .. ' takes keys that are not formed from the name; write them out'
    end
    keys[i], why = form_name(key, args.name, by_name)
    if why then
      return nil, why
    end
  end
  return keys, values, told
end

local function count_of(number, word)
  return ('%d %s%s'):format(number, word, number == 1 and '' or 's')
end

-- Why keys or arguments are not as many as a contract says.
local function wrong_count(script, fields, given, word)
  local last = fields[#fields]
  local least = #fields
  while least > 0 and (fields[least].optional or fields[least].many
    and fields[least].many.min == 0) do
    least = least - 1
  end
  if #given < least or #given > #fields and not (last and last.many) then
    return ('%s takes %s, not %d'):format(script.name, count_of(#fields, word), #given)
  end
end

-- A script that has a contract mostly checks nothing itself, as its typed calls do: why they would
-- not send this.
local function out_of_contract(script, keys, values)
  local h = script.header
  local wrong = wrong_count(script, h.keys, keys, 'key')
    or wrong_count(script, h.argv, values, 'argument')
  for i, value in ipairs(not wrong and values or {}) do
    local field = h.argv[math.min(i, #h.argv)]
    value = domain.text(value)
    local why = domain.why(field, value)
    if why then
      return ('%s %s, not %s; nothing was sent'):format(field.name, why,
        #value > 40 and #value .. ' bytes' or '"' .. text.safe(value) .. '"')
    end
  end
  return wrong
end

---@param script table with a header, if there is a name
---@param args { script: string[], name: string|nil } and `field_ARGUMENT` for each option
---@return string[]|nil keys
---@return string[] args or what is wrong with the call
---@return table<integer, string>|nil told channels whose verb, in these places, the server may want
---  to be another one
function script_call.form(script, args)
  local keys, values, told
  if not args.name then
    keys, values = split(args.script)
  elseif #args.script > 1 then
    return nil, 'write either --name or keys and arguments'
  elseif not script.header then
    return nil, script.name .. ' has no header, so that --name forms nothing; write keys and '
      .. 'arguments out'
  else
    keys, values, told = form(script, args)
  end
  local wrong = keys and script.contract and out_of_contract(script, keys, values)
  if wrong then
    return nil, wrong
  end
  return keys, values, told
end

---Has a script a header, or a contract beside it, right or wrong?
---@param file string
---@param source string
---@return boolean
function script_call.is_described(file, source)
  return source:find(HEADER, 1, true) ~= nil or catalog.contract_of(file, source) ~= nil
end

---A file of the folder that has neither header nor contract: keys and arguments are written out,
---and there is nothing that its replies could be held to.
---@param folder string|nil
---@param name string
---@return table|nil script { name, path, source }
function script_call.without_header(folder, name)
  local file = folder and ('%s/%s.lua'):format(folder, name)
  local source = file and utils.readfile(file, true)
  return source and not script_call.is_described(file, source)
    and { name = name, path = file, source = source } or nil
end

---Why there is no such script; there may be a file of that name whose header is none.
---@param folder string|nil
---@param name string
---@return table failure as Context:fail takes it
function script_call.refusal(folder, name)
  local list, why = {}, nil
  if folder then
    list, why = catalog.files(folder)
  end
  if not list then
    return { status = 'LK_NO_SCRIPT', message = why, hint = '' }
  end
  local file = folder and ('%s/%s.lua'):format(folder, name)
  local source = file and path.isfile(file) and utils.readfile(file, true)
  if not source then
    return { status = 'LK_NO_SCRIPT', message = ('no script is named "%s"'):format(name),
      hint = 'latchkey status lists them' }
  elseif not script_call.is_described(file, source) then
    return { status = 'LK_NO_SCRIPT', message = file .. ' has no header, from which names and '
      .. 'arguments are known', hint = ('write "%s ..." as its second line; with --mock, and keys '
      .. 'and arguments written out, it runs without'):format(HEADER) }
  end
  local _, findings = catalog.read_file(file)
  local first = findings[1]
  return { status = 'LK_NO_SCRIPT', message = ('%s:%d: %s'):format(first.file, first.line,
    first.message), hint = ('latchkey lint %s says all of it'):format(folder) }
end

return script_call
