-- SPDX-License-Identifier: Apache-2.0
-- Somebody who makes a number of calls in turn, each at any time: for scripts that no loop of a
-- client needs, such as those that set a total or look.
local parts = require('latchkey.checker.parts')

local visitor = {}

---@param calls table[] { script, values } each
function visitor.role(calls)
  local role = { act = {}, reply = {}, due = {}, unanswered = {} }

  function role.start(c)
    c.next, c.seq, c.pc = 1, 0, 'visit'
  end

  function role.choices(c)
    return c.pc == 'visit' and { 'call' } or {}
  end

  local function go_on(c)
    c.next = c.next + 1
    c.pc = calls[c.next] and 'visit' or 'done'
  end

  function role.act.call(c)
    local call, values = calls[c.next], { caller = 'lk-@' }
    c.seq, c.pc = c.seq + 1, 'answer'
    for _, name in ipairs(parts.sorted_names(call[2] or {})) do
      values[name] = call[2][name]
    end
    values.seq = c.seq
    c:send('visit', call[1], values)
  end

  role.reply.visit = go_on
  role.unanswered.visit = go_on

  function role.believes() end

  return role
end

return visitor
