-- SPDX-License-Identifier: Apache-2.0
-- A client of counters, which have no owners: each call has a seq, and a call that nobody answered
-- is unknown. It takes a permit and gives it back, as c/src/counters.c does.
local counter = {}

---@param row { acquire, release, bound }
function counter.role(row)
  local role = { act = {}, reply = {}, due = {}, unanswered = {} }

  local function send(c, name, script)
    c.seq = c.seq + 1
    c:send(name, script, { count = 1, caller = 'lk-@', seq = c.seq, bound = row.bound })
  end

  local function try(c)
    c.pc, c.timers.wake = 'try', nil
    send(c, 'try', row.acquire)
  end

  local function finish(c)
    c.poked, c.listens = nil, {}
    c.timers.wake = nil
    c.pc = c.rounds > 0 and 'idle' or 'done'
  end

  function role.start(c)
    c.rounds, c.seq = c:limit('rounds'), 0
  end

  function role.choices(c)
    return c.pc == 'idle' and c.rounds > 0 and { 'take' } or c.pc == 'held' and { 'give' }
      or {}
  end

  function role.act.take(c)
    c.rounds, c.looks = c.rounds - 1, c:limit('looks')
    try(c)
  end

  function role.reply.try(c, reply)
    local channel = c:form(row.release, 'channel')
    if reply[1] == 1 then
      c.pc = 'held'
    elseif reply[1] ~= 0 then
      finish(c)
    elseif not c.listens[channel] then
      c.pc = 'listen'
      c:listen('listen', channel)
    elseif c.looks == 0 then
      finish(c)
    else
      c.pc, c.looks = 'sleep', c.looks - 1
      c.timers.wake = c:now() + c:limit('recheck')
    end
  end

  role.unanswered.try = finish

  function role.reply.listen(c)
    c.poked = nil
    try(c)
  end

  role.unanswered.listen = finish
  role.message = try
  role.due.wake = try

  function role.act.give(c)
    c.pc = 'release'
    send(c, 'release', row.release)
  end

  role.reply.release = finish
  role.unanswered.release = finish

  function role.believes() end

  return role
end

---Is this the first copy of a call that the ghost sees? Later ones count for nothing.
function counter.is_first(e, ghost)
  ghost.seqs = ghost.seqs or {}
  local caller, seq = e.args.caller, tonumber(e.args.seq)
  if seq <= (ghost.seqs[caller] or 0) then
    return false
  end
  ghost.seqs[caller] = seq
  return true
end

return counter
