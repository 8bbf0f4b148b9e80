-- SPDX-License-Identifier: Apache-2.0
-- RSpinLock: an RLock that tells nobody.
local Lock = require('interop.player.lock')

local Spin = setmetatable({}, Lock)
Spin.__index = Spin

function Spin.free()
end

return Spin
