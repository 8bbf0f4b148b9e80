-- SPDX-License-Identifier: Apache-2.0
-- RReadWriteLock: a hash with a mode, and a field for each reader and for the writer; beside it one
-- string for each read hold, whose TTL is that hold's lease.
local Client = require('interop.player.client')

local Rw = Client.kind()

function Rw:channel()
  return self.prefixed('redisson_rwlock', self.name)
end

function Rw:writer()
  return self.owner .. ':write'
end

function Rw:level(owner, i)
  return ('%s:rwlock_timeout:%d'):format(self.suffixed(self.name, owner), i)
end

function Rw:mode()
  return self:ask('HGET', self.name, 'mode')
end

function Rw:hold_level(i, lease)
  self:ask('SET', self:level(self.owner, i), 1)
  self:ask('PEXPIRE', self:level(self.owner, i), lease)
end

---@return integer|nil ttl nil: acquired
function Rw:read_lock(lease)
  lease = lease or self.WATCHDOG
  local mode = self:mode()
  if not mode then
    self:ask('HSET', self.name, 'mode', 'read')
    self:ask('HSET', self.name, self.owner, 1)
    self:hold_level(1, lease)
    self:ask('PEXPIRE', self.name, lease)
    return nil
  end
  if mode == 'write' and self:ask('HEXISTS', self.name, self:writer()) == 0 then
    return self:ask('PTTL', self.name)
  end
  self:hold_level(self:ask('HINCRBY', self.name, self.owner, 1), lease)
  self:ask('PEXPIRE', self.name, math.max(self:ask('PTTL', self.name), lease))
end

-- The longest lease that any read hold has left; nothing is said of the writer's.
function Rw:longest_read()
  local longest = -3
  for _, field in ipairs(self:ask('HKEYS', self.name)) do
    local count = tonumber(self:ask('HGET', self.name, field)) or 0
    for i = count, 1, -1 do
      longest = math.max(longest, self:ask('PTTL', self:level(field, i)))
    end
  end
  return longest
end

---@return integer|nil 1: free, 0: still held, nil: not the owner's
function Rw:read_unlock(request)
  local answered = self:answered(request)
  if answered then
    return answered
  end
  local mode = self:mode()
  if not mode then
    self:tell(self:channel(), 0)
    self:answer(request, 1)
    return nil
  end
  if self:ask('HEXISTS', self.name, self.owner) == 0 then
    return nil
  end
  local count = self:ask('HINCRBY', self.name, self.owner, -1)
  if count == 0 then
    self:ask('HDEL', self.name, self.owner)
  end
  self:ask('DEL', self:level(self.owner, count + 1))
  if self:ask('HLEN', self.name) > 1 then
    local longest = self:longest_read()
    if longest > 0 then
      self:ask('PEXPIRE', self.name, longest)
      return self:answer(request, 0)
    elseif mode == 'write' then
      return self:answer(request, 0)
    end
  end
  self:ask('DEL', self.name)
  self:tell(self:channel(), 0)
  return self:answer(request, 1)
end

---RObject.expire(), and the last step of a RedissonMultiLock with a lease: it looks at nothing.
function Rw:expire(lease)
  return self:ask('PEXPIRE', self.name, lease)
end

-- All readers of the hash, and their levels; false: this one does not read.
function Rw:renew_all()
  if self:read_is_held() == 0 then
    return false
  end
  self:ask('PEXPIRE', self.name, self.WATCHDOG)
  for _, field in ipairs(self:ask('HKEYS', self.name)) do
    for i = tonumber(self:ask('HGET', self.name, field)) or 0, 1, -1 do
      self:ask('PEXPIRE', self:level(field, i), self.WATCHDOG)
    end
  end
  return true
end

-- One name of a pass: its hash, and levels under the name that came first. Who has two fails it.
function Rw:renew_by_first(first)
  if self:read_is_held() == 0 then
    return false
  end
  self:ask('PEXPIRE', self.name, self.WATCHDOG)
  local readers = {}
  for _, field in ipairs(self:ask('HKEYS', self.name)) do
    local count = tonumber(self:ask('HGET', self.name, field)) or 0
    if count > 1 then
      return nil
    elseif count == 1 then
      table.insert(readers, field)
    end
  end
  for _, field in ipairs(readers) do
    self:ask('PEXPIRE', first:level(field, 1), self.WATCHDOG)
  end
  return true
end

-- The own levels, and the hash if one of them is there.
function Rw:renew_own()
  local renewed = 0
  for i = 1, self:read_hold_count() do
    renewed = renewed + self:ask('PEXPIRE', self:level(self.owner, i), self.WATCHDOG)
  end
  return renewed > 0 and self:ask('PEXPIRE', self.name, self.WATCHDOG) == 1
end

-- How readers are renewed from each of these versions on.
local AGES = { ['3.17+'] = Rw.renew_all, ['3.44+'] = Rw.renew_by_first, ['4.0+'] = Rw.renew_all,
  ['4.4+'] = Rw.renew_own }

---A pass of the watchdog, for all names that this thread reads.
---@param age string
---@param names string[] in the order in which the pass has them
---@return table|nil replies 1 or 0 for each; nil: the script failed, and the rest is not renewed
function Rw:read_pass(age, names)
  local first, replies = nil, { n = #names }
  for i, name in ipairs(names) do
    local other = Rw:new(self.world, { name = name, owner = self.owner })
    other.WATCHDOG = self.WATCHDOG
    first = first or other
    local is_renewed = AGES[age](other, first)
    if is_renewed == nil then
      return nil
    end
    replies[i] = is_renewed and 1 or 0
  end
  return replies
end

---What the watchdog sends for this name alone.
---@param age? string
---@return integer|nil 1 or 0; nil: the script failed
function Rw:read_renew(age)
  local replies = self:read_pass(age or '4.4+', { self.name })
  return replies and replies[1]
end

function Rw:force_unlock(mode, message)
  if self:mode() ~= mode then
    return 0
  end
  self:ask('DEL', self.name)
  self:tell(self:channel(), message)
  return 1
end

function Rw:read_force_unlock()
  return self:force_unlock('read', 0)
end

function Rw:read_is_locked()
  local mode = self:mode()
  local is_locked = mode == 'read' or mode == 'write' and self:ask('HLEN', self.name) > 2
  return is_locked and 1 or 0
end

function Rw:read_is_held()
  return self:ask('HEXISTS', self.name, self.owner)
end

function Rw:read_hold_count()
  return tonumber(self:ask('HGET', self.name, self.owner) or 0)
end

---Of either side.
---@return integer ms; -2: absent, -1: no lease
function Rw:remaining()
  return self:ask('PTTL', self.name)
end

---@return integer|nil ttl nil: acquired
function Rw:write_lock(lease)
  lease = lease or self.WATCHDOG
  local mode = self:mode()
  if not mode then
    self:ask('HSET', self.name, 'mode', 'write')
    self:ask('HSET', self.name, self:writer(), 1)
    self:ask('PEXPIRE', self.name, lease)
  elseif mode == 'write' and self:write_is_held() == 1 then
    self:ask('HINCRBY', self.name, self:writer(), 1)
    self:ask('PEXPIRE', self.name, self:ask('PTTL', self.name) + lease)
  else
    return self:ask('PTTL', self.name)
  end
  self.lease = lease
end

---@return integer|nil 1: no longer a writer, 0: still one, nil: none before
function Rw:write_unlock(request)
  local answered = self:answered(request)
  if answered then
    return answered
  end
  local mode = self:mode()
  if not mode then
    self:tell(self:channel(), 1)
    self:answer(request, 1)
    return nil
  end
  if mode ~= 'write' or self:write_is_held() == 0 then
    return nil
  end
  if self:ask('HINCRBY', self.name, self:writer(), -1) > 0 then
    self:ask('PEXPIRE', self.name, self.lease or self.WATCHDOG)
    return self:answer(request, 0)
  end
  self:ask('HDEL', self.name, self:writer())
  if self:ask('HLEN', self.name) == 1 then
    self:ask('DEL', self.name)
    self:tell(self:channel(), 1)
  else
    self:ask('HSET', self.name, 'mode', 'read')
  end
  return self:answer(request, 1)
end

---What the watchdog sends.
function Rw:write_renew()
  if self:write_is_held() == 0 then
    return 0
  end
  return self:ask('PEXPIRE', self.name, self.WATCHDOG)
end

function Rw:write_force_unlock()
  return self:force_unlock('write', 1)
end

function Rw:write_is_locked()
  return self:mode() == 'write' and 1 or 0
end

function Rw:write_is_held()
  return self:ask('HEXISTS', self.name, self:writer())
end

function Rw:write_hold_count()
  return tonumber(self:ask('HGET', self.name, self:writer()) or 0)
end

return Rw
