-- SPDX-License-Identifier: Apache-2.0
-- A command of the mock, from what its group says of it.

---Notes its name, and each of its flags by itself; of its subcommands likewise.
---@param name string
---@param command table
local function prepare(name, command)
  command.name = name
  for flag in (command.flags or ''):gmatch('%S+') do
    command[flag] = true
  end
  for word, subcommand in pairs(command.subcommands or {}) do
    prepare(name .. '|' .. word, subcommand)
  end
end

return prepare
