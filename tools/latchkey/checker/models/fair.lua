-- SPDX-License-Identifier: Apache-2.0
-- The fair lock: clients queue, send heartbeats, and are told by ticket that the lock is theirs, as
-- c/src/locks/fair.c does it.

local PRIVATE = 'latchkey_fair:{l}'
local QUEUE = 'redisson_lock_queue:{l}'
local HEARTBEAT_MS, WAIT_MS = 150, 400

local role = model.taker({ acquire = 'fair/acquire', renew = 'lock/renew', release = 'fair/release',
  reenters = true, extra = { wait = WAIT_MS, heartbeat = HEARTBEAT_MS, client = 'lk-@' } })

role.deafened = nil -- its heartbeats look anyway

local function channel(c)
  return c:form('fair/release', 'channel') .. ':lk-@'
end

local function try(c)
  c.pc, c.timers.wake = 'try', nil
  c:send('try', 'fair/acquire', role.values(c, c.owner, 1))
end

local function beat(c)
  c.pc, c.timers.wake = 'beat', nil
  c:send('beat', 'fair/wait_renew', role.values(c, c.owner))
end

-- With others of its process, in one call; here it is alone in that.
local function beat_together(c)
  c.pc, c.timers.wake = 'beats', nil
  local values = role.values(c, c.owner)
  values.owners = { c.owner }
  c:send('beats', 'fair/wait_renew_all', values)
end

-- With replicas by the call that writes whatever it finds: WAIT speaks of writes alone.
local function look(c)
  if (c:limit('min_replicas') or 0) > 0 then
    try(c)
  else
    beat(c)
  end
end

local function sleep(c, wait_ms, call)
  c.pc, c.answered = 'sleep', call.sent
  c.timers.wake = c:now() + math.min(math.floor(HEARTBEAT_MS / 3),
    wait_ms >= 0 and wait_ms + 1 or math.huge)
end

function role.act.lock(c)
  c.rounds, c.owner = c.rounds - 1, c:new_owner()
  c.pc = 'listen'
  c:listen('listen', channel(c))
end

function role.reply.listen(c)
  c.poked = nil
  try(c)
end

function role.unanswered.listen(c)
  c:listen('listen', channel(c))
end

function role.reply.try(c, reply, call)
  c.stray = c.stray or call.copies > 1 or nil
  if reply[1] == 1 then
    role.granted(c, call)
  else
    sleep(c, reply[2], call)
  end
end

-- A name that may be in the queue is looked after, not queued again.
function role.unanswered.try(c)
  c.stray = true
  look(c)
end

function role.reply.beat(c, reply, call)
  if reply[1] == 1 then
    role.granted(c, call)
  elseif reply[1] == 0 then
    sleep(c, reply[2], call)
  else
    role.queue_again(c)
  end
end

-- Who is named in the answer looks by itself: it was granted, or dropped.
function role.reply.beats(c, reply, call)
  if reply[5] then
    beat(c)
  else
    sleep(c, reply[2], call)
  end
end

-- Under a new name: a ticket of the old one that is still on its way must not be believed.
function role.queue_again(c)
  c.owner = c:new_owner()
  try(c)
end

role.unanswered.beat = look
role.unanswered.beats = look

-- Nobody asks together whose first try is not answered, nor with replicas.
function role.due.wake(c)
  if c.answered and (c:limit('min_replicas') or 0) == 0 then
    beat_together(c)
  else
    look(c)
  end
end

function role.hear(c, _, message)
  c.poked = type(c.poked) == 'table' and c.poked or { c.poked and 'any' }
  table.insert(c.poked, message == '0' and 'any' or 'lk-@:' .. message)
end

-- Tickets are read where no call of this hold is under way.
function role.takes(c)
  return c.pc == 'sleep' or c.pc == 'held' or c.pc == 'idle' or c.pc == 'done'
end

-- believe: it is the heir until its heartbeat ends, or until it renews
function role.inherit(c)
  c.timers.wake = nil
  role.hold(c, { sent = c.answered, lease = c:limit('heartbeat') or HEARTBEAT_MS,
    drift = c:limit('heartbeat_drift') })
end

local function may_inherit(c)
  local heartbeat = c:limit('heartbeat') or HEARTBEAT_MS
  local left = c.answered + heartbeat - (c:limit('heartbeat_drift') or c:limit('drift')) - c:now()
  return left >= heartbeat / 2 and c:limit('renewals') > 0 and (c:limit('min_replicas') or 0) == 0
end

-- told: the ticket of the hold that waits is its grant; another that nobody waits for goes back
local function told(c, owner)
  if owner == 'any' then
    return c.pc == 'sleep' and look(c)
  elseif owner ~= c.owner then
    c:send('undo', 'fair/release', role.values(c, owner, 0))
  elseif c.pc == 'sleep' and may_inherit(c) then
    role.inherit(c)
  elseif c.pc == 'sleep' then
    look(c)
  end
end

function role.message(c, tickets)
  for _, ticket in ipairs(type(tickets) == 'table' and tickets or { 'any' }) do
    told(c, ticket)
  end
end

local choices = role.choices

function role.choices(c)
  local list = choices(c)
  if c.pc == 'sleep' then
    list = { 'quit' }
  end
  return list
end

function role.act.quit(c)
  c:send('undo', 'fair/leave', role.values(c, c.owner))
  role.finish(c)
end

-- Who waits and is alive, with its terms; whoever looks drops the others from the front.
local function live_line(keys)
  local list, terms = {}, {}
  for i = 1, keys[PRIVATE] and #keys[PRIVATE].value or 0, 2 do
    terms[keys[PRIVATE].value[i]] = keys[PRIVATE].value[i + 1]
  end
  for _, owner in ipairs(keys[QUEUE] and keys[QUEUE].value or {}) do
    local ends = tonumber((terms[owner] or ''):match('^%d+'))
    if ends and ends > model.now then
      list[#list + 1] = owner .. ' ' .. terms[owner]
    end
  end
  return list
end

-- Who is passed the lock has it until its heartbeat ends.
local function heartbeat_left(owner, line)
  for _, waiter in ipairs(line) do
    if waiter.owner == owner then
      return waiter.ends - model.now
    end
  end
end

-- Of several heartbeats in one call there is one here.
local function caller(e)
  return e.owner or e.args.owners
end

-- And no longer: it may be dead, and others wait.
local function check_passed(e, line, report)
  for _, owner in ipairs(model.names(e.after_holders)) do
    local left_ms = heartbeat_left(owner, line)
    local asked = e.before_holders[owner] or owner == caller(e)
    if left_ms and not asked and e.after_holders[owner].left_ms > left_ms then
      report('G7', ('%s was passed the lock for %d ms, and its heartbeat ends in %d'):format(owner,
        e.after_holders[owner].left_ms, left_ms))
    end
  end
end

-- Arrival: who was told to wait stands in line until it is granted, leaves, or its heartbeat ends.
local function check_order(e, line, report)
  for _, owner in ipairs(model.names(e.after_holders)) do
    for i = 1, e.before_holders[owner] and 0 or #line do
      local first = line[i]
      local leaves = e.script == 'fair/leave' and first.owner == e.owner
      if first.owner == owner then
        break
      elseif first.ends > model.now and not leaves then
        report('G7', ('%s was granted the lock before %s, which came first and is alive'):format(
          owner, first.owner))
      end
    end
  end
end

local function keep_line(e, line, report)
  local place
  local dropped = e.script == 'fair/wait_renew' and e.outcome == -1
    or e.script == 'fair/wait_renew_all' and e.reply[5]
  for i = #line, 1, -1 do
    local owner = line[i].owner
    if e.after_holders[owner] or e.script == 'fair/leave' and owner == e.owner
      or line[i].ends < model.now then
      table.remove(line, i)
    end
  end
  for i = 1, #line do
    place = line[i].owner == caller(e) and i or place
  end
  if e.outcome == 0 and e.args.heartbeat and not dropped then
    place = place or #line + 1
    line[place] = { owner = caller(e), ends = model.now + e.args.heartbeat }
  elseif dropped and place then
    if line[place].ends > model.now then
      report('G7', ('%s lost its place, though its heartbeat is not over'):format(caller(e)))
    end
    table.remove(line, place)
  end
end

return model.family {
  name = 'fair',
  summary = 'the lock that is granted in order of arrival',
  roles = {
    taker = role,
    operator = model.operator({ inspect = 'fair/inspect', break_ = 'fair/break', owner = 5 }),
  },
  clients = function(n)
    return ('taker '):rep(n)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = 1,
    back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = {
    { clients = 2, rounds = 2 },
    { clients = 3, rounds = 1 },
    { clients = 2, rounds = 1, limits = { levels = 2 }, kinds = { 'break' } },
  },
  holders = model.holders.of_hash,
  passes_on = function(owner, ghost)
    return heartbeat_left(owner, ghost.line or {}) or 0 -- a fail-over may have brought it back
  end,
  equal = function(once, twice)
    return model.text({ once.l, live_line(once) }) == model.text({ twice.l, live_line(twice) })
  end,
  free = function(keys, name)
    return not keys[name] and keys[QUEUE] ~= nil
  end,
  event = function(e)
    e.may_wait = true
  end,
  judges = { 'G7' },
  verbs = { ['fair/acquire'] = 'acquire', ['fair/wait_renew'] = 'acquire',
    ['fair/wait_renew_all'] = 'acquire',
    ['lock/renew'] = 'renew', ['fair/release'] = 'release', ['fair/leave'] = 'leave',
    ['fair/break'] = 'break', ['fair/inspect'] = 'inspect' },
  unreached = {
    ['fair/break {0}'] = 'nobody is told to break what inspect showed free',
    ['fair/acquire {-2}'] = 'ten thousand do not wait',
  },
  observe = function(e, ghost, report)
    ghost.line = ghost.line or {}
    check_passed(e, ghost.line, report)
    check_order(e, ghost.line, report)
    keep_line(e, ghost.line, report)
  end,
}
