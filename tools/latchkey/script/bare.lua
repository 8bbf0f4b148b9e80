-- SPDX-License-Identifier: Apache-2.0
-- A text that the library does not know by a name, on a server: one with a contract, or with none.
local bare = {}

---EVAL. What it says of a failure has the line, as for scripts of the library.
---@param client latchkey.client
---@param source string
---@param keys string[]
---@param args string[]
---@return any reply
---@return latchkey.error|nil err
function bare.eval(client, source, keys, args)
  local argv = { 'EVAL', source, #keys }
  for _, list in ipairs({ keys, args }) do
    for _, value in ipairs(list) do
      argv[#argv + 1] = value
    end
  end
  local reply, err = client:command(argv)
  if err then
    err.line = err.line or tonumber(err.message:match('@user_script:(%d+)'))
  end
  return reply, err
end

return bare
