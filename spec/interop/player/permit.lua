-- SPDX-License-Identifier: Apache-2.0
-- RPermitExpirableSemaphore: the number of free permits, and the ids of the others in the order in
-- which their leases end, by the clocks of the clients.
local Client = require('interop.player.client')

local Permit = Client.kind()

---The score of a permit that is kept for ever.
Permit.NEVER = 922337203685477

function Permit:channel()
  return self.prefixed('redisson_sc', self.name)
end

function Permit:timeouts()
  return self.suffixed(self.name, 'timeout')
end

function Permit:score(id)
  return tonumber(self:ask('ZSCORE', self:timeouts(), id))
end

function Permit:value()
  return tonumber(self:ask('GET', self.name))
end

function Permit:expiry(lease)
  return lease and self:now_ms() + lease or self.NEVER
end

-- Takes back what is over, at most so many.
function Permit:reclaim(limit)
  local over = self:ask('ZRANGEBYSCORE', self:timeouts(), 0, self:now_ms(), 'LIMIT', 0, limit or -1)
  for _, id in ipairs(over) do
    self:ask('ZREM', self:timeouts(), id)
  end
  if #over > 0 then
    local value = self:ask('INCRBY', self.name, #over)
    if value > 0 then
      self:tell(self:channel(), value)
    end
  end
end

---@param ids string[] 16 bytes each
---@param lease? integer ms
---@return 'OK'|integer|nil wait until the next permit is over, nil: none will be
function Permit:acquire(ids, lease)
  self:reclaim(#ids)
  local value = self:value()
  if value and value >= #ids then
    self:ask('DECRBY', self.name, #ids)
    for _, id in ipairs(ids) do
      self:ask('ZADD', self:timeouts(), self:expiry(lease), id)
    end
    local ttl = self:ask('PTTL', self.name)
    if ttl > 0 then
      self:ask('PEXPIRE', self:timeouts(), ttl)
    end
    return 'OK'
  end
  local nearest = self:ask('ZRANGE', self:timeouts(), 0, 0, 'WITHSCORES')[2]
  if nearest and tonumber(nearest) ~= self.NEVER then
    return nearest - self:now_ms()
  end
end

---@return integer 1: released, 0: it was over or is unknown
function Permit:release(id)
  local score = self:score(id)
  if not score then
    return 0
  end
  self:ask('ZREM', self:timeouts(), id)
  self:tell(self:channel(), self:ask('INCRBY', self.name, 1))
  return score > self:now_ms() and 1 or 0
end

---All of them, or none.
---@return integer how many
function Permit:release_all(ids)
  local now_ms = self:now_ms()
  for _, id in ipairs(ids) do
    if (self:score(id) or 0) <= now_ms then
      return 0
    end
  end
  self:reclaim()
  for _, id in ipairs(ids) do
    self:ask('ZREM', self:timeouts(), id)
  end
  self:ask('INCRBY', self.name, #ids)
  self:tell(self:channel(), #ids)
  return #ids
end

function Permit:available()
  self:reclaim()
  return self:value() or 0
end

function Permit:total()
  return self:available() + self:ask('ZCARD', self:timeouts())
end

function Permit:acquired()
  self:reclaim()
  return self:ask('ZCARD', self:timeouts())
end

function Permit:try_set(permits)
  if self:value() then
    return 0
  end
  self:ask('SET', self.name, permits)
  self:tell(self:channel(), permits)
  return 1
end

function Permit:set(permits)
  if self:try_set(permits) == 1 then
    return
  end
  local total = self:value() + self:ask('ZCARD', self:timeouts())
  if total ~= permits then
    self:ask('INCRBY', self.name, permits - total)
    self:tell(self:channel(), permits)
  end
end

---@param permits integer how many more; below 0: fewer
function Permit:add(permits)
  self:ask('SET', self.name, (self:value() or 0) + permits)
  if permits > 0 then
    self:tell(self:channel(), permits)
  end
end

---@param lease? integer ms
---@return integer 1: the permit has this lease now
function Permit:update_lease(id, lease)
  self:reclaim()
  if not self:score(id) then
    return 0
  end
  self:ask('ZADD', self:timeouts(), self:expiry(lease), id)
  return 1
end

---@return integer ms; -1: for ever, 0: none
function Permit:remaining(id)
  self:reclaim()
  local score = self:score(id)
  if score == self.NEVER then
    return -1
  end
  return score and score - self:now_ms() or 0
end

---Deletes the permits with their leases, and tells nobody.
function Permit:delete()
  return self:ask('DEL', self.name, self:timeouts())
end

return Permit
