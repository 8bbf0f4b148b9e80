-- SPDX-License-Identifier: Apache-2.0
-- How far the server's clock is from this machine's.
local time = require('posix.time')

local commands = require('latchkey.doctor.commands')
local expect = require('latchkey.servers.expect')
local text = require('latchkey.text')

local clock = {}

-- Redisson writes the ends of waits and permits by the clocks of its hosts.
local MAX_MS = 1000

local QUESTIONS = 5

local function finding(level, message, advice)
  return { { check = 'clock', level = level, message = message, advice = advice } }
end

local function now_ms(id)
  local now = time.clock_gettime(id)
  return now.tv_sec * 1000 + now.tv_nsec / 1e6
end

-- Compared with the moment in the middle of the quickest of a few questions.
local function offset(client)
  local best_ms, offset_ms
  for _ = 1, QUESTIONS do
    local asked = now_ms(time.CLOCK_MONOTONIC)
    local reply, err = expect('time', 'TIME', client:command('TIME'))
    if not reply then
      return nil, err
    end
    local took_ms = now_ms(time.CLOCK_MONOTONIC) - asked
    if not best_ms or took_ms < best_ms then
      best_ms = took_ms
      offset_ms = reply[1] * 1000 + reply[2] / 1000 - (now_ms(time.CLOCK_REALTIME) - took_ms / 2)
    end
  end
  return offset_ms, best_ms / 2
end

---@param client { command: fun(self: any, ...: string): any, latchkey.error|nil }
---@return table[]|nil findings
---@return latchkey.error|nil err
function clock.check(client)
  local offset_ms, about_ms = offset(client)
  if not offset_ms and about_ms.status == 'LK_DENIED' then
    return finding('note', 'this user may not ask for the time', 'allow TIME: scripts need it')
  elseif not offset_ms and commands.is_unknown(about_ms) then
    return finding('problem', 'it does not know TIME, by which scripts count: renamed, or switched '
      .. 'off', commands.GIVE_BACK)
  elseif not offset_ms then
    return nil, about_ms
  end
  local difference = ('the server\'s clock is %s %s this machine\'s, give or take %d ms'):format(
    text.show_ms(math.abs(offset_ms)), offset_ms < 0 and 'behind' or 'ahead of', about_ms + 1)
  if math.abs(offset_ms) - about_ms > MAX_MS then
    return finding('problem', difference .. ': Redisson\'s fair waiters and permits here end too '
      .. 'soon or too late', 'let a time service (chrony, systemd-timesyncd) set both')
  end
  return finding('good', difference)
end

return clock
