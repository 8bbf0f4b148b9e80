-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong: each fault may strike at every moment at which it can, as often as the bounds
-- say.
local Client = require('latchkey.checker.client')
local parts = require('latchkey.checker.parts')

-- Each has a letter, and their orders are all tried.
local faults = { most_clients = 6 }

-- kind -> what it is, for `check --help` and the page of a run
faults.kinds = {
  { 'crash', 'a client dies; what it sent may still run' },
  { 'pause', 'a client stops for any time and goes on' },
  { 'slow', 'a call or its reply takes any time' },
  { 'request', 'a connection is lost with a call on it, which is sent again' },
  { 'reply', 'a connection is lost with a reply on it; the call is sent again' },
  { 'late', 'a call is sent again, and its first copy runs at any later time, or never' },
  { 'silence', 'no answer until the caller gives up; the call may run at any time, or never' },
  { 'drop', 'a message does not arrive' },
  { 'delay', 'a message takes any time' },
  { 'stranger', 'a message comes for nothing' },
  { 'channel', 'the connection that messages come on is lost, and made anew' },
  { 'flush', 'the server forgets its scripts' },
  { 'clock', 'the server\'s clock gains the drift on the clients\' clocks' },
  { 'break', 'somebody looks who holds the lock and breaks that hold, then or later' },
  { 'replicas', 'too few replicas say in time that they have a hold, where that is asked' },
  { 'failover', 'a replica takes over that lacks the last writes' },
  { 'clock-back', 'the server\'s clock is set back' },
}

-- Those that promises hold under; the others are for showing what is left without them.
faults.default = { 'crash', 'pause', 'slow', 'request', 'reply', 'late', 'silence', 'drop', 'delay',
  'stranger', 'channel', 'flush', 'clock', 'break', 'replicas' }

-- WAIT counts what its own connection wrote: on a new one it would say nothing, so it is not sent
-- again, and its caller is told at once that there is no answer.
local function cut(c, keep)
  local calls = c.pipe
  c.pipe, c.wrote, c.sending = {}, nil, nil
  for _, call in ipairs(calls) do
    if call.script == 'WAIT' then
      table.insert(c.quiet, 1, { role = call.role, script = call.script, args = call.args,
        copies = call.copies, due = c:now() })
      c.timers.quiet = c:now()
    else
      if keep and not call.reply then
        c:leave_late(call)
      end
      c:resend(call)
    end
  end
end

local function unexecuted(data)
  for _, call in ipairs(data.pipe) do
    if not call.reply then
      return call
    end
  end
end

local function is_script(call)
  return call and Client.is_script(call)
end

-- kind -> { can(data): may it strike?, strike(c, role) }
faults.of_client = {
  crash = {
    can = function(data)
      return data.pc ~= 'done' and data.pc ~= 'idle'
    end,
    strike = function(c)
      c:die()
    end,
  },
  pause = {
    can = function(data)
      return data.pc ~= 'done' and data.pc ~= 'idle'
    end,
    strike = function(c)
      c.paused, c.sending = true, nil
    end,
  },
  slow = {
    can = function(data)
      return data.pipe[1] and not data.pipe[1].slow
    end,
    strike = function(c)
      c.pipe[1].slow, c.sending = true, nil
    end,
  },
  request = {
    can = unexecuted,
    strike = function(c)
      cut(c, false)
    end,
  },
  reply = {
    can = function(data)
      return data.pipe[1] and data.pipe[1].reply
    end,
    strike = function(c)
      cut(c, false)
    end,
  },
  late = {
    can = function(data)
      return is_script(unexecuted(data))
    end,
    strike = function(c)
      cut(c, true)
    end,
  },
  silence = {
    can = function(data)
      return data.pipe[1]
    end,
    strike = function(c)
      for _, call in ipairs(c.pipe) do
        if not call.reply then
          c:leave_late(call)
        end
        table.insert(c.quiet, { role = call.role, script = call.script, args = call.args,
          target = call.target, beside = call.beside, locks = call.locks, copies = call.copies,
          due = call.sent + c:limit('third') })
      end
      c.pipe, c.timers.quiet, c.sending = {}, c.quiet[1].due, nil
    end,
  },
  drop = {
    can = function(data)
      return data.poked
    end,
    strike = function(c)
      c.poked, c.missed = nil, true
    end,
  },
  delay = {
    can = function(data)
      return data.poked and not data.delayed
    end,
    strike = function(c)
      c.poked, c.missed, c.delayed = nil, true, c.poked
    end,
  },
  stranger = {
    can = function(data)
      return next(data.listens) and not data.poked
    end,
    strike = function(c)
      c.poked = true
    end,
  },
  channel = {
    can = function(data)
      return next(data.listens)
    end,
    strike = function(c, role)
      local channels = parts.sorted_names(c.listens)
      c.listens, c.poked = {}, nil
      for _, channel in ipairs(channels) do
        c:listen('relisten', channel)
      end
      if role.deafened then
        role.deafened(c)
      end
    end,
  },
  flush = {
    can = function(data)
      return is_script(unexecuted(data))
    end,
    strike = function(c)
      for _, call in ipairs(c.pipe) do
        call.sent = call.reply and call.sent or c:now()
      end
    end,
  },
  replicas = {
    can = function(data)
      local call = unexecuted(data)
      return call and call.script == 'WAIT' and not call.few
    end,
    strike = function(c)
      unexecuted(c).few = true
    end,
  },
}

-- The order in which they are tried.
faults.order = { 'crash', 'pause', 'slow', 'request', 'reply', 'late', 'silence', 'drop', 'delay',
  'stranger', 'channel', 'flush', 'replicas' }

return faults
