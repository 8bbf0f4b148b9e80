-- SPDX-License-Identifier: Apache-2.0
-- The short name of what specs stand on; `latchkey spec` gives it to everybody's. The project's own
-- mock is watched besides: scripts must not care what owners are called.
local helper = require('latchkey.spec')
local watched = require('support.watched')

if not helper.is_watched then
  helper.is_watched = true
  local mock_world = helper.mock_world
  function helper.mock_world()
    return watched.world(mock_world(), { scripts = helper.scripts })
  end
end

return helper
