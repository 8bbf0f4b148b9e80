-- SPDX-License-Identifier: Apache-2.0
-- Functions: scripts that a server keeps under names.
local glob = require('latchkey.mock.glob')
local integers = require('latchkey.mock.integers')
local runner = require('latchkey.mock.runner')

local OK = { ok = 'OK' }

local function call(read_only)
  return function(world, argv)
    local item = world.functions:find(argv[2])
    if not item then
      return nil, 'ERR Function not found'
    end
    local count = integers.parse(argv[3])
    if not count then
      return nil, 'ERR Bad number of keys provided'
    elseif count > #argv - 3 then
      return nil, "ERR Number of keys can't be greater than number of args"
    elseif count < 0 then
      return nil, "ERR Number of keys can't be negative"
    end
    local keys, args = {}, {}
    for i = 4, #argv do
      local list = i < 4 + count and keys or args
      list[#list + 1] = argv[i]
    end
    return runner.run(world, item, keys, args, read_only)
  end
end

local function load(world, argv)
  local replace = false
  for i = 3, #argv - 1 do
    if argv[i]:upper() ~= 'REPLACE' then
      return nil, 'ERR Unknown option given: ' .. argv[i]
    end
    replace = true
  end
  return world.functions:load(argv[#argv], replace)
end

local function delete(world, argv)
  if not world.functions:delete(argv[3]) then
    return nil, 'ERR Library not found'
  end
  return OK
end

local function flush(world, argv)
  local mode = argv[3] and argv[3]:upper()
  if #argv > 3 then
    return nil, "ERR unknown subcommand or wrong number of arguments for 'FLUSH'. "
      .. 'Try FUNCTION HELP.'
  elseif mode and mode ~= 'SYNC' and mode ~= 'ASYNC' then
    return nil, 'ERR FUNCTION FLUSH only supports SYNC|ASYNC option'
  end
  world.functions:flush()
  return OK
end

local function read_list_options(argv)
  local pattern, with_code
  local i = 3
  while i <= #argv do
    local word = argv[i]:upper()
    if word == 'WITHCODE' and not with_code then
      with_code = true
    elseif word == 'LIBRARYNAME' and not pattern then
      i = i + 1
      pattern = argv[i]
      if not pattern then
        return nil, nil, 'ERR library name argument was not given'
      end
    else
      return nil, nil, 'ERR Unknown argument ' .. argv[i]
    end
    i = i + 1
  end
  return pattern, with_code
end

local function describe(library, with_code)
  local functions = {}
  for i, item in ipairs(library.functions) do
    local flags = { n = item.flags.n }
    for j = 1, flags.n do
      flags[j] = { ok = item.flags[j] }
    end
    functions[i] = { map = { 'name', item.name, 'description', item.description or false, 'flags',
      { set = flags } } }
  end
  local fields = { 'library_name', library.name, 'engine', 'LUA', 'functions', functions }
  if with_code then
    fields[7], fields[8] = 'library_code', library.code
  end
  return { map = fields }
end

local function list(world, argv)
  local pattern, with_code, bad = read_list_options(argv)
  if bad then
    return nil, bad
  end
  local found = {}
  for _, library in ipairs(world.functions:list()) do
    if not pattern or glob.match(pattern:lower(), library.name:lower()) then
      found[#found + 1] = describe(library, with_code)
    end
  end
  return found
end

local function stats(world)
  local libraries, functions = world.functions:list(), 0
  for _, library in ipairs(libraries) do
    functions = functions + #library.functions
  end
  return { map = { 'running_script', false, 'engines', { map = { 'LUA',
    { map = { 'libraries_count', #libraries, 'functions_count', functions } } } } } }
end

local function kill()
  return nil, 'NOTBUSY No scripts in execution right now.'
end

return {
  FCALL = { arity = -3, flags = 'noscript replies', run = call(false) },
  FCALL_RO = { arity = -3, flags = 'readonly noscript replies', run = call(true) },
  FUNCTION = { arity = -2, subcommands = {
    DELETE = { arity = 3, flags = 'write noscript', run = delete },
    DUMP = { arity = 2, flags = 'noscript' },
    FLUSH = { arity = -2, flags = 'write noscript', run = flush },
    HELP = { arity = 2 },
    KILL = { arity = 2, flags = 'noscript', run = kill },
    LIST = { arity = -2, flags = 'noscript', run = list },
    LOAD = { arity = -3, flags = 'write denyoom noscript', run = load },
    RESTORE = { arity = -3, flags = 'write denyoom noscript' },
    STATS = { arity = 2, flags = 'noscript', run = stats },
  } },
}
