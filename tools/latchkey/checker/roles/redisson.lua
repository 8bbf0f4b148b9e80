-- SPDX-License-Identifier: Apache-2.0
-- A thread of Redisson that takes a lock by the name that it always has: it renews by a
-- watchdog, and asks again when it is told that the lock is free, or when the lease should end.
-- What it believes is not looked at, since it counts no deadlines; nor are its calls lost or sent
-- again, which breaks its counts by itself.
local redisson = require('latchkey.checker.redisson_calls')

local THREAD = 'd0ab9a76-5f51-4b02-8a3a-4de7e1d0c001:'

local SUFFERS = { crash = true, pause = true, slow = true, drop = true, delay = true,
  stranger = true }

---@param row { lock, unlock, renew, thread: string, renewals, wakes, suffers: table }; `renewals`
---  has the call by the limit `redisson_age` where ages differ, `wakes` the messages that its
---  waiters go by, `suffers` the faults that it can bear
return function(row)
  local role = { act = {}, reply = {}, due = {}, unanswered = {}, suffers = row.suffers or SUFFERS }

  local function call(c, name, script)
    c:send(name, script, { lease = c:limit('lease'), owner = THREAD .. row.thread })
  end

  local function try(c)
    c.pc, c.timers.wake = 'try', nil
    call(c, 'try', row.lock)
  end

  local function finish(c)
    c.listens, c.poked, c.level, c.timers.renew = {}, nil, nil, nil
    c.pc = c.rounds > 0 and 'idle' or 'done'
  end

  function role.start(c)
    c.rounds = c:limit('rounds')
  end

  function role.choices(c)
    if c.pc == 'idle' and c.rounds > 0 then
      return { 'lock' }
    elseif c.pc ~= 'held' then
      return {}
    end
    return c.level < c:limit('levels') and { 'leave', 'reenter' } or { 'leave' }
  end

  function role.act.lock(c)
    c.rounds = c.rounds - 1
    try(c)
  end

  function role.reply.try(c, reply)
    local channel = redisson.channel(row.lock, 'l')
    if reply[1] == 1 then
      c.pc, c.level, c.listens, c.poked = 'held', 1, {}, nil
      c.timers.renew = c:now() + c:limit('third')
    elseif not c.listens[channel] then
      c.pc = 'listen'
      c:listen('listen', channel)
    else
      c.pc = 'sleep'
      c.timers.wake = reply[2] >= 0 and c:now() + reply[2] or nil
    end
  end

  role.reply.listen = try
  role.message = try
  role.due.wake = try

  function role.hear(c, _, message)
    c.poked = c.poked or row.wakes[message]
  end

  function role.due.renew(c)
    call(c, 'renew', row.renewals and row.renewals[c:limit('redisson_age')] or row.renew)
  end

  function role.reply.renew(c, reply)
    if reply[1] == 1 and c.level then
      c.timers.renew = c:now() + c:limit('third')
    end
  end

  function role.act.reenter(c)
    c.pc = 'reenter'
    call(c, 'reenter', row.lock)
  end

  -- Where the hold was lost, another may have it now, or this is a new one.
  function role.reply.reenter(c, reply)
    c.pc, c.level = 'held', reply[1] == 1 and reply[2] or c.level
  end

  function role.act.leave(c)
    c.pc = 'release'
    c.timers.renew = c.level == 1 and nil or c.timers.renew
    call(c, 'release', row.unlock)
  end

  function role.reply.release(c, reply)
    if reply[1] == 1 and reply[2] > 0 then
      c.pc, c.level = 'held', reply[2]
    else
      finish(c)
    end
  end

  function role.believes() end

  return role
end
