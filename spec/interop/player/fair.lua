-- SPDX-License-Identifier: Apache-2.0
-- RFairLock: an RLock with a queue of owners, and for each a time of the clients' clocks after
-- which it may be dropped.
local Lock = require('interop.player.lock')

local Fair = setmetatable({}, Lock)
Fair.__index = Fair

---Each waiter has a channel of its own.
function Fair:channel()
  return Lock.channel(self) .. ':' .. self.owner
end

function Fair:queue()
  return self.prefixed('redisson_lock_queue', self.name)
end

function Fair:timeouts()
  return self.prefixed('redisson_lock_timeout', self.name)
end

function Fair:head()
  return self:ask('LINDEX', self:queue(), 0)
end

function Fair:score(owner)
  return tonumber(self:ask('ZSCORE', self:timeouts(), owner))
end

-- A head without a score stays for ever, and all behind it.
function Fair:purge()
  local now_ms = self:now_ms()
  local head = self:head()
  local score = head and self:score(head)
  while score and score <= now_ms do
    self:ask('ZREM', self:timeouts(), head)
    self:ask('LPOP', self:queue())
    head = self:head()
    score = head and self:score(head)
  end
end

function Fair:shift(waiters, wait)
  for _, waiter in ipairs(waiters) do
    self:ask('ZINCRBY', self:timeouts(), -wait, waiter)
  end
end

-- Acquires, if it is this owner's turn or the lock is its own already.
function Fair:take(lease, wait)
  local head = self:head()
  if self:ask('EXISTS', self.name) == 0 and (not head or head == self.owner) then
    self:ask('LPOP', self:queue())
    self:ask('ZREM', self:timeouts(), self.owner)
    self:shift(self:ask('ZRANGE', self:timeouts(), 0, -1), wait)
    self:ask('HSET', self.name, self.owner, 1)
  elseif self:ask('HEXISTS', self.name, self.owner) == 1 then
    self:ask('HINCRBY', self.name, self.owner, 1)
  else
    return false
  end
  self.lease = lease or self.WATCHDOG
  self:ask('PEXPIRE', self.name, self.lease)
  return true
end

---@return integer|nil 1: busy, nil: acquired
function Fair:try_lock(lease)
  self:purge()
  return not self:take(lease, self.FAIR_WAIT) and 1 or nil
end

-- How long a waiter is to sleep that has a place. Below 0, a lock() without a time sleeps until it
-- is told.
function Fair:sleep(score, wait)
  return self.by_score and score - wait - self:now_ms()
    or math.max(0, self:ask('PTTL', self.name))
end

---Acquires, or has a place in the queue afterwards.
---@param wait? integer ms, the waiting time of a timed tryLock, or fairLockWaitTimeout
---@return integer|nil ttl nil: acquired
function Fair:lock(lease, wait)
  wait = wait or self.FAIR_WAIT
  self:purge()
  if self:take(lease, wait) then
    return nil
  end
  local score = self:score(self.owner)
  if score then
    return self:sleep(score, wait)
  end
  local now_ms = self:now_ms()
  local last = self:ask('LINDEX', self:queue(), -1)
  local before = last and last ~= self.owner and self:score(last)
  local ttl = before and before - now_ms or self:ask('PTTL', self.name)
  if self:ask('ZADD', self:timeouts(), ttl + wait + now_ms, self.owner) == 1 then
    self:ask('RPUSH', self:queue(), self.owner)
  end
  return ttl
end

---Leaves the queue.
---@param wait? integer ms
function Fair:leave(wait)
  local followers, is_behind = {}, false
  for _, waiter in ipairs(self:ask('LRANGE', self:queue(), 0, -1)) do
    if is_behind then
      table.insert(followers, waiter)
    end
    is_behind = is_behind or waiter == self.owner
  end
  self:shift(followers, wait or self.FAIR_WAIT)
  self:ask('ZREM', self:timeouts(), self.owner)
  self:ask('LREM', self:queue(), 0, self.owner)
end

function Fair:tell_head()
  local head = self:head()
  if head then
    self:tell(Lock.channel(self) .. ':' .. head, 0)
  end
end

---@return integer|nil 1: free, or was free before; 0: still held; nil: not the owner's
function Fair:unlock(request)
  local answered = self:answered(request)
  if answered then
    return answered
  end
  self:purge()
  if self:ask('EXISTS', self.name) == 0 then
    self:tell_head()
    return self:answer(request, 1)
  end
  if self:ask('HEXISTS', self.name, self.owner) == 0 then
    return nil
  end
  if self:ask('HINCRBY', self.name, self.owner, -1) > 0 then
    self:ask('PEXPIRE', self.name, self.lease or self.WATCHDOG)
    return self:answer(request, 0)
  end
  self:ask('DEL', self.name)
  self:answer(request, 1)
  self:tell_head()
  return 1
end

function Fair:force_unlock()
  self:purge()
  local existed = self:ask('DEL', self.name)
  if existed == 1 then
    self:tell_head()
  end
  return existed
end

---Deletes the lock with its queue, and tells nobody.
function Fair:delete()
  return self:ask('DEL', self.name, self:queue(), self:timeouts())
end

return Fair
