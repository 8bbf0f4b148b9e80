-- SPDX-License-Identifier: Apache-2.0
-- The calls of a traced hold (checker.follower): may each go out there? Each function answers what
-- is wrong with it, or nothing.
-- Timers may be set to whole ms.
local SLACK_MS = 2
-- A renewal may go out this part of the lease sooner, to travel with others
-- (c/src/harness/watch.c).
local EARLY_PART = 24

local sends = {}

-- Has anything been said that a waiter looks for, since before its last look?
local function may_look(self, now_ms)
  return self.poked > self.acted or (self.data.timers.wake or 0) <= now_ms + SLACK_MS
end

-- As lk_believed_us() counts; other scripts than that of fair locks have none. Answers what is
-- wrong with it.
local function keep_heartbeat(self, event)
  for i, field in ipairs(self.server:header(event.script).argv) do
    if field.name == 'heartbeat' then
      self.limits.heartbeat = tonumber(event.args[i])
      if not self.limits.heartbeat then
        return 'the heartbeat is no number'
      end
      self.limits.heartbeat_drift = math.min(self.limits.drift, self.limits.heartbeat / 100 + 2)
    end
  end
end

function sends.acquire(self, event)
  local pc = self.data.pc
  if pc == 'held' and self.again then
    return self:send(event, function(c, role) role.act.reenter(c) end, self.again)
  elseif pc == 'idle' then
    local wrong = keep_heartbeat(self, event)
    return wrong or self:send(event, function(c)
      c.owner, c.serial, c.pc = self:model_owner(), self:serial(), 'try'
      c:send('try', self.row.acquire, self.role.values(c, c.owner, 1))
    end)
  elseif pc ~= 'sleep' then
    return ('the model sends no acquire in the state "%s"'):format(pc)
  elseif not may_look(self, event.t / 1000) then
    return ('the model looks again in %d ms, or when it hears something'):format(
      self.data.timers.wake - event.t / 1000)
  end
  return self:send(event, function(c)
    c.pc, c.timers.wake = 'try', nil
    c:send('try', self.row.acquire, self.role.values(c, c.owner, 1))
  end)
end

local function is_due(self, now_ms)
  local due = self.data.timers.renew
  return due and due - self:lease_ms() / EARLY_PART <= now_ms + SLACK_MS
end

---Without a connection a renewal that was due goes out later, and may find a hold that is lost.
function sends.arm(self, now_ms)
  self.armed = self.armed or is_due(self, now_ms)
end

function sends.renew(self, event)
  local due, armed = self.data.timers.renew, self.armed
  self.armed = nil
  if not due and armed then
    return self:send(event, function(c)
      c:send('renew', self.row.renew, self.role.values(c, c.owner))
    end)
  elseif not due then
    return 'the model renews nothing there'
  elseif not is_due(self, event.t / 1000) then
    return ('the model renews in %d ms'):format(due - event.t / 1000)
  end
  return self:send(event, function(c, role) role.due.renew(c) end)
end

function sends.release(self, event)
  if self.data.pc == 'held' and self.leaving then
    self.ends_ms, self.armed = self.data.deadline, nil
    return self:send(event, function(c, role) role.act.leave(c) end, nil, self.leaving)
  elseif self.ended or self.data.pc ~= 'held' and self.data.pc ~= 'giveback' then
    return ('the model releases nothing in the state "%s"'):format(self.data.pc)
  end
  return self:send(event, function(c) -- a grant that its application is not told of
    c.pc, c.pipe = 'giveback', {}
    c:send('giveback', self.row.release, self.role.values(c, c.owner, 0))
  end)
end

-- A writer that waits says so, beside its tries.
function sends.wait(self, event)
  if self.data.pc ~= 'sleep' then
    return ('the model does not wait in the state "%s"'):format(self.data.pc)
  end
  return self:send(event, function(c)
    c:send('wait', self.row.wait, self.role.values(c, c.owner))
  end)
end

function sends.beat(self, event)
  if self.data.pc ~= 'sleep' and not self.data.stray then
    return ('the model sends no heartbeat in the state "%s"'):format(self.data.pc)
  elseif self.data.pc == 'sleep' and not may_look(self, event.t / 1000) then
    return 'the model sends no heartbeat so soon'
  end
  return self:send(event, function(c)
    c.owner = c.owner or self:model_owner()
    c.pc, c.timers.wake = 'beat', nil
    c:send('beat', 'fair/wait_renew', self.role.values(c, c.owner))
  end)
end

return sends
