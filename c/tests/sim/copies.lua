-- SPDX-License-Identifier: Apache-2.0
-- Which calls a server, or all of a cluster, has taken: has an older one come again behind a newer one?
local Journal = require('latchkey.mock.front.journal')

local copies = {}

local KEPT = 1024

function copies.new()
  return { count = 0, titles = {}, calls = {}, conns = {} }
end

---@param log table the last calls of scripts, in a ring
function copies.note(log, world, conn, command, argv)
  local title = Journal.title(world, command, argv)
  if not title or title:find('/renew', 1, true) then
    return -- renewals are all the same, and none of them sets a count
  end
  local at = log.count % KEPT + 1
  log.count = log.count + 1
  log.titles[at], log.calls[at], log.conns[at] = title, argv, conn
end

local function names(argv, owner)
  for i = 5, #argv do
    if argv[i] == owner then
      return true
    end
  end
  return false
end

---Was the owner's last call on a key one that had come before, with another of its calls between them?
---@param is_orphan boolean then it must also have come on a connection that its client had closed
function copies.older_is_last(log, key, owner, is_orphan)
  local last, newer = nil, false
  for i = log.count, math.max(log.count - KEPT, 0) + 1, -1 do
    local at = (i - 1) % KEPT + 1
    local argv = log.calls[at]
    if argv[4] == key and names(argv, owner) then
      local call = log.titles[at] .. '\0' .. table.concat(argv, '\0', 3)
      if not last then
        if is_orphan and not log.conns[at].is_orphan then
          return false
        end
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
