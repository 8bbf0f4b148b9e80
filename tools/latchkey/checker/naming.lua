-- SPDX-License-Identifier: Apache-2.0
-- What the arguments of scripts mean that are not latchkey's: their types say it, not their names.
local naming = {}

-- What an argument of this type is, or else one of this name; of several, one that the model has no
-- value of its own for.
local function meant(e, kind, name, given)
  local own, other
  for _, field in ipairs(e.header.argv) do
    if field.type == kind and given[field.name] == nil then
      own = own or field.name
    elseif field.type == kind then
      other = other or field.name
    end
  end
  own = own or other or given[name] == nil and name
  local value = e.args[own]
  return type(value) == 'table' and value[1] or value
end

---Whose call it was, for how long, whatever the arguments are called.
---@param given fun(script: string): table the arguments that have values of their own
---@return fun(e: table) event as a model has it
function naming.of(given)
  return function(e)
    local values = given(e.script)
    local lease, hold = meant(e, 'ms', 'lease', values), values.hold == nil and e.args.hold
    e.owner = meant(e, 'owner', 'owner', values)
    e.lease = tonumber(lease)
    e.hold = tonumber(hold) or e.hold
  end
end

---The arguments of scripts that some step has values for.
---@return fun(script: string): table
function naming.given_in(steps)
  local given = {}
  for _, step in pairs(steps) do
    given[step.call] = given[step.call] or {}
    for name in pairs(step.args or {}) do
      given[step.call][name] = true
    end
  end
  return function(script)
    return given[script]
  end
end

return naming
