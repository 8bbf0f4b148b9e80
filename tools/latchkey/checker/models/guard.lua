-- SPDX-License-Identifier: Apache-2.0
-- Guarded commands: holders of a lock who count in a key beside it, by guard/call alone.

local TARGET = '{l}:data'

local role = model.taker({ acquire = 'lock/acquire', renew = 'lock/renew',
  release = 'lock/release' })

local start, choices = role.start, role.choices

function role.start(c)
  start(c)
  c.works, c.seq = c:limit('works'), 0
end

function role.choices(c)
  local list = choices(c)
  if c.pc == 'held' and c.works > 0 then
    list[#list + 1] = 'work'
  end
  return list
end

function role.act.work(c)
  c.works, c.seq = c.works - 1, c.seq + 1
  c:send('work', 'guard/call', { owner = c.owner, caller = 'lk-@', seq = c.seq,
    command = 'INCRBY', words = { 1 } }, TARGET)
end

function role.reply.work() end
function role.unanswered.work() end

return model.family {
  name = 'guard',
  summary = 'commands that run only while their caller holds the lock',
  roles = {
    taker = role,
    operator = model.operator({ inspect = 'lock/inspect', break_ = 'lock/break', owner = 4 }),
  },
  clients = function(n)
    return ('taker '):rep(n)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = 1,
    works = 1, back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = { { clients = 2, rounds = 1 }, { clients = 1, rounds = 1, limits = { works = 2 } } },
  holders = model.holders.of_hash,
  ghost = function(ghost)
    ghost.sum = 0
  end,
  judges = { 'G9' },
  verbs = { ['lock/acquire'] = 'acquire', ['lock/renew'] = 'renew', ['lock/release'] = 'release',
    ['lock/break'] = 'break', ['lock/inspect'] = 'inspect', ['guard/call'] = 'guard' },
  unreached = {
    ['lock/break {0}'] = 'nobody is told to break what inspect showed free',
    ['lock/acquire {-1}'] = 'these clients do not re-enter',
  },
  observe = function(e, ghost, report)
    if e.verb ~= 'guard' then
      return
    elseif model.is_first(e, ghost) and e.outcome == 1 then
      ghost.sum = ghost.sum + 1
      if not ghost.grants[e.owner] then
        report('G4', ('%s wrote though it does not hold the lock'):format(e.owner))
      end
    end
    local record = e.after.data[TARGET]
    if (record and tonumber(record.value) or 0) ~= ghost.sum then
      report('G9', ('%d writes were let through, and the data counts %s'):format(ghost.sum,
        record and record.value or '0'))
    end
  end,
}
