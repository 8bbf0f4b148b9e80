-- SPDX-License-Identifier: Apache-2.0
-- Clients of somebody's own making, as tables of steps: what `model.clients` is made of.
local mistakes = require('latchkey.checker.mistakes')

local roles = {}

local DONE = 'done'

-- What a step leads to: the name of the next one, "done", or { wait, next }.
local function target_of(name, about, mine, reply)
  if type(about) == 'function' then
    return mistakes.call(('the step "%s"'):format(name), about, mine, reply)
  end
  return about
end

---@param steps table name -> { call, args?, on, unanswered? }
---@param first string the step with which a round begins
---@return table role
function roles.of_steps(steps, first)
  local role = { act = {}, reply = {}, due = {}, unanswered = {} }

  local function run(c, name)
    local step = steps[name]
    local given = {}
    for field, value in pairs(step.args or {}) do
      if type(value) == 'function' then
        value = mistakes.call(('the step "%s"'):format(name), value, c.mine)
      end
      if value == nil then
        mistakes.raise(('the step "%s": its argument "%s" has no value'):format(name, field))
      end
      given[field] = value
    end
    c.pc = name
    c:send(name, step.call, { given, owner = c.owner, lease = c:limit('lease') })
  end

  local function go(c, target)
    local wait = type(target) == 'table' and target.wait
    local name = type(target) == 'table' and target.next or target
    c.next = nil
    if name == DONE then
      c.pc, c.mine = c.rounds > 0 and 'idle' or 'done', {}
    elseif not steps[name] then
      mistakes.raise(('there is no step "%s"'):format(tostring(name)))
    elseif wait then
      c.pc, c.next, c.timers.wake = 'wait', name, c:now() + math.max(wait, 1)
    else
      run(c, name)
    end
  end

  function role.start(c)
    c.rounds, c.mine = c:limit('rounds'), {}
  end

  function role.choices(c)
    return c.pc == 'idle' and c.rounds > 0 and { 'begin' } or {}
  end

  function role.act.begin(c)
    c.rounds, c.owner = c.rounds - 1, c:new_owner()
    run(c, first)
  end

  function role.due.wake(c)
    go(c, c.next)
  end

  for name, step in pairs(steps) do
    role.reply[name] = function(c, reply)
      go(c, target_of(name, step.on[reply[1]], c.mine, reply[2]))
    end
    role.unanswered[name] = function(c)
      go(c, target_of(name, step.unanswered or DONE, c.mine))
    end
  end

  function role.message() end

  function role.believes() end

  return role
end

return roles
