-- SPDX-License-Identifier: Apache-2.0
-- Time passes: all moments come nearer.
--
-- Where a model says `far_ms`, moments that are further off than that are known only up to whole
-- thirds of a lease: one state stands for all that differ by the same number of thirds added to
-- every such moment. When the first of them would come nearer than far_ms, it does so, or the state
-- was one of those in which it is a third or more later ("+100*"). So an end in half a minute needs
-- no three hundred thirds; what is found to hold, holds for it and for all later ones. Nothing in
-- scripts and clients may compare what is near with what is far but by which is later, and so
-- far_ms is more than any lease, wait or heartbeat of the model.
local Server = require('latchkey.checker.server')
local parts = require('latchkey.checker.parts')

local passing = {}

---May something begin now that could have begun at any time?
function passing.is_occasion(self, state)
  local phase = state[self.PHASE]
  return phase == 0 or self.limits.edges and phase == self.limits.third - 1
end

-- How far off the nearest of the far moments in a part is.
local function far_of(part, far_ms)
  local far = part.far
  if far == nil then
    far = false
    for digits in part.text:gmatch(parts.DIGITS) do
      local n = #digits == 13 and tonumber(digits)
      if n and parts.is_moment(n) and n - parts.START_MS >= far_ms then
        far = math.min(far or math.huge, n - parts.START_MS)
      end
    end
    part.far = far
  end
  return far
end

-- How many thirds of a lease an end is off that time is let pass for, of keys as of what stands in
-- values: with thirds of 100 ms, half a minute.
local FAR_THIRDS = 300

local function far_ms_of(self)
  return math.max(FAR_THIRDS * self.limits.third, Server.FAR_MS)
end

-- Between which moments something counts, in a client's part or another. Scripts and promises of
-- somebody's own may look back as far as past_ms says. Of latchkey's families only clients look
-- back, at when a call was sent, which counts for a lease. What is later than all leases there is
-- half a minute of Redisson's, and what is in microseconds are tokens, of which the order counts.
local function ages_between(self, is_client)
  local past_ms = self.pool.past_ms
  if self.model.foreign or self.model.file then
    return parts.START_MS - past_ms, parts.START_MS + far_ms_of(self), true
  end
  return parts.START_MS - (is_client and self.limits.lease or 0), parts.START_MS + past_ms, false
end

-- Has a part moments that come nearer, or are not yet as long ago as anything counts?
local function ages(self, part, is_client)
  local known = part.ages
  if known == nil then
    known = false
    local first, last, has_stamps = ages_between(self, is_client)
    last = math.min(last, parts.START_MS + (self.model.far_ms or math.huge))
    for digits in part.text:gmatch(parts.DIGITS) do
      local ms = #digits == 13 and tonumber(digits)
        or #digits == 16 and has_stamps and tonumber(digits) / 1000
      known = known or ms and ms > first and ms < last or false
    end
    part.ages = known
  end
  return known
end

local function each_part(self, state, step)
  for k = 1, self.BACK do
    if state[k] then
      step(k, state[k])
    end
  end
end

local function nearest_far(self, state)
  local nearest = math.huge
  each_part(self, state, function(_, part)
    nearest = math.min(nearest, far_of(part, self.model.far_ms) or math.huge)
  end)
  return nearest
end

-- The same with far moments so much later.
local function put_off(self, state, ms)
  local new = {}
  for k = 1, self.PHASE do
    new[k] = state[k]
  end
  each_part(self, state, function(k, part)
    new[k] = self.pool:put_off(part, ms, self.model.far_ms, k == self.KEYS and self.server)
  end)
  return new
end

local function later(self, state, ms)
  local new = { [self.PHASE] = (state[self.PHASE] + ms) % self.limits.third }
  for i = 1, self.n do
    new[i] = self.pool:shift(state[i], ms)
  end
  new[self.KEYS] = self.server:keep_records(self.server:shift(state[self.KEYS], ms))
  new[self.GHOST] = self.pool:shift(state[self.GHOST], ms)
  new[self.BACK] = state[self.BACK] and self.pool:shift(state[self.BACK], ms)
  new[self.LEFT] = state[self.LEFT]
  if self.model.settle then
    self.model.settle(self, new)
  end
  return new
end

-- Time passes, with far moments only up to whole thirds.
local function pass(self, state, ms, emit)
  local far_ms, third = self.model.far_ms, self.limits.third
  local nearest = far_ms and nearest_far(self, state) or math.huge
  if nearest == math.huge then
    return emit('+' .. ms, later(self, state, ms))
  end
  local thirds = math.floor((nearest - ms - far_ms) / third)
  local nearer = thirds > 0 and put_off(self, state, -thirds * third) or state
  emit('+' .. ms, later(self, nearer, ms))
  if thirds < 0 then
    emit('+' .. ms .. '*', later(self, put_off(self, state, -thirds * third), ms))
  end
end

-- Does it matter when somebody begins who may do so at any time?
local function something_ages(self, state)
  local found = false
  each_part(self, state, function(k, part)
    found = found or ages(self, part, k <= self.n)
  end)
  return found
end

---Time passes up to the next moment at which something may happen, if any does; and where somebody
---could do something now and later, as long as anything ages by it.
---@return boolean something is there to happen, or all has ended
function passing.pass_time(self, state, emit)
  local keyspace, ms = state[self.KEYS], nil
  local ended, patient = true, false
  for i = 1, self.n do
    local view = self:view(state[i])
    patient = patient or view.patient
    if view.next_ms then
      ms = math.min(ms or view.next_ms, view.next_ms)
    end
    ended = ended and view.ended
  end
  local next_ms = Server.next(keyspace, far_ms_of(self))
  if next_ms then
    ms = math.min(ms or next_ms, next_ms)
  end
  local phase, third = state[self.PHASE], self.limits.third
  local until_next = self.limits.edges and phase < third - 1 and third - 1 - phase or third - phase
  -- Where nothing ages, what may be done at any time is done now or at the next occasion.
  local waits = patient and (not passing.is_occasion(self, state) or something_ages(self, state))
  if ended or not ms and not waits then
    return ended
  elseif patient then
    ms = math.min(ms or until_next, until_next)
  end
  pass(self, state, ms, emit)
  return true
end

return passing
