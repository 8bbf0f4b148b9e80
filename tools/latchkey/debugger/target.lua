-- SPDX-License-Identifier: Apache-2.0
-- What is debugged: one call of a script, and the keyspace that it finds. A target is { world,
-- name, file, source, keys, args, header, reset(), run() }; reset() puts back what the call finds.
local path = require('pl.path')
local utils = require('pl.utils')

local World = require('latchkey.mock.world')
local catalog = require('latchkey.script.catalog')
local functions = require('latchkey.bundle.functions')
local inline = require('latchkey.mock.inline')
local script_call = require('latchkey.script.call')
local text = require('latchkey.text')

local target = {}

local function misuse(message)
  return { status = 'LK_INVALID', message = message,
    hint = 'latchkey debug --help lists the options' }
end

-- What cannot run at all, and why.
local function unusable(file, why)
  return { status = 'LK_INVALID', message = ('%s: %s'):format(file, why), hint = '' }
end

-- A file that is named itself, as redis-cli --ldb --eval takes it.
local function read_file(file)
  local source, why = utils.readfile(file, true)
  if not source then
    return nil, misuse(why)
  end
  local script, findings = catalog.read_file(file)
  if not script and script_call.is_described(file, source) then
    local first = findings[1]
    return nil, { status = 'LK_NO_SCRIPT', message = ('%s:%d: %s'):format(first.file, first.line,
      first.message), hint = ('latchkey lint %s says all of it'):format(file) }
  end
  return script or { name = file, path = file, source = source }
end

local function find_script(lists, folder, name)
  local is_file = path.isfile(name)
  if is_file and name:find('%.lua$') then
    return read_file(name)
  end
  local script = script_call.find(lists, name) or script_call.without_header(folder, name)
  if script then
    return script
  elseif is_file then
    return read_file(name)
  end
  return nil, script_call.refusal(folder, name)
end

-- Gives the world a script; what cannot be compiled is said before anything runs.
local function add(world, script)
  local compiled, why = world:add(script.name, script.source, script.header)
  if not compiled then
    return nil, unusable(script.path, why)
  end
  return compiled
end

-- A line's words as the options of a call.
local function options_of(words)
  local args, i = { script = { words[1] } }, 2
  while i <= #words do
    local option, value = words[i]:match('^%-%-([%w_]+)=(.*)$')
    if not option then
      option, value = words[i]:match('^%-%-([%w_]+)$'), words[i + 1]
      i = option and i + 1 or i
    end
    if option then
      args[option == 'name' and 'name' or 'field_' .. option] = value
    else
      table.insert(args.script, words[i])
    end
    i = i + 1
  end
  return args
end

local function run_script(world, lists, folder, words)
  local script, failure = find_script(lists, folder, words[1])
  if not script then
    return failure.message
  end
  local keys, values = script_call.form(script, options_of(words))
  if not keys then
    return values
  end
  local compiled
  compiled, failure = add(world, script)
  if not compiled then
    return failure.message
  end
  local _, err = world:eval(script.name, keys, values)
  return err and err.message
end

-- What is done before the call: "+500" and "+2s" let time pass, "lock/acquire --name ..." runs a
-- script, anything else is a command. Why a line cannot be done.
local function prepare(world, lists, folder, line)
  local words = inline.split(line)
  if not words then
    return 'a quotation mark is missing'
  elseif #words == 0 then
    return nil
  end
  local span = words[1]:match('^%+(.+)$')
  if span then
    local ms, why = text.span(span)
    return ms and world:advance(ms) or why
  elseif words[1]:find('/', 1, true) then
    return run_script(world, lists, folder, words)
  end
  local _, err = world:command(words)
  return err and err.message
end

local function with_before(world, lists, args)
  for _, lines in ipairs(args.before or {}) do
    for line in lines:gmatch('[^\r\n]+') do
      local why = prepare(world, lists, args.dir, line)
      if why then
        return nil, misuse(('--before "%s": %s'):format(line, why))
      end
    end
  end
  world:messages()
  local snapshot = world:snapshot()
  return function()
    world:restore(snapshot)
  end
end

-- What calls a function of the world's libraries.
local function caller(world, name, keys, values)
  local words = { 'FCALL', name, #keys }
  for _, list in ipairs({ keys, values }) do
    for _, word in ipairs(list) do
      words[#words + 1] = word
    end
  end
  return function()
    return world:command(words)
  end
end

local function of_library(world, args)
  local source, why = utils.readfile(args.library, true)
  if not source then
    return nil, misuse('--library ' .. why)
  end
  local _, wrong = world.functions:load(source, false)
  if wrong then
    return nil, unusable(args.library, wrong)
  elseif args.name then
    return nil, misuse('a function of a library has no header; write its keys and arguments out')
  elseif not world.functions:find(args.script[1]) then
    return nil, { status = 'LK_NO_SCRIPT', message = ('%s has no function "%s"'):format(
      args.library, args.script[1]), hint = '' }
  end
  local keys, values = script_call.form({}, args)
  return { name = args.script[1], file = args.library, source = source, keys = keys,
    args = values, run = caller(world, args.script[1], keys, values) }
end

-- A script as the function that bundles make of it, whose lines are those of the script.
local function as_function(world, script, keys, values)
  local code, why
  if script.header and script.source:find('^#!') then
    code, why = functions.library(script)
  else
    why = 'only a script that begins with #!lua and has a header runs as a function'
  end
  if code then
    code, why = world.functions:load(code, false)
  end
  if not code then
    return nil, unusable(script.path, why)
  end
  return caller(world, functions.name(script.name, script.header.version), keys, values)
end

local function of_script(world, lists, args)
  local script, failure = find_script(lists, args.dir, args.script[1])
  if not script then
    return nil, failure
  end
  local keys, values = script_call.form(script, args)
  if not keys then
    return nil, misuse(values)
  end
  local run
  if args.as_function then
    run, failure = as_function(world, script, keys, values)
  else
    run, failure = add(world, script)
    run = run and function()
      return world:eval(script.name, keys, values)
    end
  end
  if not run then
    return nil, failure
  end
  return { name = script.name, file = script.path, source = script.source, keys = keys,
    args = values, header = script.header, run = run }
end

---A call as it is written on the command line.
---@param home string
---@param args { script: string[], name: string|nil, dir: string|nil, library: string|nil,
---  as_function: boolean|nil, before: string[]|nil, no_strict: boolean|nil } and `field_ARGUMENT`
---  for each option
---@return table|nil target
---@return table|nil failure as Context:fail takes it
function target.call(home, args)
  if args.dir and not path.isdir(args.dir) then
    return nil, misuse(('--dir %s is not a folder'):format(args.dir))
  end
  local world = World.new({ scripts = path.join(home, 'scripts'), strict = not args.no_strict })
  local lists = script_call.catalogs(home, args.dir)
  local found, failure
  if args.library then
    found, failure = of_library(world, args)
  else
    found, failure = of_script(world, lists, args)
  end
  if not found then
    return nil, failure
  end
  found.world = world
  found.reset, failure = with_before(world, lists, args)
  if not found.reset then
    return nil, failure
  end
  for _, list in ipairs({ found.keys, found.args }) do
    for i, value in ipairs(list) do
      list[i] = tostring(value)
    end
  end
  return found
end

return target
