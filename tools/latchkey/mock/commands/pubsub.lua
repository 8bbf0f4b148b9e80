-- SPDX-License-Identifier: Apache-2.0
-- Publishing. Messages are kept until world:messages() takes them; who is told of them, and how
-- many that are, only a front knows that has subscribers: it leaves them in world.channels.
local glob = require('latchkey.mock.glob')

local function publish(world, argv)
  local outbox, verb = world.outbox, argv[1]:upper()
  outbox[#outbox + 1] = { verb = verb, channel = argv[2], message = argv[3] }
  return world.channels and world.channels:count(verb, argv[2]) or 0
end

local function names(kind)
  return function(world, argv)
    if #argv > 3 then
      return nil, ("ERR unknown subcommand or wrong number of arguments for '%s'. Try PUBSUB HELP.")
        :format(argv[2])
    end
    local found = {}
    for _, name in ipairs(world.channels and world.channels:names(kind) or {}) do
      if not argv[3] or glob.match(argv[3], name) then
        found[#found + 1] = name
      end
    end
    return found
  end
end

local function numbers(kind)
  return function(world, argv)
    local reply = {}
    for i = 3, #argv do
      reply[#reply + 1] = argv[i]
      reply[#reply + 1] = world.channels and world.channels:subscribers(kind, argv[i]) or 0
    end
    return reply
  end
end

local function patterns(world)
  return world.channels and #world.channels.patterns or 0
end

-- A sharded channel belongs to a slot, as a key does, but nobody declares it.
return {
  PUBLISH = { arity = 3, flags = 'may_replicate', run = publish },
  SPUBLISH = { arity = 3, flags = 'may_replicate', slots = { 1, 1, 1 }, run = publish },
  PUBSUB = { arity = -2, subcommands = {
    CHANNELS = { arity = -2, run = names('channel') },
    HELP = { arity = 2 },
    NUMPAT = { arity = 2, run = patterns },
    NUMSUB = { arity = -2, run = numbers('channel') },
    SHARDCHANNELS = { arity = -2, run = names('shard') },
    SHARDNUMSUB = { arity = -2, run = numbers('shard') },
  } },
}
