-- SPDX-License-Identifier: Apache-2.0
-- Somebody who looks who holds a lock and, some time later, breaks that hold: `latchkey break`.
local operator = {}

---@param row { inspect: string, break_: string, owner: integer } where inspect names the owner
function operator.role(row)
  local role = { act = {}, reply = {}, due = {}, unanswered = {} }

  function role.start(c)
    c.pc = 'absent'
  end

  function role.choices(c)
    return c.pc == 'decide' and { 'break' } or {}
  end

  -- A fault brings it.
  function role.appear(c)
    c.pc = 'look'
    c:send('look', row.inspect, {})
  end

  function role.reply.look(c, reply)
    c.pc, c.target = 'done', nil
    if reply[1] == 1 and reply[row.owner] then
      c.pc, c.target = 'decide', reply[row.owner]
    end
  end

  role.act['break'] = function(c)
    c.pc = 'break'
    c:send('break', row.break_, { owner = c.target, ids = { c.target } })
    c.target = nil
  end

  role.reply['break'] = function(c)
    c.pc = 'done'
  end

  function role.believes() end

  return role
end

return operator
