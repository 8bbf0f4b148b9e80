-- SPDX-License-Identifier: Apache-2.0
-- How a client sends scripts. A script itself may send none of these.
local integers = require('latchkey.mock.integers')
local runner = require('latchkey.mock.runner')

local NOSCRIPT = 'NOSCRIPT No matching script. Please use EVAL.'

local function by_source(world, source)
  return world.library:load(source)
end

local function by_sha(world, sha)
  local script = world.library:find(sha:lower())
  return script, not script and NOSCRIPT
end

local function run(find, read_only)
  return function(world, argv)
    local keys_count, bad = integers.parse(argv[3])
    if find == by_sha and #argv[2] ~= 40 then
      return nil, NOSCRIPT
    elseif bad then
      return nil, bad
    elseif keys_count > #argv - 3 then
      return nil, "ERR Number of keys can't be greater than number of args"
    elseif keys_count < 0 then
      return nil, "ERR Number of keys can't be negative"
    end
    local script, missing = find(world, argv[2])
    if not script then
      return nil, missing
    end
    local keys, args = {}, {}
    for i = 4, #argv do
      local list = i < 4 + keys_count and keys or args
      list[#list + 1] = argv[i]
    end
    return runner.run(world, script, keys, args, read_only)
  end
end

local function load(world, argv)
  local script, why = world.library:load(argv[3])
  return script and script.sha1, why
end

local function exists(world, argv)
  local found = {}
  for i = 3, #argv do
    found[i - 2] = world.library:find(argv[i]:lower()) and 1 or 0
  end
  return found
end

local function flush(world, argv)
  local mode = argv[3] and argv[3]:upper()
  if #argv > 3 or (mode and mode ~= 'SYNC' and mode ~= 'ASYNC') then
    return nil, 'ERR SCRIPT FLUSH only support SYNC|ASYNC option'
  end
  world.library:flush()
  return { ok = 'OK' }
end

local function kill()
  return nil, 'NOTBUSY No scripts in execution right now.'
end

return {
  EVAL = { arity = -3, flags = 'noscript replies', run = run(by_source, false) },
  EVAL_RO = { arity = -3, flags = 'readonly noscript replies', run = run(by_source, true) },
  EVALSHA = { arity = -3, flags = 'noscript replies', run = run(by_sha, false) },
  EVALSHA_RO = { arity = -3, flags = 'readonly noscript replies', run = run(by_sha, true) },
  SCRIPT = { arity = -2, subcommands = {
    DEBUG = { arity = 3, flags = 'noscript' },
    EXISTS = { arity = -3, flags = 'noscript', run = exists },
    FLUSH = { arity = -2, flags = 'noscript', run = flush },
    HELP = { arity = 2 },
    KILL = { arity = 2, flags = 'noscript', run = kill },
    LOAD = { arity = 3, flags = 'noscript', run = load },
  } },
}
