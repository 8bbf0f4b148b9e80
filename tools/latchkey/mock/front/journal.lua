-- SPDX-License-Identifier: Apache-2.0
-- What was called: commands of clients on keys and scripts, the last ones of them.
local execute = require('latchkey.mock.front.execute')

local Journal = {}
Journal.__index = Journal

---@param limit integer 0: nothing is remembered
function Journal.new(limit)
  return setmetatable({ limit = limit, count = 0, calls = {} }, Journal)
end

---The name in the header of the script that a command runs; of a function without one, its own.
---@return string|nil
function Journal.title(world, command, argv)
  local name = command.name
  if name == 'EVALSHA' or name == 'EVALSHA_RO' then
    local script = world.library:find(argv[2]:lower())
    return script and script.title
  elseif name == 'EVAL' or name == 'EVAL_RO' then
    return argv[2]:match('\nname: *(%S+)')
  elseif name == 'FCALL' or name == 'FCALL_RO' then
    local item = world.functions:find(argv[2])
    return item and item.description and item.description:match('^%l[%l%d_]*/[%l%d_]+') or argv[2]
  end
end

---@param conn table
---@param command table
---@param argv string[]
---@param err string|nil
function Journal:add(front, conn, command, argv, err)
  if self.limit == 0 or not execute.names_keys(command) then
    return
  end
  local count = self.count
  self.calls[count % self.limit + 1] = { ms = front.world.clock.ms, client = conn.id,
    command = command.name:lower(), script = Journal.title(front.world, command, argv),
    keys = execute.keys(command, argv), err = err }
  self.count = count + 1
end

---@param n integer
---@return table[] the last n, oldest first: { ms, client, command, script, keys, err }
function Journal:last(n)
  local list = {}
  for i = math.max(self.count - math.min(n, self.limit), 0) + 1, self.count do
    list[#list + 1] = self.calls[(i - 1) % self.limit + 1]
  end
  return list
end

function Journal:clear()
  self.count, self.calls = 0, {}
end

return Journal
