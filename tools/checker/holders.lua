-- SPDX-License-Identifier: Apache-2.0
-- Who holds a lock, read from the keyspace as each family lays it out:
-- owner -> { level, left_ms, mode }.
local parts = require('checker.parts')

local holders = {}

local function left(record)
  return record.expires_at and record.expires_at - parts.START_MS or math.huge
end
holders.left = left

---A hash of owner -> count, whose TTL is the lease.
function holders.of_hash(keys, name)
  local found, record = {}, keys[name]
  if record and record.type == 'hash' then
    for i = 1, #record.value, 2 do
      found[record.value[i]] = { level = tonumber(record.value[i + 1]), left_ms = left(record),
        mode = 'write' }
    end
  end
  return found
end

---A string that is the owner.
function holders.of_string(keys, name)
  local record = keys[name]
  if record and record.type == 'string' then
    return { [record.value] = { left_ms = left(record), mode = 'write' } }
  end
  return {}
end

return holders
