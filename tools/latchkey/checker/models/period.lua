-- SPDX-License-Identifier: Apache-2.0
-- Jobs that are to run once in each period: clients that ask whether one is due, take its lock, ask
-- again, work, and mark it as done, as `latchkey exec --every` does. They begin at any time, as
-- machines whose clocks differ do. What is promised is G13: who is told that a job is due is in a
-- period of which nobody was told, by the mark of a run, that it is done.

local role = model.taker({ acquire = 'lock/acquire', renew = 'lock/renew',
  release = 'lock/release' })

local choices, lock, leave, try = role.choices, role.act.lock, role.act.leave, role.reply.try

function role.choices(c)
  if c.pc == 'idle' and c.rounds > 0 then
    return { 'ask' }
  elseif c.pc == 'held' then
    return c.stage == 'work' and { 'succeed', 'fail' } or {}
  end
  return choices(c)
end

local function check(c, name, at)
  c:send(name, 'period/check', { every = c:limit('every'), at = at })
end

function role.act.ask(c)
  c.pc = 'ask'
  check(c, 'ask', 0)
end

function role.reply.ask(c, reply)
  if reply[1] == 1 then
    c.asked = reply[2]
    lock(c)
  else
    c.rounds = c.rounds - 1
    c.pc = c.rounds > 0 and 'idle' or 'done'
  end
end

role.unanswered.ask = role.act.ask

local function look(c)
  check(c, 'look', c.asked)
end

-- Once it holds the lock, it looks again.
function role.reply.try(c, reply, call)
  try(c, reply, call)
  if c.pc == 'held' then
    c.stage = 'look'
    look(c)
  end
end

-- --at-least: the lock stays, under a name that nobody renews. Else, or when it is lost, it goes.
local function over(c)
  c.asked, c.ran, c.stage = nil, nil, nil
  if c:limit('rest') == 0 or not role.believes(c) then
    return leave(c)
  end
  c.deadline, c.timers.renew, c.timers['end'], c.pc = nil, nil, nil, 'keep'
  c:send('keep', 'lock/release_after', { rest = c:limit('rest'), owner = c.owner,
    new_owner = c.owner .. '.kept' })
end

role.reply.keep = role.finish
role.unanswered.keep = role.finish

-- It works only while it holds the lock.
function role.reply.look(c, reply)
  if reply[1] == 1 and role.believes(c) then
    c.stage, c.ran = 'work', reply[2]
  else
    over(c)
  end
end

function role.unanswered.look(c)
  if role.believes(c) then
    look(c)
  else
    over(c)
  end
end

function role.act.succeed(c)
  if not role.believes(c) then
    return over(c)
  end
  c.stage = 'mark'
  c:send('mark', 'period/mark', { every = c:limit('every'), at = c.ran, owner = c.owner,
    label = '' })
end

role.act.fail = over
role.reply.mark = over

function role.unanswered.mark(c, call)
  if role.believes(c) then
    c:send_again(call)
  else
    over(c)
  end
end

local observe = {}

-- What an onlooker knows of the last run that was marked; nil when its record has ended, or is so
-- far ahead that it counts for nothing.
local function known(ghost, every)
  local run, now = ghost.run, model.now
  return run and run.forget >= now and run.ends - every <= now + every and run or nil
end

function observe.check(e, ghost, report)
  local run = known(ghost, e.args.every)
  if run and run.vague then
    return
  end
  local asked = e.args.at == 0 and model.now or e.args.at
  local is_done = run ~= nil and asked < run.ends
  if is_done ~= (e.outcome == 0) then
    report('G13', ('%s was told that the job is %s, and it is %s'):format(e.letter,
      e.outcome == 0 and 'done' or 'due', is_done and 'done' or 'due'))
  end
end

local function mark_ends(run, began, every)
  local ends = run and run.ends or began + every - math.floor(every / 2)
  while ends <= began do
    ends = ends + every
  end
  return ends
end

-- Of two runs in one period the mark of the first counts. The second began by right, since it was
-- told that the job is due: who ran the first had died or lost the lock, and its call came late.
-- One that is marked when its record has ended already says nothing about periods that anybody
-- still asks for.
function observe.mark(e, ghost, report)
  local run, began = known(ghost, e.args.every), math.min(e.args.at, model.now)
  local is_copy = run and run.owner == e.owner and run.at == e.args.at
  if not is_copy and (run and run.vague or began < model.now - 2 * e.args.every) then
    ghost.run = { vague = true, ends = model.now, forget = model.now + 2 * e.args.every }
  elseif is_copy and e.outcome ~= 1 then
    report('G13', ('%s marked its run, and the copy of that was refused'):format(e.owner))
  elseif is_copy then
    return
  elseif run and began < run.ends then
    if e.outcome ~= 0 then
      report('G13', ('%s marked a run in a period that was done'):format(e.owner))
    end
  elseif e.outcome ~= 1 then
    report('G13', ('%s was refused the mark of a period that nobody had done'):format(e.owner))
  else
    ghost.run = { owner = e.owner, at = e.args.at, ends = mark_ends(run, began, e.args.every),
      forget = model.now + 2 * e.args.every }
  end
end

function observe.transfer(e, _, report)
  local kept = e.after_holders[e.new_owner]
  if e.outcome == 1 and e.before_holders[e.owner] and (not kept or kept.left_ms ~= e.args.rest) then
    report('G5', ('%s was to stay taken for %d ms'):format(e.name, e.args.rest))
  end
end

return model.family {
  name = 'period',
  summary = 'jobs that run once in each period, and again only when they failed',
  roles = {
    taker = role,
    operator = model.operator({ inspect = 'lock/inspect', break_ = 'lock/break', owner = 4 }),
  },
  clients = function(n)
    return ('taker '):rep(n)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = 0,
    every = 200, rest = 0, back = 200 },
  past_ms = 1000,
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = {
    {},
    { limits = { rest = 100 } },
    { rounds = 2, faults = 0, limits = { rest = 100 } },
    { rounds = 2, kinds = { 'crash' } },
    { clients = 1, faults = 2, limits = { renewals = 1, rest = 100 } },
    { clients = 3, faults = 0 },
    { kinds = { 'failover' }, only = { 'G13' }, expect = 'G13',
      says = 'a fail-over loses the mark of a run' },
  },
  faults = { 'crash', 'pause', 'slow', 'request', 'reply', 'late', 'silence', 'flush', 'break' },
  holders = model.holders.of_hash,
  judges = { 'G13' },
  verbs = { ['lock/acquire'] = 'acquire', ['lock/renew'] = 'renew', ['lock/release'] = 'release',
    ['lock/release_after'] = 'transfer', ['lock/break'] = 'break', ['lock/inspect'] = 'inspect',
    ['period/check'] = 'check', ['period/mark'] = 'mark' },
  unreached = {
    ['lock/break {0}'] = 'nobody is told to break what inspect showed free',
    ['lock/acquire {-1}'] = 'these clients do not re-enter',
  },
  -- A copy finds what is left of the rest.
  event = function(e)
    if e.args.rest and e.outcome == 1 then
      e.lease = e.after_holders[e.new_owner] and e.after_holders[e.new_owner].left_ms
    end
  end,
  observe = function(e, ghost, report)
    if observe[e.verb] then
      observe[e.verb](e, ghost, report)
    end
  end,
}
