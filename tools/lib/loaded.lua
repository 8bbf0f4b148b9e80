-- SPDX-License-Identifier: Apache-2.0
-- Which scripts a server has.
local loaded = {}

---@param client latchkey.client
---@return table[]|nil scripts { name, version, sha1, loaded }, sorted by name
---@return latchkey.error|nil err
function loaded.scripts(client)
  local scripts, digests = client:scripts(), {}
  for i, script in ipairs(scripts) do
    digests[i] = script.sha1
  end
  local reply, err = client:command('SCRIPT', 'EXISTS', unpack(digests))
  if not reply then
    return nil, err
  end
  for i, script in ipairs(scripts) do
    scripts[i] = { name = script.name, version = script.version, sha1 = script.sha1,
      loaded = reply[i] == 1 }
  end
  return scripts
end

---@param scripts table[] as of loaded.scripts
---@return string[] names of those that the server lacks
function loaded.missing(scripts)
  local missing = {}
  for _, script in ipairs(scripts) do
    if not script.loaded then
      missing[#missing + 1] = script.name
    end
  end
  return missing
end

return loaded
