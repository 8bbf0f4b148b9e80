-- SPDX-License-Identifier: Apache-2.0
-- Clients of somebody's own making, as tables of steps: what `model.clients` is made of.
local mistakes = require('latchkey.checker.mistakes')
local wording = require('latchkey.checker.wording')

local roles = {}

local DONE = wording.DONE

-- Values that are known only now. Those that the script's own answers may have brought about are
-- sent whatever they are.
local function check_value(c, name, script, field, value)
  local wrong = value == nil and 'has no value'
    or c:cannot_send(script, field, value)
  if wrong then
    mistakes.raise(('the step "%s": its argument "%s" %s'):format(name, field, wrong))
  end
end

---@param steps table name -> { call, args?, on, unanswered? }
---@param first string the step with which a round begins
---@return table role
function roles.of_steps(steps, first)
  local role = { act = {}, reply = {}, due = {}, unanswered = {} }

  -- What a step leads to: the name of the next one, "done", or { wait, next }.
  local function target_of(name, about, mine, reply)
    local what, target = ('the step "%s"'):format(name), about
    if type(about) == 'function' then
      target = mistakes.call_noting(what, mine, about, mine, reply)
    end
    local wrong = wording.wrong_target(target, steps)
    if wrong then
      mistakes.raise(('%s: %s'):format(what, wrong))
    end
    return target
  end

  local function run(c, name)
    local step = steps[name]
    local given = {}
    for field, value in pairs(step.args or {}) do
      if type(value) == 'function' then
        value = mistakes.call_noting(('the step "%s"'):format(name), c.mine, value, c.mine)
        check_value(c, name, step.call, field, value)
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
    if wait then
      c.pc, c.next, c.timers.wake = 'wait', name, c:now() + math.max(wait, 1)
    elseif name == DONE then
      c.pc, c.mine = c.rounds > 0 and 'idle' or 'done', {}
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
