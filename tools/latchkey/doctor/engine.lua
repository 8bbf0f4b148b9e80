-- SPDX-License-Identifier: Apache-2.0
-- Which engine a server is: many say that they are a Redis of some version, and beside it what
-- they are, by what each engine's INFO has. Tested are Redis, Valkey and Redict.
local engine = {}

local ENGINES = {
  { field = 'dragonfly_version', name = 'Dragonfly' },
  { field = 'kvrocks_version', name = 'Kvrocks' },
  { field = 'garnet_version', name = 'Garnet' },
  { field = 'redict_version', name = 'Redict', is_tested = true },
  { field = 'upstash_version', name = 'Upstash' },
}

-- Those that name themselves in another field.
local HINTS = {
  { field = 'executable', pattern = 'keydb', name = 'KeyDB' },
  { field = 'config_file', pattern = 'keydb', name = 'KeyDB' },
  { field = 'server_name', pattern = '^redict$', name = 'Redict', is_tested = true },
}

-- What HELLO says may be any name; these two are what INFO is asked about.
local function of_hello(facts)
  local said = facts.hello_server
  if not said or said == 'redis' or said == 'valkey' then
    return nil
  end
  return said:gsub('^%l', string.upper), facts.hello_version or '?'
end

-- Who runs it: what Amazon's services say for the operating system, and Redis Enterprise, of which
-- Redis Cloud and Azure Managed Redis are made, for its own version.
local function host_of(facts)
  if (facts.os or ''):find('Amazon', 1, true) then
    return facts.os
  end
  return facts.rlec_version and 'Redis Enterprise ' .. facts.rlec_version or nil
end

---@param facts table<string, string> fields of INFO; hello_server and hello_version of HELLO
---@return { name: string, version: string, is_tested: boolean, host: string|nil } engine; `host`
---  is who runs it, where it is a managed one
function engine.of(facts)
  local host = host_of(facts)
  for _, row in ipairs(ENGINES) do
    if facts[row.field] then
      return { name = row.name, version = facts[row.field], host = host,
        is_tested = row.is_tested == true and host == nil }
    end
  end
  for _, row in ipairs(HINTS) do
    if (facts[row.field] or ''):lower():find(row.pattern) then
      return { name = row.name, version = facts.redis_version or '?', host = host,
        is_tested = row.is_tested == true and host == nil }
    end
  end
  local name, version = of_hello(facts)
  if name then
    return { name = name, version = version, is_tested = false, host = host }
  end
  local is_valkey = facts.valkey_version ~= nil
  return { name = is_valkey and 'Valkey' or 'Redis', is_tested = host == nil, host = host,
    version = facts.valkey_version or facts.redis_version or '?' }
end

return engine
