-- SPDX-License-Identifier: Apache-2.0
-- The mock as a session sees it: a world that can be emptied.
local World = require('latchkey.mock.world')

local mock = {}

---@param options world.options
---@return table world
function mock.new(options)
  local world = World.new(options)
  local empty = world:snapshot()
  function world.reset()
    world:restore(empty)
  end
  return world
end

return mock
