-- SPDX-License-Identifier: Apache-2.0
-- A replica that lags behind by one or two writes, and takes over: connections are lost, and what
-- the replica did not have is gone. Keys that a model calls durable are on another server and stay,
-- unless the limits say otherwise; a clock that is behind is that of the replica.
local faults = require('checker.faults')
local parts = require('checker.parts')

local replicas = {}

local LAG = 2

---The keyspaces that the replica may have instead of the present one.
function replicas.lagging(steps, state)
  local old = { state[steps.KEYS].data }
  for _, keys in ipairs(state[steps.BACK].data) do
    if #old < LAG then
      old[#old + 1] = keys
    end
  end
  return steps.pool:part(parts.copy(old))
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

---It takes a third of a lease until the replica is the server.
---@param emit fun(label: string, state: table)
function replicas.fail_over(steps, state, emit)
  local behind, took = steps.limits.behind, steps.limits.third
  for k, old in ipairs(state[steps.BACK].data) do
    local new = { [steps.PHASE] = state[steps.PHASE], [steps.BACK] = steps.pool:part({}) }
    local keys = steps.server:keyspace(parts.copy(left_of(steps, old, state[steps.KEYS].data)))
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
    emit('!failover' .. (k > 1 and k or ''), new)
  end
end

return replicas
