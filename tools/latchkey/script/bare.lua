-- SPDX-License-Identifier: Apache-2.0
-- A text that the library does not know by a name, on a server.
local bare = {}

---The scripts that are sent as texts: all of a folder where one has a contract, since the library
---takes only a folder whose scripts have headers.
---@param scripts table[] of the folder
---@return table[]|nil scripts nil: none of them
function bare.texts(scripts)
  for _, script in ipairs(scripts) do
    if script.contract then
      return scripts
    end
  end
end

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
