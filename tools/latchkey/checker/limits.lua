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
