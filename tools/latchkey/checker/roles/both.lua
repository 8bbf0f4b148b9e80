-- SPDX-License-Identifier: Apache-2.0
-- A caller that writes and reads: it takes the lock for writing, may read beside that, gives back
-- the one or the other first, and while it only reads asks to write, which is refused. Its write
-- hold is a taker's; its read hold, renewed and lost by itself, is the `side`.
local taker = require('latchkey.checker.roles.taker')

local both = {}

---@param row table of the writer, as for taker.role
---@return table role
function both.role(row)
  local role = taker.role(row)
  local start, choices, believes = role.start, role.choices, role.believes

  local function send(c, name, script, owner, hold, extra)
    c:send(name, script, role.values(c, owner, hold, extra))
  end

  local function undo(c, owner)
    send(c, 'undo', owner:find(':write$') and 'rw/write_release' or 'rw/read_release', owner, 0)
  end

  -- What is over for the writer is not over for the caller.
  local function settle(c)
    if c.side and (c.pc == 'idle' or c.pc == 'done') then
      c.pc = 'reading'
    end
  end

  local function settled(step)
    return function(...)
      step(...)
      settle((...))
    end
  end
  role.act.leave = settled(role.act.leave)
  role.reply.release = settled(role.reply.release)
  role.unanswered.release = settled(role.unanswered.release)

  function role.start(c)
    start(c)
    c.reads, c.upgrades = c:limit('reads'), c:limit('upgrades')
  end

  function role.choices(c)
    local list = choices(c)
    if c.pc == 'held' and c.side then
      list[#list + 1] = 'unread'
    elseif c.pc == 'held' and not c.lost and c.reads > 0 then
      list[#list + 1] = 'read'
    elseif c.pc == 'reading' then
      list = c.upgrades > 0 and { 'unread', 'upgrade' } or { 'unread' }
    end
    return list
  end

  local function plan(c, call)
    c.side_deadline = call.sent + c:limit('lease') - c:limit('drift')
    c.timers.side_end, c.timers.side_renew = c.side_deadline, call.sent + c:limit('third')
  end

  local function lose_side(c)
    c.side_deadline, c.timers.side_end, c.timers.side_renew = nil, nil, nil
  end

  -- It names its write hold, and does not wait.
  function role.act.read(c)
    c.reads, c.pc, c.asked = c.reads - 1, 'read', c:new_owner()
    send(c, 'read', 'rw/read_acquire', c.asked, 1, { writer = c.owner })
  end

  function role.reply.read(c, reply, call)
    local owner = c.asked
    c.pc, c.asked = 'held', nil
    if reply[1] == 1 and c:now() < call.sent + c:limit('lease') - c:limit('drift') then
      c.side = owner
      plan(c, call)
    else
      undo(c, owner)
    end
  end

  function role.unanswered.read(c)
    undo(c, c.asked)
    c.pc, c.asked = 'held', nil
  end

  function role.due.side_renew(c)
    send(c, 'side_renew', 'rw/read_renew', c.side)
  end

  function role.reply.side_renew(c, reply, call)
    if not c.side_deadline then
      return
    elseif c:now() >= c.side_deadline or reply[1] ~= 1 then
      lose_side(c)
    else
      plan(c, call)
    end
  end

  function role.unanswered.side_renew(c)
    if c.side_deadline then
      c.timers.side_renew = c:now() + c:limit('third')
    end
  end

  role.due.side_end = lose_side

  function role.act.unread(c)
    c.unread_from, c.pc = c.pc, 'unread'
    lose_side(c)
    send(c, 'unread', 'rw/read_release', c.side, 0)
  end

  local function unread(c)
    c.side, c.pc = nil, c.unread_from == 'held' and 'held' or c.rounds > 0 and 'idle' or 'done'
    c.unread_from = nil
  end

  function role.reply.unread(c, reply, call)
    local status = reply[1] == 1 and 'ok' or call.copies > 1 and 'unsure' or 'lost'
    c:say('release', status, call, reply)
    unread(c)
  end

  function role.unanswered.unread(c, call)
    c:say('release', 'unsure', call)
    undo(c, c.side)
    unread(c)
  end

  -- The library answers by itself here; the script, where it is asked, has to say the same.
  function role.act.upgrade(c)
    c.upgrades, c.pc, c.asked = c.upgrades - 1, 'upgrade', c:new_owner() .. row.suffix
    send(c, 'upgrade', 'rw/write_acquire', c.asked, 1, { reader = c.side })
  end

  function role.reply.upgrade(c, reply)
    if reply[1] == 1 then -- its read hold was lost
      undo(c, c.asked)
    end
    c.pc, c.asked = 'reading', nil
  end

  function role.unanswered.upgrade(c)
    undo(c, c.asked)
    c.pc, c.asked = 'reading', nil
  end

  function role.believes(c)
    return believes(c) or c.side_deadline and c:now() < c.side_deadline and 'read' or nil
  end

  return role
end

return both
