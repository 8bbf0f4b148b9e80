-- SPDX-License-Identifier: Apache-2.0
-- The keyspace: key -> record { type, value, expires_at }. A record is never changed, only
-- replaced, so a copy of the table of keys is a snapshot of everything. `written` counts the
-- elements of what was put, for who sets it back.
local Store = {}
Store.__index = Store

---@param clock table
function Store.new(clock)
  return setmetatable({ clock = clock, keys = {}, undo = {}, written = 0 }, Store)
end

-- A key lives to the end of its last millisecond: it has expired when the time is past it.
function Store:get(key)
  local record = self.keys[key]
  if record and record.expires_at and self.clock.begun > record.expires_at then
    self.keys[key] = nil
    return nil
  end
  return record
end

---@param record table|nil nil removes the key
function Store:put(key, record)
  local undo = self.undo
  local n = #undo
  undo[n + 1] = key
  undo[n + 2] = self.keys[key] or false
  self.keys[key] = record
  if record and type(record.value) == 'table' then
    self.written = self.written + #record.value
  end
end

---A write that changes nothing: who looks at writes sees it, and who watches the key does not.
---@param key string
function Store:confirm(key)
  local record = self:get(key)
  if record then
    self:put(key, record)
  end
end

function Store:clear()
  for _, key in ipairs(self:names()) do
    self:put(key, nil)
  end
end

---The live keys in byte order.
---@return string[]
function Store:names()
  local names, now = {}, self.clock.begun
  for key, record in pairs(self.keys) do
    if not (record.expires_at and now > record.expires_at) then
      names[#names + 1] = key
    end
  end
  table.sort(names)
  return names
end

---A point to which `rollback` returns.
function Store:begin()
  self.undo = {}
end

function Store:rollback()
  local undo, keys = self.undo, self.keys
  for i = #undo - 1, 1, -2 do
    keys[undo[i]] = undo[i + 1] or nil
  end
  self.undo = {}
end

---@param keys table is the store's from now on
function Store:replace(keys)
  self.keys = keys
  self.undo = {}
end

function Store:snapshot()
  local copy = {}
  for key, record in pairs(self.keys) do
    copy[key] = record
  end
  return copy
end

---@param snapshot table stays usable: it is copied again
function Store:restore(snapshot)
  self.keys = snapshot
  self.keys = self:snapshot()
  self.undo = {}
end

return Store
