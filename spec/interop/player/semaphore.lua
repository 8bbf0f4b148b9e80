-- SPDX-License-Identifier: Apache-2.0
-- RSemaphore: a number, without owners.
local Client = require('interop.player.client')

local Semaphore = Client.kind()

function Semaphore:channel()
  return self.prefixed('redisson_sc', self.name)
end

function Semaphore:available()
  return tonumber(self:ask('GET', self.name) or 0)
end

function Semaphore:exists()
  return self:ask('EXISTS', self.name) == 1
end

---@return integer 1: taken
function Semaphore:try_acquire(permits)
  if not self:exists() or self:available() < permits then
    return 0
  end
  self:ask('DECRBY', self.name, permits)
  return 1
end

function Semaphore:release(permits)
  self:tell(self:channel(), self:ask('INCRBY', self.name, permits))
end

function Semaphore:release_if_exists(permits)
  if not self:exists() then
    return 0
  end
  self:release(permits)
  return 1
end

---@return integer how many there were
function Semaphore:drain()
  if not self:exists() then
    return 0
  end
  local permits = self:available()
  self:ask('SET', self.name, 0)
  return permits
end

---@param ttl? integer ms
function Semaphore:try_set(permits, ttl)
  if self:exists() then
    return 0
  end
  if ttl then
    self:ask('SET', self.name, permits, 'PX', ttl)
  else
    self:ask('SET', self.name, permits)
  end
  self:tell(self:channel(), permits)
  return 1
end

---@param permits integer how many more; below 0: fewer
function Semaphore:add(permits)
  local sum = self:available() + permits
  self:ask('SET', self.name, sum)
  self:tell(self:channel(), sum)
end

return Semaphore
