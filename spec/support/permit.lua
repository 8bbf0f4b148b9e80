-- SPDX-License-Identifier: Apache-2.0
-- What the specs of permits share: ids, and the keys of permits called "job".
local helper = require('helper')

local permit = {}

permit.KEYS = { 'job', '{job}:timeout' }
permit.CHANNEL = 'redisson_sc:{job}'
permit.NEVER = 922337203685477

---An id: raw bytes, as clients of Redisson write them.
---@param number integer
function permit.id(number)
  return ('\0\255%014d'):format(number)
end

---Ids in the order of their numbers.
function permit.ids(from, to)
  local ids = {}
  for number = from, to do
    table.insert(ids, permit.id(number))
  end
  return ids
end

---The keys of permits.
---@param free integer|nil nil: no total is set
---@param held? table[] { number of the id, ms from now | permit.NEVER }
---@param ttl? integer ms, of both
function permit.keys(free, held, ttl)
  local entries, leases = {}, { unpack(held or {}) }
  table.sort(leases, function(a, b)
    return a[2] < b[2] or a[2] == b[2] and a[1] < b[1]
  end)
  for i, lease in ipairs(leases) do
    local score = lease[2] == permit.NEVER and lease[2] or ('@%+.0f'):format(lease[2])
    entries[i] = { permit.id(lease[1]), score }
  end
  return { [permit.KEYS[1]] = free and helper.string(('%d'):format(free), ttl),
    [permit.KEYS[2]] = #entries > 0 and helper.zset(entries, ttl) or nil }
end

---Puts so many permits into a world, whose leases have ended. Their ids are numbers.
function permit.fill_ended(world, count)
  local ended_ms = world:now_ms() - 1000
  for first = 1, count, 500 do
    local arguments = { 'ZADD', permit.KEYS[2] }
    for number = first, math.min(first + 499, count) do
      table.insert(arguments, ended_ms)
      table.insert(arguments, permit.id(number))
    end
    assert(world:command(unpack(arguments)))
  end
end

function permit.told(message, verb)
  return { { verb = verb or 'PUBLISH', channel = permit.CHANNEL, message = message } }
end

return permit
