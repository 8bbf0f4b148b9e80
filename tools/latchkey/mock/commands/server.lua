-- SPDX-License-Identifier: Apache-2.0
-- The server itself.

local function time(world)
  local ms = world.clock:time()
  return { ('%.0f'):format(math.floor(ms / 1000)),
    ('%.0f'):format(ms % 1000 * 1000 + world.clock.beyond_us) }
end

local function ping(_, argv)
  if #argv > 2 then
    return nil, "ERR wrong number of arguments for 'ping' command"
  end
  return argv[2] or { ok = 'PONG' }
end

local function echo(_, argv)
  return argv[2]
end

return {
  TIME = { arity = 1, run = time },
  PING = { arity = -1, run = ping },
  ECHO = { arity = 2, run = echo },
}
