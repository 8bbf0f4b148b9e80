-- SPDX-License-Identifier: Apache-2.0
-- The table `redis` that scripts see.
local convert = require('latchkey.mock.convert')
local dispatch = require('latchkey.mock.dispatch')
local digest = require('latchkey.digest')
local lua51 = require('latchkey.mock.lua51')

local BAD_ARGUMENT = 'ERR Lua redis lib command arguments must be strings or integers'

local function is_finding(err)
  return err:sub(1, 5) == 'MOCK '
end

local function to_arguments(run, argv, argc)
  if argc == 0 then
    return 'ERR Please specify at least one argument for this redis lib call'
  end
  for i = 1, argc do
    local value = argv[i]
    if type(value) == 'number' then
      local finding = run.rules and run.rules:number(value, i, argv, argc)
      if finding then
        return finding
      end
      argv[i] = convert.argument(value)
    elseif type(value) ~= 'string' then
      return BAD_ARGUMENT
    end
  end
end

local function failure(err)
  return { err = convert.error_text(err), ignore_error_stats_update = true }
end

local function execute(world, argc, argv)
  local run = world.run
  local reply
  local err = to_arguments(run, argv, argc)
  if not err then
    reply, err = dispatch.from_script(world, argv)
  end
  if err and is_finding(err) then
    run.finding = run.finding or err
  end
  return reply, err and failure(err)
end

-- What a call counts in the place of the mock's own instructions, and how many of the elements
-- that it writes count as one.
local CALL, ELEMENTS = 100, 2

local jit = rawget(_G, 'jit')

-- A hook that looks at a script's instructions does not look at the mock's. Lua 5.1 has one for
-- each coroutine.
local function unhook(world)
  local meter = world.meter
  if meter and (jit or debug.gethook() == meter.hook) then
    debug.sethook()
    return meter
  end
end

local function hook_again(world, meter)
  local store = world.store
  meter.left = meter.left - CALL - store.written / ELEMENTS
  store.written = 0
  debug.sethook(meter.hook, '', meter.left > 0 and meter.count or 1)
end

-- The mock's own code has this Lua's methods of texts, not those that runner.lua gives the script.
local shared = getmetatable('')

local function outside(world, argc, argv)
  local methods, meter = shared.__index, unhook(world)
  shared.__index = string
  local reply, err = execute(world, argc, argv)
  shared.__index = methods
  if meter then
    hook_again(world, meter)
  end
  return reply, err
end

-- "-CODE text" and "CODE text" keep their code; a single word is no code, and gets one. It is a
-- text of C, which ends at its first NUL.
local function error_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  text = text:gsub('%z.*', ''):gsub('[\r\n]+$', ''):gsub('^%-', '')
  return { err = text:find(' ', 1, true) and text or 'ERR ' .. text }
end

local function status_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return { ok = text }
end

local function raise(text)
  error({ err = 'ERR ' .. text }, 0)
end

local function sha1hex(...)
  if select('#', ...) ~= 1 then
    raise('wrong number of arguments')
  end
  local text = ...
  local kind = type(text)
  return digest.sha1((kind == 'string' or kind == 'number') and lua51.text(text) or '')
end

-- A number, or a text that is one, as C casts it to int; nil: it is none.
local function integer(value)
  local is_one = type(value) == 'number' or type(value) == 'string'
  local number = is_one and lua51.number(value) or nil
  return number and (number < 0 and math.ceil(number) or math.floor(number))
end

-- What a script logs goes nowhere; wrong arguments are errors all the same.
local function log(...)
  local level = integer((...))
  if select('#', ...) < 2 then
    raise('redis.log() requires two arguments or more.')
  elseif not level then
    raise('First argument must be a number (log level).')
  elseif not (level >= 0 and level <= 3) then
    raise('Invalid debug level.')
  end
end

local function setresp(world, ...)
  local version = integer((...))
  if select('#', ...) ~= 1 then
    raise('redis.setresp() requires one argument.')
  elseif version == 3 then
    world:refuse('MOCK redis.setresp(3) is not modelled')
  elseif version ~= 2 then
    raise('RESP version must be 2 or 3.')
  end
end

local function set_repl(...)
  local flags = integer((...)) or 0
  if select('#', ...) ~= 1 then
    raise('redis.set_repl() requires two arguments.')
  elseif not (flags >= 0 and flags <= 3) then
    raise('Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
  end
end

local function acl_check_cmd(world, ...)
  local argc, argv = select('#', ...), { ... }
  if argc == 0 then
    raise('Please specify at least one argument for this redis lib call')
  end
  for i = 1, argc do
    argv[i] = convert.argument(argv[i]) or error({ err = BAD_ARGUMENT }, 0)
  end
  if not dispatch.knows(argv[1], argv[2]) then
    raise('Invalid command passed to redis.acl_check_cmd()')
  end
  if world.run and world.run.rules and not dispatch.fits(argv) then
    world:refuse('MOCK Redis 8 refuses redis.acl_check_cmd() of too few words, or too many')
  end
  return dispatch.refuse_user(world, argv) == nil
end

---@param world table
---@return table redis
return function(world)
  return {
    call = function(...)
      local reply, err = outside(world, select('#', ...), { ... })
      if err then
        error(err, 0)
      end
      return reply
    end,
    pcall = function(...)
      local reply, err = outside(world, select('#', ...), { ... })
      return err or reply
    end,
    error_reply = error_reply,
    status_reply = status_reply,
    sha1hex = sha1hex,
    log = log,
    setresp = function(...)
      return setresp(world, ...)
    end,
    set_repl = set_repl,
    acl_check_cmd = function(...)
      return acl_check_cmd(world, ...)
    end,
    replicate_commands = function()
      return true
    end,
    breakpoint = function()
      return false
    end,
    debug = function() end,
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
    REDIS_VERSION = '7.0.15', REDIS_VERSION_NUM = 0x07000f,
  }
end
