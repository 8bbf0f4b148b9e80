-- SPDX-License-Identifier: Apache-2.0
-- A second implementation of the fair lock on the wire: Redisson's, with a clock of its own, which
-- knows nothing of latchkey's. Specs let the two meet.
local fair = require('support.fair')

local Redisson = {}
Redisson.__index = Redisson

local LOCK, QUEUE, TIMEOUTS = fair.KEYS[1], fair.KEYS[2], fair.KEYS[3]

---@param owner string
---@param skew_ms? integer how far its clock is ahead of the server's
function Redisson.new(world, owner, skew_ms)
  return setmetatable({ world = world, owner = owner, skew_ms = skew_ms or 0 }, Redisson)
end

-- nil where the server answers nil.
function Redisson:ask(...)
  local reply, err = self.world:command(...)
  assert(err == nil, err and err.message)
  return reply ~= self.world.null and reply or nil
end

function Redisson:now_ms()
  return self.world:now_ms() + self.skew_ms
end

function Redisson:score(owner)
  return tonumber(self:ask('ZSCORE', TIMEOUTS, owner))
end

function Redisson:purge()
  local now_ms = self:now_ms()
  local head = self:ask('LINDEX', QUEUE, 0)
  while head and self:score(head) and self:score(head) <= now_ms do
    self:ask('ZREM', TIMEOUTS, head)
    self:ask('LPOP', QUEUE)
    head = self:ask('LINDEX', QUEUE, 0)
  end
end

-- Takes a free lock whose queue it heads, or raises its own count.
function Redisson:take(wait_ms)
  local head = self:ask('LINDEX', QUEUE, 0)
  if self:ask('EXISTS', LOCK) == 0 and (not head or head == self.owner) then
    self:ask('LPOP', QUEUE)
    self:ask('ZREM', TIMEOUTS, self.owner)
    for _, waiter in ipairs(self:ask('ZRANGE', TIMEOUTS, 0, -1)) do
      self:ask('ZINCRBY', TIMEOUTS, -wait_ms, waiter)
    end
    self:ask('HSET', LOCK, self.owner, 1)
    self:ask('PEXPIRE', LOCK, fair.LEASE)
    return true
  elseif self:ask('HEXISTS', LOCK, self.owner) == 1 then
    self:ask('HINCRBY', LOCK, self.owner, 1)
    self:ask('PEXPIRE', LOCK, fair.LEASE)
    return true
  end
  return false
end

---@return boolean
function Redisson:try_lock()
  self:purge()
  return self:take(fair.WAIT)
end

---@return integer|nil ttl nil: acquired
function Redisson:lock()
  self:purge()
  if self:take(fair.WAIT) then
    return nil
  elseif self:score(self.owner) then
    return math.max(0, self:ask('PTTL', LOCK))
  end
  local now_ms = self:now_ms()
  local last = self:ask('LINDEX', QUEUE, -1)
  local before = last and last ~= self.owner and self:score(last)
  local ttl = before and before - now_ms or self:ask('PTTL', LOCK)
  if self:ask('ZADD', TIMEOUTS, ttl + fair.WAIT + now_ms, self.owner) == 1 then
    self:ask('RPUSH', QUEUE, self.owner)
  end
  return ttl
end

function Redisson:leave()
  local is_behind = false
  for _, waiter in ipairs(self:ask('LRANGE', QUEUE, 0, -1)) do
    if is_behind then
      self:ask('ZINCRBY', TIMEOUTS, -fair.WAIT, waiter)
    end
    is_behind = is_behind or waiter == self.owner
  end
  self:ask('ZREM', TIMEOUTS, self.owner)
  self:ask('LREM', QUEUE, 0, self.owner)
end

function Redisson:tell_head()
  local head = self:ask('LINDEX', QUEUE, 0)
  if head then
    self:ask('PUBLISH', fair.CHANNEL .. ':' .. head, 0)
  end
end

---@return integer|nil 1: free, 0: still held, nil: not the owner's
function Redisson:unlock()
  self:purge()
  if self:ask('EXISTS', LOCK) == 0 then
    self:tell_head()
    return 1
  elseif self:ask('HEXISTS', LOCK, self.owner) == 0 then
    return nil
  elseif self:ask('HINCRBY', LOCK, self.owner, -1) > 0 then
    self:ask('PEXPIRE', LOCK, fair.LEASE)
    return 0
  end
  self:ask('DEL', LOCK)
  self:tell_head()
  return 1
end

function Redisson:force_unlock()
  self:purge()
  if self:ask('DEL', LOCK) == 1 then
    self:tell_head()
  end
end

return Redisson
