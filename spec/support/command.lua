-- SPDX-License-Identifier: Apache-2.0
-- Runs a command that needs no library, without the program, in a process of its own.
local utils = require('pl.utils')

local command = {}

local START = "LUA_PATH='tools/?.lua;tools/?/init.lua;;' luajit -e %s"
local MAIN = "jit.off() os.exit(require('latchkey.cli').main('.', {%s}, function() return 64 end))"

---@param ... string the command and its arguments
---@return integer exit code
---@return string stdout
---@return string stderr
function command.run(...)
  local arguments = {}
  for i, argument in ipairs({ ... }) do
    arguments[i] = ('%q'):format(argument)
  end
  local main = MAIN:format(table.concat(arguments, ', '))
  local _, code, out, err = utils.executeex(START:format(utils.quote_arg(main)))
  return code, out, err
end

return command
