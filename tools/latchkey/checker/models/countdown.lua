-- SPDX-License-Identifier: Apache-2.0
-- The countdown latch: some count, one waits until all have.

local waiter = { act = {}, reply = {}, due = {}, unanswered = {} }

local function look(c)
  c.pc, c.timers.wake = 'look', nil
  c:send('look', 'countdown/inspect', {})
end

function waiter.start(c)
  c.pc, c.looks = 'idle', c:limit('looks')
end

function waiter.choices(c)
  return c.pc == 'idle' and { 'wait' } or {}
end

function waiter.act.wait(c)
  c.pc = 'listen'
  c:listen('listen', c:form('countdown/count_down', 'channel'))
end

function waiter.reply.listen(c)
  c.poked = nil
  look(c)
end

waiter.unanswered.listen = waiter.act.wait

function waiter.reply.look(c, reply)
  if reply[1] == 0 then
    c.pc, c.listens, c.poked = 'done', {}, nil
  elseif c.looks == 0 then
    c.pc, c.listens, c.poked = 'done', {}, nil
  else
    c.pc, c.looks = 'sleep', c.looks - 1
    c.timers.wake = c:now() + c:limit('recheck')
  end
end

waiter.unanswered.look = look
waiter.message = look
waiter.due.wake = look

function waiter.believes() end

local one = model.visitor({ { 'countdown/count_down', { count = 1 } } })

local function left(keys, name)
  return keys[name] and tonumber(keys[name].value) or 0
end

return model.family {
  name = 'countdown',
  summary = 'a latch that opens when it is counted down',
  roles = {
    waiter = waiter,
    counter = one,
    visitor = model.visitor({ { 'countdown/inspect' }, { 'countdown/reset' },
      { 'countdown/set', { count = 2 } }, { 'countdown/set', { count = 3 } },
      { 'countdown/inspect' }, { 'countdown/count_down', { count = 3 } },
      { 'countdown/count_down', { count = 2 } }, { 'countdown/set', { count = 2 } },
      { 'countdown/reset' } }),
  },
  clients = function(n)
    return n == 1 and 'visitor' or ('counter '):rep(n - 1) .. 'waiter'
  end,
  keys = function(steps)
    local counters = steps.bounds.clients - 1
    return counters > 0
      and { [steps.server.name] = { type = 'string', value = tostring(counters) } } or {}
  end,
  ghost = function(ghost, steps)
    ghost.left = steps.bounds.clients - 1
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, looks = 2, back = 200 },
  bounds = { clients = 3, rounds = 1, faults = 1 },
  runs = { { clients = 4, rounds = 1 }, { clients = 1, rounds = 1 } },
  faults = { 'crash', 'pause', 'slow', 'request', 'reply', 'late', 'silence', 'drop', 'delay',
    'stranger', 'channel', 'flush', 'clock' },
  free = function(keys, name)
    return not keys[name]
  end,
  judges = { 'G5', 'G11' },
  verbs = { ['countdown/count_down'] = 'count', ['countdown/set'] = 'set',
    ['countdown/reset'] = 'reset', ['countdown/inspect'] = 'inspect' },
  unreached = {
    ['countdown/inspect {-1}'] = 'no other kind of key has this name',
    ['countdown/set {-2}'] = 'set is called once at a time, and so is reset',
    ['countdown/reset {-2}'] = 'as above',
    ['countdown/count_down {-2}'] = 'each client counts once',
  },
  observe = function(e, ghost, report)
    if e.verb == 'inspect' then
      if (e.outcome == 0) ~= (ghost.left == 0) then
        report('G5', ('the latch looks open, and %d are left'):format(ghost.left))
      end
      return
    elseif model.is_first(e, ghost) and e.outcome == 1 then
      local count = tonumber(e.args.count) or 0
      ghost.left = e.verb == 'set' and count or e.verb == 'reset' and 0 or ghost.left - count
      ghost.freed = ghost.left == 0 or nil
    end
    if left(e.after.data, e.name) ~= ghost.left then
      report('G11', ('%d are left to count, and it should be %d'):format(
        left(e.after.data, e.name), ghost.left))
    end
  end,
}
