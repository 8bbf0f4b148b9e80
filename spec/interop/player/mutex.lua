-- SPDX-License-Identifier: Apache-2.0
-- Not Redisson's: the lock that is one string, as redis-py, redsync and others take it.
local Client = require('interop.player.client')

local Mutex = Client.kind()

---@return boolean acquired
function Mutex:lock(lease)
  return self:ask('SET', self.name, self.owner, 'NX', 'PX', lease) ~= nil
end

---@return boolean released
function Mutex:unlock()
  return self:ask('GET', self.name) == self.owner and self:ask('DEL', self.name) == 1
end

---@return boolean extended
function Mutex:renew(lease)
  return self:ask('GET', self.name) == self.owner and self:ask('PEXPIRE', self.name, lease) == 1
end

return Mutex
