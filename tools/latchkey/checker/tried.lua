-- SPDX-License-Identifier: Apache-2.0
-- Which promises a model can try at all: what nobody looks at would hold for nothing.
local tried = {}

-- Calls that take a hold, keep it or end it.
local HOLDS = { acquire = true, renew = true, release = true }

local function has_verb(model, wanted)
  for _, verb in pairs(model.verbs) do
    if wanted[verb] then
      return true
    end
  end
  return false
end

local function add(set, ids)
  for id in ids:gmatch('%S+') do
    set[id] = true
  end
end

---@param model table
---@param limits table the model's, as far as nobody says otherwise
---@param server table of checker.server, which knows the scripts' headers
---@return table<string, boolean> promises
function tried.of(model, limits, server)
  local set = { G8 = true, G10 = true }
  if model.holders and has_verb(model, HOLDS) then
    add(set, 'G1 G2 G4 G5 G6')
  end
  if model.free then
    set.G6 = true
  end
  if limits.renewals == math.huge then
    set.R1 = true
  end
  set.R2 = model.translate ~= nil or nil
  for script in pairs(model.verbs) do
    if server:header(script).repeat_ ~= 'no' then
      set.G9 = true
    end
  end
  for _, id in ipairs(model.judges or {}) do
    set[id] = true
  end
  return set
end

local WHY = {
  G2 = 'its clients do not count on holds',
  G9 = 'none of its scripts has "repeat:" with what a copy of a call leaves',
  G12 = 'it is that the other promises hold beside Redisson: --limit redisson=1',
  R1 = 'nobody renews for good',
  R2 = 'it is asked of scripts of your own',
}

---Why a promise is not tried.
---@param id string
---@return string
function tried.why(id)
  return WHY[id] or 'nothing in the model checks it'
end

return tried
