-- SPDX-License-Identifier: Apache-2.0
-- The one clock of a world. It stands still until it is told to move, so that a spec or a checker
-- decides what has expired.
local Clock = {}
Clock.__index = Clock

-- 2026-01-01 00:00:00 UTC and some: a script that takes the parts of TIME for another is found out.
local START_MS = 1767225600876
-- Between two milliseconds, as it is on a server.
local BEYOND_US = 456

Clock.START_MS = START_MS

---@param moving boolean does a second TIME in one script show a later time, as before Redis 7.2?
function Clock.new(moving)
  return setmetatable({ ms = START_MS, beyond_us = BEYOND_US, begun = START_MS, moving = moving,
    asked = false }, Clock)
end

---A command or script begins: what has expired by now has expired until it ends.
function Clock:begin()
  self.begun = self.ms
  self.asked = false
end

---TIME: a server that does not freeze the clock may show any later time; here, one millisecond.
---@return number ms
function Clock:time()
  if self.moving and self.asked then
    self.ms = self.ms + 1
  end
  self.asked = true
  return self.ms
end

---@param ms integer
function Clock:advance(ms)
  if ms < 0 or ms % 1 ~= 0 then
    error('the clock moves forward by whole milliseconds', 2)
  end
  self.ms = self.ms + ms
end

return Clock
