-- SPDX-License-Identifier: Apache-2.0
-- What texts have for methods, as in `text:format(1)`, while a script runs: those of its Lua.
local lua51 = require('latchkey.mock.lua51')

local methods = {}
for name, own in pairs(string) do
  methods[name] = lua51.string[name] or own
end

return methods
