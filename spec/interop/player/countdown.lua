-- SPDX-License-Identifier: Apache-2.0
-- RCountDownLatch: a number that is there until it is counted down.
local Client = require('interop.player.client')

local Countdown = Client.kind()

-- Braces always, also around a name that has some.
function Countdown:channel()
  return 'redisson_countdownlatch__channel__{' .. self.name .. '}'
end

function Countdown:count_down()
  local count = self:ask('DECR', self.name)
  if count <= 0 then
    self:ask('DEL', self.name)
  end
  if count == 0 then
    self:tell(self:channel(), 0)
  end
end

function Countdown:try_set(count)
  if self:ask('EXISTS', self.name) == 1 then
    return 0
  end
  self:ask('SET', self.name, count)
  self:tell(self:channel(), 1)
  return 1
end

function Countdown:count()
  return tonumber(self:ask('GET', self.name) or 0)
end

function Countdown:delete()
  local existed = self:ask('DEL', self.name)
  if existed == 1 then
    self:tell(self:channel(), 1)
  end
  return existed
end

return Countdown
