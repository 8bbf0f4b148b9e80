-- SPDX-License-Identifier: Apache-2.0
-- Medians and quartiles.
local stats = {}

local function at(sorted, part)
  local place = 1 + part * (#sorted - 1)
  local low = math.floor(place)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low)
end

---The median of the values and the quartiles around it; nil where there are none.
---@param values number[]
---@return { median: number, low: number, high: number }|nil
function stats.spread(values)
  if #values == 0 then
    return nil
  end
  local sorted = { unpack(values) }
  table.sort(sorted)
  return { median = at(sorted, 0.5), low = at(sorted, 0.25), high = at(sorted, 0.75) }
end

---The figure of that name of all runs of a contender.
---@param contender { runs: table[] }
---@param name string
---@return number[]
function stats.column(contender, name)
  local values = {}
  for _, run in ipairs(contender.runs) do
    if type(run[name]) == 'number' then
      values[#values + 1] = run[name]
    end
  end
  return values
end

---How many pairs or hand-offs a run made, or their rate; nil: it is about something else.
---@param run table
---@return number|nil
function stats.counted(run)
  return run.handoffs or run.pairs or run.pairs_per_s
end

---One contender's figure divided by another's, of the runs that were made side by side.
---@return { median: number, low: number, high: number }|nil
function stats.ratio(ours, theirs, name)
  local values = {}
  for i, run in ipairs(ours.runs) do
    local mine, other = run[name], (theirs.runs[i] or {})[name]
    if type(mine) == 'number' and type(other) == 'number' and other ~= 0 then
      values[#values + 1] = mine / other
    end
  end
  return stats.spread(values)
end

return stats
