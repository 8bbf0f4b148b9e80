-- SPDX-License-Identifier: Apache-2.0
-- What every kind of the Redisson player stands on: one thread of one Redisson process, which sends
-- plain commands. Specs have one thread, so each operation is as indivisible as Redisson's script.
-- Nothing here or in its neighbours comes from scripts/, or follows it when it changes.
local Client = {}
Client.__index = Client

---The lease of Redisson's watchdog, how long a fair waiter is kept, and how long the receipt of an
---unlock: Redisson's defaults.
Client.WATCHDOG, Client.FAIR_WAIT, Client.RECEIPT_TTL = 30000, 300000, 16000

---A class whose objects have the methods of a Client, and `channel()`: where they listen.
function Client.kind()
  local kind = setmetatable({}, Client)
  kind.__index = kind
  return kind
end

---@class player.options
---@field name? string the lock's name; default "job"
---@field owner? string <uuid of the process>:<thread id>
---@field skew_ms? integer how far its clock is ahead of the server's
---@field publish? 'PUBLISH'|'SPUBLISH'
---@field receipts? boolean false: as before Redisson 3.24
---@field by_score? boolean true: a fair waiter is told how long to sleep as before Redisson 3.32

local OWNER = '0b5c4a62-94a3-4c4e-8d5e-0123456789ab:1'

---@param world table a world of the specs' helper, or what has its `command` and `now_ms`
---@param options? player.options
function Client:new(world, options)
  options = options or {}
  return setmetatable({
    world = world,
    name = options.name or 'job',
    owner = options.owner or OWNER,
    skew_ms = options.skew_ms or 0,
    verb = options.publish or 'PUBLISH',
    receipts = options.receipts ~= false,
    by_score = options.by_score == true,
    requests = 0,
  }, self)
end

function Client.prefixed(prefix, name)
  return prefix .. ':' .. (name:find('{', 1, true) and name or '{' .. name .. '}')
end

function Client.suffixed(name, suffix)
  return (name:find('{', 1, true) and name or '{' .. name .. '}') .. ':' .. suffix
end

---A command's reply; nil where the server answers nil.
function Client:ask(...)
  local reply, err = self.world:command(...)
  if err then
    error(err.message, 2)
  end
  return reply ~= self.world.null and reply or nil
end

function Client:tell(channel, message)
  self:ask(self.verb, channel, message)
end

function Client:now_ms()
  return self.world:now_ms() + self.skew_ms
end

function Client:receipt(request)
  return self.prefixed('redisson_unlock_latch', self.name) .. ':' .. request
end

---What an earlier copy of this unlock has answered.
---@return integer|nil
function Client:answered(request)
  return self.receipts and tonumber(self:ask('GET', self:receipt(request))) or nil
end

---Notes what an unlock answers, for its copies.
function Client:answer(request, reply)
  if self.receipts then
    self:ask('SET', self:receipt(request), reply, 'PX', self.RECEIPT_TTL)
  end
  return reply
end

---The reply of an unlock arrived: there will be no copy.
function Client:forget(request)
  if self.receipts then
    self:ask('DEL', self:receipt(request))
  end
end

---A whole unlock: a new request, and its receipt is gone at the end.
---@param unlock? string the name of the method; default "unlock"
function Client:give_back(unlock)
  self.requests = self.requests + 1
  local request = ('%032x'):format(self.requests)
  local reply = self[unlock or 'unlock'](self, request)
  self:forget(request)
  return reply
end

return Client
