-- SPDX-License-Identifier: Apache-2.0
-- From a command line to its function, with the checks that the server makes before it runs one.
-- A client and a script are refused for the same reasons, in different words.
local convert = require('latchkey.mock.convert')

local dispatch = {}

local OOM = "OOM command not allowed when used memory > 'maxmemory'."
local READONLY = "READONLY You can't write against a read only replica."
local MISCONF = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
  .. 'persist to disk. Commands that may modify the data set are disabled, because this instance '
  .. 'is configured to report errors during writes if RDB snapshotting fails '
  .. '(stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB '
  .. 'error.'

dispatch.OOM, dispatch.READONLY, dispatch.MISCONF = OOM, READONLY, MISCONF

local commands -- required on first use: the scripting commands run scripts, which run commands

---@param known table<string, table> commands by name
---@param argv string[]
---@return table|nil command
function dispatch.find(known, argv)
  local command = known[argv[1]] or known[argv[1]:upper()]
  if command and command.subcommands and argv[2] then
    return command.subcommands[argv[2]:upper()]
  end
  return command
end

local function lookup(argv)
  commands = commands or require('latchkey.mock.commands')
  return dispatch.find(commands, argv)
end

local function arity_fits(command, argc)
  if command.arity < 0 then
    return argc >= -command.arity
  end
  return argc == command.arity
end

local function not_modelled(command)
  return ('MOCK %s is not modelled'):format(command.name)
end

-- The server quotes at most 128 bytes, up to the first NUL.
local function quoted(text, limit)
  return "'" .. text:sub(1, limit):gsub('%z.*', '') .. "'"
end

local function unknown(known, argv)
  local name = argv[1]:upper()
  if known[name] then
    return ('ERR unknown subcommand %s. Try %s HELP.'):format(quoted(argv[2], 128), name)
  end
  local arguments = ''
  for i = 2, #argv do
    if #arguments >= 128 then
      break
    end
    arguments = arguments .. quoted(argv[i], 128 - #arguments) .. ' '
  end
  return ('ERR unknown command %s, with args beginning with: %s')
    :format(quoted(argv[1], 128), arguments)
end

---Is there such a command, with so many arguments?
---@param known table<string, table>
---@param command table|nil what was found for it
---@return string|nil refusal
function dispatch.refuse_form(known, command, argv)
  if not command then
    return unknown(known, argv)
  elseif not arity_fits(command, #argv) then
    return ("ERR wrong number of arguments for '%s' command"):format(command.name:lower())
  elseif not command.run and not command.serve then
    return not_modelled(command)
  end
end

---Does the state that the server is in allow a command of these flags?
---@param flags table { denyoom, write, name }
---@return string|nil refusal
function dispatch.refuse_state(world, flags)
  if flags.denyoom and world.full then
    return OOM
  elseif world.broken_disk and (flags.write or flags.name == 'PING') then
    return MISCONF
  elseif flags.write and world.replica then
    return READONLY
  end
end

---@param argv string[]
---@return any reply as a client sees it
---@return string|nil err
function dispatch.from_client(world, argv)
  local command = lookup(argv)
  local refusal = dispatch.refuse_form(commands, command, argv)
    or dispatch.refuse_state(world, command)
  if refusal then
    return nil, refusal
  end
  world:begin()
  local reply, err = command.run(world, argv)
  if err then
    return nil, err
  elseif command.replies then
    return reply
  end
  return convert.to_client(reply)
end

-- May the user run the command, and on the key, if that is among the words?
---@param argv string[]
---@return string|nil refusal
function dispatch.refuse_user(world, argv)
  local denied = world.denied
  if not denied or argv[1]:upper() ~= denied.command then
    return nil
  elseif not denied.key then
    return "ERR The user executing the script can't run this command or subcommand"
  end
  for i = 2, #argv do
    if argv[i] == denied.key then
      return "ERR The user executing the script can't access at least one of the keys mentioned in "
        .. 'the command arguments'
    end
  end
end

-- Memory is checked before a script's first write only: half a script's writes are worse than none.
local function refuse_script(world, run, command, argv)
  local denied = world.denied and dispatch.refuse_user(world, argv)
  if not command then
    return 'ERR Unknown Redis command called from script'
  elseif not arity_fits(command, #argv) then
    return 'ERR Wrong number of args calling Redis command from script'
  elseif command.noscript then
    return 'ERR This Redis command is not allowed from script'
  elseif not command.run then
    return not_modelled(command)
  elseif denied then
    return denied
  elseif run.read_only and (command.write or command.may_replicate) then
    return 'ERR Write commands are not allowed from read-only scripts.'
  elseif command.write and world.replica then
    return READONLY
  elseif command.write and world.broken_disk then
    return MISCONF
  elseif command.denyoom and world.full and not run.allow_oom and not run.dirty then
    return OOM
  end
end

---@param argv string[]
---@return any reply as a script sees it
---@return string|nil err
function dispatch.from_script(world, argv)
  local run = world.run
  local command = lookup(argv)
  local refusal = refuse_script(world, run, command, argv)
    or run.rules and run.rules:command(command, argv)
  if refusal then
    return nil, refusal
  end
  run.dirty = run.dirty or command.write
  return command.run(world, argv)
end

---May there be so many words behind the command?
---@param argv string[]
function dispatch.fits(argv)
  return arity_fits(lookup(argv), #argv)
end

---Is there such a command, modelled or not?
function dispatch.knows(...)
  return lookup({ ... }) ~= nil
end

return dispatch
