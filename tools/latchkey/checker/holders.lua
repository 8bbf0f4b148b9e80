-- SPDX-License-Identifier: Apache-2.0
-- Who holds a lock, read from the keyspace as each family lays it out:
-- owner -> { level, left_ms, mode }.
local parts = require('latchkey.checker.parts')

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

---A list whose first element is the owner.
function holders.of_list(keys, name)
  local record = keys[name]
  if record and record.type == 'list' and record.value[1] then
    return { [record.value[1]] = { left_ms = left(record), mode = 'write' } }
  end
  return {}
end

---A sorted set of owners and the ends of their leases.
---@return table holders
---@return boolean has_last_ms a lease ends at this very millisecond: some scripts count it as its
---  last, others as the first without
function holders.of_zset(keys, name)
  local found, record, has_last_ms = {}, keys[name], false
  for _, entry in ipairs(record and record.type == 'zset' and record.value or {}) do
    if entry[2] > parts.START_MS then
      found[entry[1]] = { left_ms = entry[2] - parts.START_MS, mode = 'write' }
    end
    has_last_ms = has_last_ms or entry[2] == parts.START_MS
  end
  return found, has_last_ms
end

-- How long a reader of Redisson has the hash: as Redisson left it, if latchkey has prolonged it.
local function left_of_theirs(keys, name)
  local hash, note = keys[name], keys[('latchkey_rw_theirs:{%s}'):format(name)]
  local our_end, their_end = (note and note.value or ''):match('^(%d+) (%d+)$')
  return tonumber(our_end) == hash.expires_at and tonumber(their_end) - parts.START_MS or left(hash)
end

-- A read-write lock: writers by the hash alone; readers as long as their first level is there, or,
-- of Redisson's, the hash.
function holders.of_rw(keys, name)
  local found, record = {}, keys[name]
  local fields = record and record.type == 'hash' and record.value or {}
  for i = 1, #fields, 2 do
    local owner, level = fields[i], tonumber(fields[i + 1])
    local lease = keys[('{%s}:%s:rwlock_timeout:1'):format(name, owner)]
    local is_ours = owner:find('^lk%-')
    if owner:find(':write$') then
      found[owner] = { level = level, left_ms = left(record), mode = 'write' }
    elseif owner ~= 'mode' and is_ours and lease then
      found[owner] = { level = tonumber(lease.value), left_ms = left(lease), mode = 'read' }
    elseif owner ~= 'mode' and not is_ours then
      local left_ms = math.max(left_of_theirs(keys, name), lease and left(lease) or -1)
      found[owner] = left_ms >= 0 and { level = level, left_ms = left_ms, mode = 'read' } or nil
    end
  end
  return found
end

-- Permits: a sorted set of ids and the ends of their leases.
function holders.of_permits(keys, name)
  local found, record = {}, keys[('{%s}:timeout'):format(name)]
  for _, entry in ipairs(record and record.value or {}) do
    if entry[2] > parts.START_MS then
      found[entry[1]] = { left_ms = entry[2] - parts.START_MS, mode = 'permit' }
    end
  end
  return found
end

return holders
