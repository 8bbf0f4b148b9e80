-- SPDX-License-Identifier: Apache-2.0
-- RFencedLock: an RLock that counts its acquisitions.
local Lock = require('interop.player.lock')

local Fenced = setmetatable({}, Lock)
Fenced.__index = Fenced

function Fenced:counter()
  return self.prefixed('redisson_lock_token', self.name)
end

---@return integer ttl -1: acquired
---@return integer token -1: busy
function Fenced:lock_and_get_token(lease)
  local is_free = self:ask('EXISTS', self.name) == 0
  if not is_free and self:ask('HEXISTS', self.name, self.owner) == 0 then
    return self:ask('PTTL', self.name), -1
  end
  local token = self:ask('INCR', self:counter())
  self.lease = lease or self.WATCHDOG
  self:ask('HINCRBY', self.name, self.owner, 1)
  self:ask('PEXPIRE', self.name, self.lease)
  return -1, token
end

---@return integer|nil ttl nil: acquired
function Fenced:lock(lease)
  local ttl, token = self:lock_and_get_token(lease)
  return token == -1 and ttl or nil
end

---@return integer|nil
function Fenced:token()
  return tonumber(self:ask('GET', self:counter()))
end

return Fenced
