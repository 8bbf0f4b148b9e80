-- SPDX-License-Identifier: Apache-2.0
-- What --limit may set: name, meaning, and whether every model has it. A model's own `limits` say
-- which of the others it has, and what they are unless they are set.
local limits = {}

limits.list = {
  { 'lease', 'how long a hold lives, in milliseconds' },
  { 'third', 'how long after its send it is renewed, in milliseconds' },
  { 'drift', 'what a client takes off its lease, in milliseconds' },
  { 'recheck', 'how long a waiter sleeps before it rechecks, in milliseconds' },
  { 'renewals', 'how often a hold is renewed; inf: without end' },
  { 'levels', 'the highest hold count of a holder' },
  { 'handover', 'true: a holder may hand its lock off inside its process' },
  { 'works', 'how often a holder uses what the lock guards' },
  { 'looks', 'how often a waiter for a counter rechecks' },
  { 'reads', 'how often a client that writes reads beside that' },
  { 'upgrades', 'how often a reader asks to write, too' },
  { 'both', 'how many clients write and read' },
  { 'every', 'how long a period is, in milliseconds' },
  { 'rest', 'how long a lock stays after its holder\'s work, in milliseconds; 0: not at all' },
  { 'redisson', 'how many clients are Redisson\'s' },
  { 'redisson_readers', 'how many readers are' },
  { 'redisson_writers', 'how many writers are' },
  { 'redisson_age', 'the version from which on its readers are as here: 3.17, 3.44, 4, 4.4' },
  { 'replicas', 'how many replicas may take over', true },
  { 'min_replicas', 'how many must have a hold before it counts', true },
  { 'latest', 'true: the one that has most takes over', true },
  { 'durable', 'false: a fail-over loses what the fence has stored' },
  { 'behind', 'how far the clock of the new master is behind, in milliseconds', true },
  { 'back', 'how far the fault clock-back sets the clock back, in milliseconds' },
  { 'edges', 'true: clients decide also one millisecond before each third of a lease', true },
}

local MOST = 1e8

-- What each may be: its least and most, or true and false. The others are from 0 on.
local ALLOWED = { lease = { 1, MOST }, third = { 2, MOST }, recheck = { 1, MOST },
  every = { 1, MOST }, levels = { 1, MOST }, renewals = { 0, math.huge }, handover = true,
  latest = true, durable = true, edges = true }

---@param name string
---@param value number|boolean
---@return string|nil why it cannot be that
function limits.wrong(name, value)
  local range = ALLOWED[name] or { 0, MOST }
  local is_whole = type(value) == 'number' and (value % 1 == 0 or name == 'redisson_age'
    or value == math.huge)
  if range == true then
    return type(value) ~= 'boolean' and 'is true or false' or nil
  elseif not is_whole or value < range[1] or value > range[2] then
    return ('is a whole number from %d to %s'):format(range[1],
      range[2] == math.huge and 'inf' or ('%.0f'):format(range[2]))
  end
end

---@param model table
---@return table<string, boolean> names that it has
function limits.of(model)
  local names = {}
  for _, row in ipairs(limits.list) do
    names[row[1]] = row[3] or model.limits[row[1]] ~= nil or nil
  end
  return names
end

return limits
