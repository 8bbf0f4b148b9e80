-- SPDX-License-Identifier: Apache-2.0
-- The other side of the scenarios: a real Redisson, in the process that tools/interop has prepared
-- (tools/lib/interop/RedissonDriver.java).
local time = require('posix.time')

local Process = require('interop.both.process')

local Java = {}
Java.__index = Java

local AWAIT_MS = 20000

-- One process for all scenarios: it takes a second to start.
local shared

-- Unlike latchkey's, Redisson's scripts write after they have told.
local function collect(world)
  for _, event in ipairs(world.observer:take()) do
    if event.verb then
      table.insert(world.outbox, event)
    end
  end
end

---@param command string that starts the driver
---@param world table a live server, which the driver knows, too
function Java.new(command, world)
  world.collect = collect
  shared = shared or setmetatable({ process = Process.start(command) }, Java)
  return shared
end

---What this Redisson does not have.
---@return table kinds a set
function Java:lacks()
  local kinds = {}
  for kind in (self.process:ask('lacks') or ''):gmatch('%S+') do
    kinds[kind] = true
  end
  return kinds
end

function Java:call(thread, kind, method, name, ...)
  return self.process:ask(thread, kind, method, name, ...)
end

function Java:begin(thread, ...)
  self.process:ask('begin', thread, ...)
end

function Java:await(thread)
  return self.process:ask('await', thread, AWAIT_MS)
end

---What its threads do comes to be seen only after a while.
function Java.see(_, is_seen)
  for _ = 1, AWAIT_MS / 10 do
    if is_seen() then
      return
    end
    time.nanosleep({ tv_sec = 0, tv_nsec = 1e7 })
  end
  error('nothing to be seen of it in time', 2)
end

return Java
