-- SPDX-License-Identifier: Apache-2.0
-- Two locks of one slot that are taken in one step, all or none: by callers that name them in
-- either order, beside one that takes the second alone. Applications call these scripts; a client
-- of them waits for the lock that it was told of.

local LOCKS = { 'l', '{l}:2' }
local CHANNELS = { 'redisson_lock__channel:{l}', 'redisson_lock__channel:{l}:2' }

local function channel_of(name)
  return CHANNELS[name == LOCKS[1] and 1 or 2]
end

---@param locks string[]
local function batcher(locks)
  local role = { act = {}, reply = {}, due = {}, unanswered = {} }

  local function send(c, name, script, hold)
    c:send(name, script, { lease = c:limit('lease'), owner = c.owner, hold = hold,
      channels = { channel_of(locks[1]), channel_of(locks[2]) } })
  end

  local function try(c)
    c.pc, c.timers.wake = 'try', nil
    send(c, 'try', 'lock/acquire_all', 1)
  end

  local function finish(c)
    c.owner, c.deadline, c.level, c.lost, c.waits, c.poked, c.listens = nil, nil, nil, nil, nil,
      nil, {}
    c.timers['end'], c.timers.wake = nil, nil
    c.pc = c.rounds > 0 and 'idle' or 'done'
  end

  local function count(c, call)
    c.deadline = math.max(c.deadline or 0, call.sent + c:limit('lease') - c:limit('drift'))
    c.timers['end'] = c.deadline
  end

  function role.start(c)
    c.rounds, c.locks = c:limit('rounds'), model.copy(locks)
  end

  function role.choices(c)
    if c.pc == 'idle' and c.rounds > 0 then
      return { 'lock' }
    elseif c.pc ~= 'held' then
      return {}
    end
    return not c.lost and c.level < c:limit('levels') and { 'leave', 'reenter' } or { 'leave' }
  end

  function role.act.lock(c)
    c.rounds, c.owner = c.rounds - 1, c:new_owner()
    try(c)
  end

  -- One that comes too late goes back.
  function role.reply.try(c, reply, call)
    c.waits = reply[1] == 0 and locks[reply[3]] or nil
    if reply[1] == 1 and c:now() >= call.sent + c:limit('lease') - c:limit('drift') then
      c.pc = 'release'
      send(c, 'release', 'lock/release_all', 0)
    elseif reply[1] == 1 then
      c.pc, c.level = 'held', 1
      count(c, call)
    elseif not c.listens[channel_of(c.waits)] then
      c.pc = 'listen'
      c:listen('listen', channel_of(c.waits))
    else
      c.pc = 'sleep'
      c.timers.wake = c:now() + (reply[2] >= 0 and reply[2] + 1 or c:limit('recheck'))
    end
  end

  function role.unanswered.try(c)
    c.pc, c.missed = 'sleep', true
    c.timers.wake = c:now() + c:limit('third')
  end

  function role.reply.listen(c)
    c.poked = nil
    try(c)
  end

  role.unanswered.listen = role.unanswered.try
  role.message = try
  role.due.wake = try

  role.due['end'] = function(c)
    c.deadline, c.lost = nil, true
  end

  function role.act.reenter(c)
    c.pc = 'reenter'
    send(c, 'reenter', 'lock/acquire_all', c.level + 1)
  end

  function role.reply.reenter(c, reply, call)
    c.pc = 'held'
    if reply[1] ~= 1 then
      c.deadline, c.lost, c.timers['end'] = nil, true, nil
    elseif c.deadline then
      count(c, call)
      c.level = c.level + 1
    end
  end

  function role.unanswered.reenter(c)
    c.pc = 'held'
  end

  function role.act.leave(c)
    c.pc, c.level = 'release', c.level - 1
    if c.level == 0 then
      c.deadline, c.timers['end'] = nil, nil
    end
    send(c, 'release', 'lock/release_all', c.level)
  end

  function role.reply.release(c, reply, call)
    local status = reply[1] == 1 and 'ok' or call.copies > 1 and 'unsure' or 'lost'
    c:say('release', status, call, reply)
    if c.level == 1 then
      c.pc = 'held'
    else
      finish(c)
    end
  end

  function role.unanswered.release(c, call)
    if c.level ~= 1 then
      c:send_again(call)
    else
      c.pc = 'held'
    end
  end

  function role.believes(c)
    return c.deadline and c:now() < c.deadline and 'write' or nil
  end

  return role
end

local single = model.taker({ acquire = 'lock/acquire', renew = 'lock/renew',
  release = 'lock/release' })
local start = single.start

function single.start(c)
  start(c)
  c.locks, c.waits = { LOCKS[2] }, LOCKS[2]
end

local VERBS = { ['lock/acquire_all'] = 'acquire', ['lock/release_all'] = 'release',
  ['lock/acquire'] = 'acquire', ['lock/release'] = 'release', ['lock/renew'] = 'renew' }

-- What the call was to this lock; nothing, if it is none of those that it names, or was not said.
local function share_of(e, name)
  local place
  for i, key in ipairs(e.keys) do
    place = key == name and i or place
  end
  if not place then
    return nil
  elseif e.script == 'lock/acquire_all' and e.outcome ~= 1 then
    return e.reply[e.outcome == 0 and 3 or 2] == place and VERBS[e.script] or nil, e.outcome
  elseif e.script == 'lock/release_all' and e.outcome == -1 then
    return VERBS[e.script], e.before_of[name][e.owner] and 1 or -1
  end
  return VERBS[e.script], e.outcome
end

local function check_all_or_none(e, report)
  local held = 0
  for _, name in ipairs(LOCKS) do
    held = held + (e.before_of[name][e.owner] and 1 or 0)
  end
  if e.script == 'lock/acquire_all' and e.outcome ~= 1 and e.after ~= e.before then
    report('G1', ('%s was refused, and something was written'):format(e.owner))
  elseif e.script == 'lock/release_all' and e.outcome == -1 and e.reply[2] ~= held then
    report('G4', ('%s was told that it held %d locks, and it held %d'):format(e.owner, e.reply[2],
      held))
  end
end

local family = model.family {
  name = 'batch',
  summary = 'several locks of one slot, taken in one step',
  roles = {
    batcher = batcher(LOCKS),
    turned = batcher({ LOCKS[2], LOCKS[1] }),
    single = single,
  },
  clients = function(n)
    return ('batcher '):rep(math.ceil((n - 1) / 2)) .. ('turned '):rep(math.floor((n - 1) / 2))
      .. 'single'
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 2, renewals = 1,
    back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = { {}, { clients = 3, faults = 0, limits = { levels = 1 } } },
  holders = model.holders.of_hash,
  judges = { 'G1', 'G2', 'G4', 'G5', 'G6', 'G8' },
  verbs = { ['lock/acquire_all'] = 'acquire all', ['lock/release_all'] = 'release all',
    ['lock/acquire'] = 'take', ['lock/release'] = 'give back', ['lock/renew'] = 'extend' },
  ghost = function(ghost)
    for _, name in ipairs(LOCKS) do
      ghost[name] = model.new_ghost()
    end
  end,
  unreached = {
    ['lock/acquire {-1}'] = 'who takes one alone does not re-enter',
  },
}

function family.observe(e, ghost, report)
  e.before_of = {}
  for _, name in ipairs(LOCKS) do
    e.before_of[name] = model.holders.of_hash(e.before.data, name)
  end
  check_all_or_none(e, report)
  for _, name in ipairs(LOCKS) do
    local verb, outcome = share_of(e, name)
    local record = e.after.data[name]
    if record and not record.expires_at then
      report('G8', ('%s has no end'):format(name))
    end
    model.judged(family, { script = e.script, verb = verb, outcome = outcome, reply = e.reply,
      owner = e.owner, lease = e.lease, hold = e.hold, mode = 'write', limits = e.limits,
      before_holders = e.before_of[name],
      after_holders = model.holders.of_hash(e.after.data, name) },
      ghost[name], report)
  end
end

---Who sleeps has been told that the lock which it waits for is free.
function family.quiet(_, sleepers, keyspace, ghost, _, report)
  for _, sleeper in ipairs(sleepers) do
    local data = sleeper.data
    local wake = data.timers.wake
    local free = data.waits and next(model.holders.of_hash(keyspace.data, data.waits)) == nil
    if not wake or wake - model.now > family.limits.recheck then
      report('G6', ('%s sleeps past its recheck'):format(sleeper.letter))
    elseif free and ghost[data.waits].freed and not data.missed then
      report('G6', ('%s waits for %s, which is free, and nobody told it'):format(sleeper.letter,
        data.waits))
    end
  end
end

return family
