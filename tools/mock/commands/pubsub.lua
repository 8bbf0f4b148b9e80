-- SPDX-License-Identifier: Apache-2.0
-- Publishing. Nobody subscribes to a mock: messages are kept until world:messages() takes them.

local function publish(world, argv)
  local outbox = world.outbox
  outbox[#outbox + 1] = { verb = argv[1]:upper(), channel = argv[2], message = argv[3] }
  return 0
end

-- A sharded channel belongs to a slot, as a key does, but nobody declares it.
return {
  PUBLISH = { arity = 3, flags = 'may_replicate', run = publish },
  SPUBLISH = { arity = 3, flags = 'may_replicate', slots = { 1, 1, 1 }, run = publish },
}
