-- SPDX-License-Identifier: Apache-2.0
-- What clients ask of the server as a whole: its role, settings, keys and commands.
local arrays = require('latchkey.mock.arrays')
local glob = require('latchkey.mock.glob')
local integers = require('latchkey.mock.integers')

local server = {}

local OK = { ok = 'OK' }
-- An empty server needs more than this, so with less it is full.
local EMPTY_BYTES = 500000

local function role(front)
  if front.world.replica then
    return { 'slave', '127.0.0.1', 0, 'connected', 0 }
  end
  return { 'master', 0, {} }
end

-- There are no replicas: whoever waits for some waits until the end.
local function wait(front, conn, argv)
  local count, timeout, bad = integers.parse(argv[2]), integers.parse(argv[3]), nil
  if not count then
    bad = integers.NOT_AN_INTEGER
  elseif not timeout then
    bad = 'ERR timeout is not an integer or out of range'
  elseif timeout < 0 then
    bad = 'ERR timeout is negative'
  elseif front.world.replica then
    bad = 'ERR WAIT cannot be used with replica instances.'
  end
  if not bad and count > 0 and not conn.in_transaction then
    conn:wait(timeout > 0 and front:now_ms() + timeout or nil, 0)
  end
  return 0, bad
end

local function wait_aof(_, _, argv)
  for i = 2, 4 do
    if not integers.parse(argv[i]) then
      return nil, integers.NOT_AN_INTEGER
    end
  end
  if argv[2] ~= '0' then
    return nil, 'ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.'
  end
  return { 0, 0 }
end

-- Settings of which clients look at some before they trust a server.
local function settings(front)
  return { appendfsync = 'everysec', appendonly = 'no', databases = '1', hz = '10',
    ['lua-time-limit'] = '5000', maxclients = tostring(front.max_clients),
    maxmemory = front.world.full and '1' or '0', ['maxmemory-policy'] = 'noeviction',
    ['min-replicas-to-write'] = '0', ['notify-keyspace-events'] = '',
    ['proto-max-bulk-len'] = '536870912', ['replica-read-only'] = 'yes', save = '',
    timeout = '0' }
end

local function config_get(front, _, argv)
  local all, names = settings(front), {}
  for name in pairs(all) do
    for i = 3, #argv do
      if glob.match(argv[i]:lower(), name) then
        names[#names + 1] = name
        break
      end
    end
  end
  table.sort(names)
  local reply = {}
  for i, name in ipairs(names) do
    reply[2 * i - 1], reply[2 * i] = name, all[name]
  end
  return { map = reply }
end

-- Only memory can be changed; a setting to what it is anyhow is no change.
local function config_set(front, _, argv)
  if #argv % 2 ~= 0 then
    return nil, "ERR wrong number of arguments for 'config|set' command"
  end
  local all = settings(front)
  for i = 3, #argv, 2 do
    local name, value = argv[i]:lower(), argv[i + 1]
    if not all[name] then
      return nil, ("ERR Unknown option or number of arguments for CONFIG SET - '%s'")
        :format(argv[i])
    elseif name == 'maxmemory' and integers.parse(value) then
      front.world:set_oom(tonumber(value) > 0 and tonumber(value) < EMPTY_BYTES)
    elseif all[name] ~= value then
      return nil, ('MOCK CONFIG SET %s is not modelled'):format(name)
    end
  end
  return OK
end

local function reset_stats(front)
  local stats = require('latchkey.mock.front.execute').stats()
  front.stats = stats
  return OK
end

-- Any fields will do: here, those that came first.
local function random_fields(front, conn, argv)
  local with_values = argv[4] and argv[4]:upper() == 'WITHVALUES'
  local count, bad = integers.parse(argv[3] or '1')
  if bad or (argv[4] and not with_values) or #argv > 4 then
    return nil, bad or arrays.SYNTAX
  end
  front.world:begin()
  local fields, wrong = arrays.read(front.world, argv[2], 'hash')
  if wrong then
    return nil, wrong
  elseif not argv[3] then
    return fields[1] or false
  end
  local n, reply = #fields / 2, {}
  for i = 0, (n > 0 and (count < 0 and -count or math.min(count, n)) or 0) - 1 do
    local field, value = fields[i % n * 2 + 1], fields[i % n * 2 + 2]
    if with_values and conn.version == 3 then
      reply[#reply + 1] = { field, value }
    else
      reply[#reply + 1] = field
      reply[#reply + 1] = with_values and value or nil
    end
  end
  return reply
end

local function sorted_names(front)
  local names = {}
  for name, command in pairs(front.commands) do
    if command.run or command.serve or command.subcommands then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

local FLAGS = { 'write', 'readonly', 'denyoom', 'pubsub', 'noscript', 'loading' }

local function describe(command)
  local flags, subcommands = {}, {}
  for _, flag in ipairs(FLAGS) do
    if command[flag] then
      flags[#flags + 1] = { ok = flag }
    end
  end
  for _, subcommand in pairs(command.subcommands or {}) do
    subcommands[#subcommands + 1] = subcommand
  end
  table.sort(subcommands, function(a, b)
    return a.name < b.name
  end)
  for i, subcommand in ipairs(subcommands) do
    subcommands[i] = describe(subcommand)
  end
  local at = command.keys or command.slots or { 0, 0, 0 }
  return { command.name:lower(), command.arity, { set = flags }, at[1], at[2], at[3], { set = {} },
    {}, {}, subcommands }
end

local function command_info(front, _, argv)
  local names, reply = {}, {}
  for i = 3, #argv do
    names[#names + 1] = argv[i]
  end
  for i, name in ipairs(#argv > 2 and names or sorted_names(front)) do
    local first, second = name:upper():match('^([^|]*)|?(.*)$')
    local command = front.commands[first]
    if command and second ~= '' then
      command = (command.subcommands or {})[second]
    end
    reply[i] = command and describe(command) or false
  end
  return reply
end

-- Of a command on keys: it is among the calls that are remembered.
local function noted(serve)
  return function(front, conn, argv)
    local reply, err = serve(front, conn, argv)
    front.journal:add(front, conn, front.commands[argv[1]:upper()], argv, err)
    return reply, err
  end
end

local function command_keys(front, _, argv)
  local words = {}
  for i = 3, #argv do
    words[i - 2] = argv[i]
  end
  local command = front:find(words)
  if not command then
    return nil, 'ERR Invalid command specified'
  elseif not (command.run or command.serve) then
    return nil, ('MOCK the keys of %s are not modelled'):format(command.name)
  elseif not (command.keys or command.counted or command.replies) then
    return nil, 'ERR The command has no key arguments'
  elseif command.arity > 0 and #words ~= command.arity or #words < -command.arity then
    return nil, 'ERR Invalid number of arguments specified for command'
  elseif command.replies and (tonumber(words[3]) or 0) > #words - 3 then
    return {}
  end
  return front.keys(command, words)
end

server.commands = {
  ROLE = { arity = 1, flags = 'loading noscript', serve = role },
  WAIT = { arity = 3, flags = 'noscript', serve = wait },
  WAITAOF = { arity = 4, flags = 'noscript', serve = wait_aof },
  HRANDFIELD = { arity = -2, flags = 'readonly', keys = { 1, 1, 1 },
    serve = noted(random_fields) },
  CONFIG = { arity = -2, subcommands = {
    GET = { arity = -3, flags = 'loading noscript', serve = config_get },
    HELP = { arity = 2 },
    RESETSTAT = { arity = 2, flags = 'loading noscript', serve = reset_stats },
    REWRITE = { arity = 2, flags = 'loading noscript', serve = function()
      return nil, 'ERR The server is running without a config file'
    end },
    SET = { arity = -4, flags = 'loading noscript', serve = config_set },
  } },
  COMMAND = { arity = -1, flags = 'loading', serve = command_info, subcommands = {
    COUNT = { arity = 2, flags = 'loading', serve = function(front)
      return #sorted_names(front)
    end },
    DOCS = { arity = -2, flags = 'loading', serve = function()
      return { map = {} }
    end },
    GETKEYS = { arity = -4, flags = 'loading', serve = command_keys },
    GETKEYSANDFLAGS = { arity = -4 }, HELP = { arity = 2 },
    INFO = { arity = -2, flags = 'loading', serve = command_info },
    LIST = { arity = -2, flags = 'loading', serve = function(front)
      local names = sorted_names(front)
      for i, name in ipairs(names) do
        names[i] = name:lower()
      end
      return names
    end },
  } },
}

return server
