-- SPDX-License-Identifier: Apache-2.0
-- Replicas that lag behind by up to two writes, and one of which takes over: connections are lost,
-- and what it did not have is gone. What each has is left open until it matters: `lacks` says how
-- many of the last writes each may lack, those that lack least first; once a client has been told
-- that some have its write, these lack no more than what came after it. Keys that a model calls
-- durable are on another server and stay, unless the limits say otherwise; a clock that is behind
-- is that of the replica.
--
-- What is kept: { log = keyspaces before the last writes, the newest first, lacks = counts,
-- wrote = owner's letter -> writes since its last one }
local faults = require('latchkey.checker.faults')
local parts = require('latchkey.checker.parts')
local properties = require('latchkey.checker.properties')

local replicas = {}

local LAG = 2

local function asks(steps)
  return (steps.limits.min_replicas or 0) > 0
end

-- Replicas that have all.
local function up_to_date(steps)
  local lacks = {}
  for r = 1, math.max(steps.limits.replicas or 1, steps.limits.min_replicas or 0) do
    lacks[r] = 0
  end
  return steps.pool:part({ log = {}, lacks = lacks, wrote = {} })
end
replicas.first = up_to_date

-- The log is as long as the slowest may need it.
local function kept(steps, back)
  local needed = back.lacks[#back.lacks]
  for k = #back.log, needed + 1, -1 do
    back.log[k] = nil
  end
  return steps.pool:part(back)
end

local function after_write(steps, state, letter)
  local back = parts.copy(state[steps.BACK].data)
  for r, lack in ipairs(back.lacks) do
    back.lacks[r] = math.min(lack + 1, LAG)
  end
  for _, name in ipairs(parts.sorted_names(back.wrote)) do
    back.wrote[name] = back.wrote[name] < LAG and back.wrote[name] + 1 or nil
  end
  if letter and asks(steps) then
    back.wrote['lk-' .. letter] = 0
  end
  table.insert(back.log, 1, parts.copy(state[steps.KEYS].data))
  return kept(steps, back)
end

-- What becomes of a part, remembered by it: nothing else than what `name` has decides it.
local function remembered(part, name, make, ...)
  local known = part.memo[name]
  if not known then
    known = make(...)
    part.memo[name] = known
  end
  return known
end

---The server is about to write.
---@param letter string|false of the client, if this is the connection that it has now
---@return table part
function replicas.written(steps, state, letter)
  local name = ('written %d %s'):format(state[steps.KEYS].id, letter or '')
  return remembered(state[steps.BACK], name, after_write, steps, state, letter)
end

-- So many have the last write of this client's connection. Those that lack least, so that what the
-- others lack is left open; a connection that has written nothing is told what it likes to hear.
local function confirmed(steps, state, i, count)
  local back = parts.copy(state[steps.BACK].data)
  local since = state[i].data.wrote and back.wrote['lk-' .. string.char(64 + i)]
  for r = 1, since and count or 0 do
    back.lacks[r] = math.min(back.lacks[r], since)
  end
  return kept(steps, back)
end

---The k-th call of a client's pipe, a WAIT, is answered: by enough replicas, unless they are away.
---@return table state
---@return table|nil finding
function replicas.wait(steps, state, i, k)
  local call, new, finding = state[i].data.pipe[k], {}, nil
  for place = 1, #state do
    new[place] = state[place]
  end
  local count = tonumber(call.args[1])
  new[i] = steps:own_step(state, i, 'w' .. k, function(c)
    c.pipe[k].reply, c.sending = { call.few and count - 1 or count }, nil
  end).part
  if call.few then
    return new
  end
  if state[steps.BACK] then
    new[steps.BACK] = confirmed(steps, state, i, count)
  end
  local owner = call.args[2]:gsub('lk%-@', 'lk-' .. string.char(64 + i))
  local ghost = parts.copy(state[steps.GHOST].data)
  local holders = steps.model.holders(state[steps.KEYS].data, steps.lock)
  properties.counted(owner, call.ends, holders[owner] ~= nil, ghost, function(property, message)
    if steps.wanted(property) then
      finding = finding or { property = property, message = message }
    end
  end)
  new[steps.GHOST] = steps.pool:part(ghost)
  return new, finding
end

local function left_of(steps, old, present)
  local keys = {}
  for _, name in ipairs(parts.sorted_names(old)) do
    local record = old[name]
    if not (record.expires_at and record.expires_at < parts.START_MS) then
      keys[name] = record
    end
  end
  local durable = steps.limits.durable and steps.model.durable or {}
  for _, name in ipairs(parts.sorted_names(durable)) do
    keys[name] = present[name]
  end
  return keys
end

local function reconnect(c, role)
  if next(c.listens) then
    faults.of_client.channel.strike(c, role)
  end
  faults.of_client.request.strike(c)
end

-- The keyspace of a replica that lacks so many writes.
local function keys_of(steps, state, lost)
  local present = state[steps.KEYS].data
  local old = lost == 0 and present or state[steps.BACK].data.log[lost]
  return steps.server:keyspace(parts.copy(left_of(steps, old, present)))
end

-- It takes a third of a lease until the replica is the server.
local function taken_over(steps, state, lost)
  local behind, took = steps.limits.behind or 0, steps.limits.third
  local new = { [steps.PHASE] = state[steps.PHASE], [steps.BACK] = up_to_date(steps) }
  local name = ('lost %d %d'):format(state[steps.KEYS].id, lost)
  local keys = remembered(state[steps.BACK], name, keys_of, steps, state, lost)
  new[steps.KEYS] = steps.server:shift(keys, took - behind)
  new[steps.GHOST] = steps.pool:shift(state[steps.GHOST], took - behind)
  for i = 1, steps.n do
    local part = state[i]
    if part.data.pc ~= 'dead' and part.data.pc ~= 'absent' then
      part = steps:own_step(state, i, '!failover', reconnect).part
    end
    new[i] = steps.pool:map_tokens(steps.pool:shift(part, took), 'behind' .. behind,
      function(token)
        return token + behind * 1000
      end)
  end
  if steps.model.settle then
    steps.model.settle(steps, new)
  end
  return new
end

---A replica takes over: any, or with the limit `latest` the one that lacks least.
---@param emit fun(label: string, state: table)
function replicas.fail_over(steps, state, emit)
  local back = state[steps.BACK].data
  local most = back.lacks[steps.limits.latest and 1 or #back.lacks]
  for lost = 0, most do
    emit('!failover' .. (lost ~= 1 and lost or ''), taken_over(steps, state, lost))
  end
end

return replicas
