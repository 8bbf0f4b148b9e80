-- SPDX-License-Identifier: Apache-2.0
-- RLock: a hash with one field, the owner, whose value counts its holds.
local Client = require('interop.player.client')

local Lock = Client.kind()

function Lock:channel()
  return self.prefixed('redisson_lock__channel', self.name)
end

function Lock:free()
  self:tell(self:channel(), 0)
end

---tryLock() as well: both send the same.
---@return integer|nil ttl nil: acquired
function Lock:lock(lease)
  local is_free = self:ask('EXISTS', self.name) == 0
  if not is_free and self:ask('HEXISTS', self.name, self.owner) == 0 then
    return self:ask('PTTL', self.name)
  end
  self.lease = lease or self.WATCHDOG
  self:ask('HINCRBY', self.name, self.owner, 1)
  self:ask('PEXPIRE', self.name, self.lease)
end

---@return integer|nil 1: free, 0: still held, nil: not the owner's
function Lock:unlock(request)
  local answered = self:answered(request)
  if answered then
    return answered
  end
  if self:ask('HEXISTS', self.name, self.owner) == 0 then
    return nil
  end
  if self:ask('HINCRBY', self.name, self.owner, -1) > 0 then
    self:ask('PEXPIRE', self.name, self.lease or self.WATCHDOG)
    return self:answer(request, 0)
  end
  self:ask('DEL', self.name)
  self:free()
  return self:answer(request, 1)
end

function Lock:force_unlock()
  local existed = self:ask('DEL', self.name)
  if existed == 1 then
    self:free()
  end
  return existed
end

---What the watchdog sends.
function Lock:renew(lease)
  if self:ask('HEXISTS', self.name, self.owner) == 0 then
    return 0
  end
  return self:ask('PEXPIRE', self.name, lease or self.WATCHDOG)
end

function Lock:is_locked()
  return self:ask('EXISTS', self.name)
end

function Lock:is_held()
  return self:ask('HEXISTS', self.name, self.owner)
end

function Lock:hold_count()
  return tonumber(self:ask('HGET', self.name, self.owner) or 0)
end

---@return integer ms; -2: absent, -1: no lease
function Lock:remaining()
  return self:ask('PTTL', self.name)
end

return Lock
