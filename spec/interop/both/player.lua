-- SPDX-License-Identifier: Apache-2.0
-- The other side of the scenarios, played: calls of an application to Redisson, by a thread, as
-- both/java.lua takes them for the real one.
local Player = {}
Player.__index = Player

local MODULES = { read = 'rw', write = 'rw' }

local OWNER = '5f864eed-8aaf-4630-bc84-f51150e4a9c1:%s'

function Player.new(world, inbox)
  return setmetatable({ world = world, inbox = inbox, objects = {}, begun = {}, ids = 0 }, Player)
end

function Player:object(thread, kind, name)
  local module = MODULES[kind] or kind
  local key = thread .. module .. name
  self.objects[key] = self.objects[key] or require('interop.player.' .. module):new(self.world,
    { name = name, owner = OWNER:format(thread) })
  return self.objects[key]
end

local function from_hex(id)
  return (id:gsub('%x%x', function(byte)
    return string.char(tonumber(byte, 16))
  end))
end

local function must(is_done)
  return is_done and 1 or error('refused', 0)
end

-- What a lock's operation is called for its sides.
local function side(kind, method)
  return MODULES[kind] and kind .. '_' .. method or method
end

local LOCK = {
  try_lock = function(object, kind, lease)
    local try = kind == 'fair' and 'try_lock' or side(kind, 'lock')
    return object[try](object, lease) == nil and 1 or 0
  end,
  -- One look of a thread that waits; nil: it goes on waiting.
  lock = function(object, kind, lease)
    return object[side(kind, 'lock')](object, lease) == nil and 1 or nil
  end,
  unlock = function(object, kind)
    return must(object:give_back(side(kind, 'unlock')))
  end,
  hold_count = function(object, kind)
    return object[side(kind, 'hold_count')](object)
  end,
  force_unlock = function(object, kind)
    return object[side(kind, 'force_unlock')](object)
  end,
  try_lock_and_get_token = function(object, _, lease)
    local _, token = object:lock_and_get_token(lease)
    return token ~= -1 and token or nil
  end,
}

local SEMAPHORE = {
  acquire = function(object, _, permits)
    return object:try_acquire(permits) == 1 and 1 or nil
  end,
  release = function(object, _, permits)
    object:release(permits)
    return 1
  end,
}

local COUNTDOWN = {
  count_down = function(object)
    object:count_down()
    return 1
  end,
  wait = function(object)
    return object:count() == 0 and 1 or nil
  end,
}

local PERMIT = {
  acquire = function(object, _, lease)
    object.drawn = (object.drawn or 0) + 1
    local id = ('%032x'):format(object.drawn)
    return object:acquire({ from_hex(id) }, lease) == 'OK' and id or nil
  end,
  try_release = function(object, _, id)
    return object:release(from_hex(id))
  end,
}
PERMIT.try_acquire = PERMIT.acquire

local METHODS = { semaphore = SEMAPHORE, countdown = COUNTDOWN, permit = PERMIT }

---The kinds that it cannot play.
function Player.lacks()
  return {}
end

---@return any value nil: nothing, as Java's null
function Player:call(thread, kind, method, name, ...)
  local object = self:object(thread, kind, name)
  local own = (METHODS[kind] or LOCK)[method]
  if own then
    return own(object, kind, ...)
  end
  return object[method](object, ...)
end

---Starts what may have to wait.
function Player:begin(thread, ...)
  local call = { ... }
  self.begun[thread] = { call = call, since = #self.inbox(), value = self:call(thread, ...) }
end

---What came of it: whoever waits looks again when something was said.
function Player:await(thread)
  local begun = self.begun[thread]
  self.begun[thread] = nil
  if begun.value == nil and #self.inbox() > begun.since then
    begun.value = self:call(thread, unpack(begun.call))
  end
  return begun.value or error('it still waits', 0)
end

---What it does is seen at once.
function Player.see(_, is_seen)
  assert(is_seen(), 'nothing to be seen of it')
end

return Player
