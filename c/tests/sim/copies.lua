-- SPDX-License-Identifier: Apache-2.0
-- Which calls on a key a cluster has taken: has an older one come again behind a newer one?
local Journal = require('latchkey.mock.front.journal')

local copies = {}

local KEPT = 200

---@param log table what a cluster remembers: for each key its calls, the oldest first
---@param key string
function copies.note(log, world, key, command, argv)
  local title = Journal.title(world, command, argv)
  if not title or title:find('/renew', 1, true) then
    return -- renewals are all the same, and none of them sets a count
  end
  local calls = log[key] or {}
  log[key] = calls
  calls[#calls + 1] = ('\0%s\0%s\0'):format(title, table.concat(argv, '\0', 3))
  if #calls > KEPT then
    table.remove(calls, 1)
  end
end

---Was the owner's last call on a key one that had come before, with another of its calls between them?
function copies.older_is_last(log, key, owner)
  local last, newer = nil, false
  local calls = log[key] or {}
  for i = #calls, 1, -1 do
    local call = calls[i]
    if call:find('\0' .. owner .. '\0', 1, true) then
      if not last then
        last = call
      elseif call ~= last then
        newer = true
      elseif newer then
        return true
      end
    end
  end
  return false
end

return copies
