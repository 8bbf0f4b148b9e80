-- SPDX-License-Identifier: Apache-2.0
-- A client that takes locks of one holder as attempt.c and plain.c in c/src/locks do: one table
-- row each kind, one acquire loop for all. Each function names the function of the library whose
-- algorithm it is.
local parts = require('latchkey.checker.parts')

local taker = {}

local DEAF_FIRST_MS, DEAF_LAST_MS = 50, 500
-- So often must a waiter have looked whose pauses are no more than the last; so it is with who was
-- never heard.
local DEAF_LOOKS = 4
taker.deaf_last_ms = DEAF_LAST_MS

---lk_attempt_pause_us: who is deaf looks again within this time, and no sooner than half of it
---@param looks integer how often it has looked already while it was deaf
---@return number ms
function taker.deaf_ms(looks)
  return math.min(DEAF_FIRST_MS * 2 ^ looks, DEAF_LAST_MS)
end

---@param row table { acquire, renew, release, transfer, reenters, polls, suffix, extra, owner,
---  token, mode }; `suffix` ends the names of its owners, `extra` are further arguments, `owner` is
---  the argument that names the owner where that is not "owner", `token` is where the reply has
---  one; `foreign`: the scripts are not latchkey's, and know their arguments by other names
---@return table role
function taker.role(row)
  local role = { row = row, act = {}, reply = {}, due = {}, unanswered = {} }
  local owner_field = row.owner or 'owner'

  local function values(c, owner, hold, extra)
    local all = { lease = c:limit('lease'), owner = owner, hold = hold, ids = { owner },
      ticket = c.serial }
    if row.foreign then
      all[1] = row.extra
      return all
    end
    for _, more in ipairs({ row.extra or {}, extra or {} }) do
      for _, name in ipairs(parts.sorted_names(more)) do
        all[name] = more[name]
      end
    end
    return all
  end
  role.values = values

  local function new_owner(c)
    local owner = c:new_owner()
    return row.id and owner .. ('.'):rep(16 - #owner) or owner .. (row.suffix or '')
  end

  -- lk_attempt_try
  local function try(c)
    c.pc, c.timers.wake = 'try', nil
    c:send('try', row.acquire, values(c, c.owner, 1))
  end

  -- lk_attempt_name: one owner's name, from its first try to its hold or to nothing
  local function obtain(c)
    c.owner, c.stray, c.level, c.deaf = new_owner(c), nil, nil, nil
    try(c)
  end

  -- lk_undo_start
  local function undo(c, owner)
    c:send('undo', row.release, values(c, owner, 0))
  end

  local function ends_hold(c)
    c.deadline, c.lost, c.level, c.renewals = nil, nil, nil, nil
    c.timers.renew, c.timers['end'], c.timers.wake = nil, nil, nil
  end

  -- lk_hold_remove
  local function finish(c)
    ends_hold(c)
    c.owner, c.stray, c.poked, c.token, c.answered, c.listens = nil, nil, nil, nil, nil, {}
    c.deaf = nil
    c.pc = c.rounds > 0 and 'idle' or 'done'
  end
  role.finish = finish

  local function deadline(c, call)
    return call.sent + (call.lease or c:limit('lease')) - (call.drift or c:limit('drift'))
  end

  -- plan; a hold is renewed so often within the bounds
  local function plan_renewal(c, call)
    if c.renewals > 0 then
      c.renewals = c.renewals - 1
      c.timers.renew = call.sent + (call.lease and math.floor(call.lease / 3) or c:limit('third'))
    end
  end

  -- lk_lock_add_hold; `call` is what was granted: { sent, lease, drift }, as the limits without
  local function hold(c, call)
    c.pc, c.level, c.deaf = 'held', 1, nil
    c.deadline = deadline(c, call)
    c.timers['end'] = c.deadline
    c.renewals = c:limit('renewals')
    plan_renewal(c, call)
  end

  local function waits_for_replicas(c)
    return (c:limit('min_replicas') or 0) > 0
  end

  -- keep
  local function keep(c, call)
    if c:now() >= deadline(c, call) then -- has_ended, give_back
      c.pc = 'giveback'
      c:send('giveback', row.release, values(c, c.owner, 0))
    else
      hold(c, call)
    end
  end

  -- lk_attempt_granted, ask_replicas; of two copies the second may have written nothing, and then
  -- WAIT speaks of nothing
  local function granted(c, call, token)
    c.token = token
    if not waits_for_replicas(c) or c:now() >= deadline(c, call) then
      keep(c, call)
    elseif c.stray or call.copies > 1 then
      role.unanswered.confirm(c)
    else
      c.pc = 'confirm'
      c:wait('confirm', c.owner, call.sent + c:limit('lease'))
    end
  end

  role.hold, role.granted, role.keep = hold, granted, keep

  -- What WAIT was sent for counts from the send of that.
  local function asked_for(c, call)
    return { sent = call.ends - c:limit('lease') }
  end

  -- confirm
  function role.reply.confirm(c, reply, call)
    if reply[1] >= c:limit('min_replicas') then
      keep(c, asked_for(c, call))
    else
      role.unanswered.confirm(c)
    end
  end

  -- Too few know of it: it is undone, and tried again under a new name.
  function role.unanswered.confirm(c)
    undo(c, c.owner)
    c.owner, c.stray, c.token = new_owner(c), nil, nil
    c.pc, c.missed = 'sleep', true
    c.timers.wake = c:now() + c:limit('third')
  end

  -- lk_watch_lose; the first reason stands
  local function lose(c, why)
    c.lost = c.lost or why
    c.deadline, c.timers.renew, c.timers['end'] = nil, nil, nil
  end

  -- notice_end: a lease that ended while nobody looked
  local function notice_end(c)
    if c.deadline and c:now() >= c.deadline then
      lose(c, 'ended')
    end
  end

  -- extend
  local function extend(c, call)
    c.deadline = math.max(c.deadline, deadline(c, call))
    c.timers['end'] = c.deadline
  end

  function role.start(c)
    c.rounds = c:limit('rounds')
  end

  function role.choices(c)
    if c.pc == 'idle' and c.rounds > 0 then
      return { 'lock' }
    elseif c.pc == 'sleep' and (c.stray or row.leave) then
      return { 'quit' }
    elseif c.pc ~= 'held' then
      return {}
    end
    local list = { 'leave' }
    if row.reenters and not c.lost and c.level < c:limit('levels') then
      list[#list + 1] = 'reenter'
    end
    if row.transfer and not c.lost and c.rounds > 0 and c.level == 1 and c:limit('handover')
      and not waits_for_replicas(c) then
      list[#list + 1] = 'handover'
    end
    return list
  end

  -- lk_lock_acquire
  function role.act.lock(c)
    c.rounds = c.rounds - 1
    obtain(c)
  end

  -- plan_look, lk_waiter_sleep
  local function sleep(c, wait_ms)
    local recheck_ms, often = c:limit('recheck'), row.polls or row.wait
    local pause_ms = wait_ms >= 0 and math.min(recheck_ms, wait_ms + 1) or recheck_ms
    c.pc = 'sleep'
    c.timers.wake = c:now() + (often and math.min(c:limit('third'), pause_ms) or pause_ms)
  end

  -- sleep_on, look_deaf_at: who does not hear the channel looks by itself
  local function sleep_deaf(c, wait_ms)
    sleep(c, wait_ms)
    c.pc = 'listen'
    c.timers.wake = math.min(c.timers.wake, c:now() + taker.deaf_ms(c.deaf))
    c.deaf = math.min(c.deaf + 1, DEAF_LOOKS)
  end

  local WAITS = { try = true, wait = true, sleep = true, listen = true }

  -- told, in waiters.c: the connection that messages come on is lost, and is made anew
  function role.deafened(c)
    if WAITS[c.pc] then
      c.deaf, c.poked = c.deaf or 0, c.pc ~= 'listen' or nil
    end
  end

  -- answered, in plain.c
  function role.reply.try(c, reply, call)
    c.stray = c.stray or call.copies > 1 or nil
    local channel = c:channel(row.release)
    if reply[1] == 1 then
      granted(c, call, row.token and reply[row.token])
    elseif not channel then -- a release that tells nobody: who waits looks by itself
      c.missed = true
      sleep(c, reply[2])
    elseif not c.listens[channel] and c.deaf and c.poked then
      c.poked = nil
      try(c)
    elseif not c.listens[channel] and c.deaf then
      sleep_deaf(c, reply[2])
    elseif not c.listens[channel] then -- lk_waiters_listen
      c.deaf = DEAF_LOOKS
      sleep_deaf(c, reply[2])
      c:listen('listen', channel)
    elseif row.wait and not c:limit('silent') then
      c.pc, c.wait_ms = 'wait', reply[2]
      c:send('wait', row.wait, values(c, c.owner))
    else
      sleep(c, reply[2])
    end
  end

  -- announce: a writer that waits says so
  function role.reply.wait(c, reply)
    if reply[1] == 1 then
      sleep(c, c.wait_ms)
      c.wait_ms = nil
    else
      try(c)
    end
  end

  function role.unanswered.wait(c)
    c.wait_ms = nil
    role.unanswered.try(c)
  end

  -- An unanswered call excuses for a pause: nobody knows then what it missed.
  function role.unanswered.try(c)
    c.stray, c.pc, c.missed = true, 'sleep', true
    c.timers.wake = c:now() + c:limit('third')
  end

  -- told, in waiters.c: it is heard
  function role.reply.listen(c)
    c.deaf = nil
    if c.pc == 'listen' then
      c.poked = nil
      try(c)
    else
      c.poked = true
    end
  end

  function role.unanswered.listen(c)
    c.deaf = nil
    if c.pc == 'listen' then
      c.pc, c.listens, c.poked, c.missed = 'sleep', {}, nil, true
      c.timers.wake = c:now() + c:limit('third')
    end
  end

  role.message = try -- woken
  role.due.wake = try

  -- lk_attempt_give_up
  function role.act.quit(c)
    if row.leave then
      c:send('undo', row.leave, values(c, c.owner))
    end
    undo(c, c.owner)
    finish(c)
  end

  role.reply.giveback = obtain
  role.unanswered.giveback = obtain

  function role.reply.undo() end

  -- answered, in undo.c
  function role.unanswered.undo(c, call)
    c:send_again(call)
  end

  -- fire, in watch.c
  role.due['end'] = notice_end

  function role.due.renew(c)
    c.timers.renew = nil
    c:send('renew', row.renew, values(c, c.owner))
  end

  local function is_current(c, call)
    return c.deadline ~= nil and call.args[c:place(call.script, owner_field)] == c.owner
  end

  -- renewed, take_answer
  function role.reply.renew(c, reply, call)
    notice_end(c)
    if not is_current(c, call) then
      return
    elseif reply[1] == 1 and waits_for_replicas(c) and call.copies > 1 then
      role.unanswered.renew(c, call)
    elseif reply[1] == 1 and waits_for_replicas(c) then
      c:wait('counted', c.owner, call.sent + c:limit('lease'))
    elseif reply[1] == 1 then
      extend(c, call)
      plan_renewal(c, call)
    else
      lose(c, 'taken')
    end
  end

  -- retry_later
  function role.unanswered.renew(c, call)
    if is_current(c, call) then
      c.timers.renew = c:now() + c:limit('third')
    end
  end

  -- replicas_counted
  function role.reply.counted(c, reply, call)
    notice_end(c)
    if not c.deadline or call.args[2] ~= c.owner then
      return
    elseif reply[1] >= c:limit('min_replicas') then
      extend(c, asked_for(c, call))
      plan_renewal(c, asked_for(c, call))
    else
      c.timers.renew = c:now() + c:limit('third')
    end
  end

  function role.unanswered.counted(c, call)
    if c.deadline and call.args[2] == c.owner then
      c.timers.renew = c:now() + c:limit('third')
    end
  end

  -- reenter
  function role.act.reenter(c)
    c.pc = 'reenter'
    c:send('reenter', row.acquire, values(c, c.owner, c.level + 1))
  end

  function role.reply.reenter(c, reply, call)
    c.pc = 'held'
    notice_end(c)
    if reply[1] ~= 1 then
      lose(c, 'taken')
    elseif c.deadline then
      if not waits_for_replicas(c) then
        extend(c, call)
      end
      c.level = c.level + 1
    end
  end

  function role.unanswered.reenter(c)
    c.pc = 'held'
  end

  -- prepare, in release.c
  function role.act.leave(c)
    notice_end(c)
    c.pc = 'release'
    local left, lost = c.level - 1, c.lost
    if left == 0 then
      ends_hold(c)
      c.lost = lost
    end
    if lost == 'taken' then
      c:say('release', 'lost')
      c.level, c.pc = left, 'held'
      return left == 0 and finish(c)
    end
    c.level, c.was_lost = left, lost
    c:send('release', row.release, values(c, c.owner, left))
  end

  -- released; what was lost before the release began counts
  function role.reply.release(c, reply, call)
    local status = reply[1] == 1 and 'ok' or call.copies > 1 and 'unsure' or 'lost'
    c:say('release', c.was_lost and 'lost' or status, call, reply)
    c.was_lost = nil
    if c.level == 0 then
      finish(c)
    else
      c.pc = 'held'
      if reply[1] ~= 1 then
        lose(c, 'taken')
      end
    end
  end

  function role.unanswered.release(c, call)
    c:say('release', c.was_lost and 'lost' or 'unsure', call)
    c.was_lost = nil
    if c.level == 0 then
      undo(c, c.owner)
      finish(c)
    else
      c.pc = 'held'
    end
  end

  -- the hold goes to the first of those who wait in this process
  function role.act.handover(c)
    local old = c.owner
    ends_hold(c)
    c.rounds, c.owner, c.pc = c.rounds - 1, new_owner(c), 'transfer'
    c:send('transfer', row.transfer, values(c, old, nil, { new_owner = c.owner }))
  end

  function role.reply.transfer(c, reply, call)
    if reply[1] == 1 then
      granted(c, call, row.token and reply[row.transfer_token])
    else
      obtain(c)
    end
  end

  -- The old name first: a copy of the transfer that runs in between then finds nothing to move.
  function role.unanswered.transfer(c, call)
    undo(c, call.args[c:place(call.script, owner_field)])
    undo(c, c.owner)
    obtain(c)
  end

  function role.believes(c)
    return c.deadline and c:now() < c.deadline and (row.mode or 'write') or nil
  end

  return role
end

return taker
