-- SPDX-License-Identifier: Apache-2.0
-- What the numbers of a model file may be, and which faults it may name.
local faults = require('latchkey.checker.faults')
local sorted = require('latchkey.sorted')

-- What is longer ago is no moment that time brings nearer.
local ranges = { MOST_PAST_MS = 5e8, MOST_WAIT_MS = 1e8 }

-- What they are of -> name -> the least and the most.
local ALLOWED = {
  bounds = { clients = { 1, faults.most_clients }, rounds = { 1, 1000 }, faults = { 0, 1000 } },
  limits = { lease = { 1, 1e8 }, third = { 2, 1e8 } },
  clients = { past_ms = { 1, ranges.MOST_PAST_MS } },
}

---@param fail fun(format: string, ...) says what is wrong, and does not return
---@param what 'bounds'|'limits'|'clients'
---@param given table|nil name -> number
function ranges.check(fail, what, given)
  for _, name in ipairs(sorted(given or {})) do
    local range, value = ALLOWED[what][name], given[name]
    if not range then
      fail('%s have no "%s"; there are %s', what, tostring(name),
        table.concat(sorted(ALLOWED[what]), ', '))
    elseif type(value) ~= 'number' or value % 1 ~= 0 or value < range[1] or value > range[2] then
      fail('%s: "%s" is a whole number from %.0f to %.0f', what, name, range[1], range[2])
    end
  end
end

---A fault that there is none would strike never, and nobody would miss it.
---@param fail fun(format: string, ...)
---@param kinds string[]|nil
function ranges.check_faults(fail, kinds)
  local known = {}
  for _, kind in ipairs(faults.kinds) do
    known[kind[1]] = true
  end
  for _, kind in ipairs(kinds or {}) do
    if not known[kind] then
      fail('there is no fault "%s"; latchkey check --help lists them', tostring(kind))
    end
  end
end

return ranges
