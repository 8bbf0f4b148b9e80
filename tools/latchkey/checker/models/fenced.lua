-- SPDX-License-Identifier: Apache-2.0
-- The lock with tokens, and a resource behind fence/admit that its clients work on. Whoever holds
-- the lock, or once held it and does not know better, sends its token along.

local role = model.taker({ acquire = 'fenced/acquire', renew = 'lock/renew',
  release = 'lock/release', transfer = 'fenced/transfer', reenters = true, token = 3,
  transfer_token = 2 })

local choices = role.choices

function role.choices(c)
  local list = choices(c)
  if c.pc == 'held' and c.token and c.works > 0 then
    list[#list + 1] = 'work'
  end
  return list
end

function role.act.work(c)
  c.works = c.works - 1
  c:send('admit', 'fence/admit', { token = ('%.0f'):format(c.token), owner = c.owner })
end

function role.reply.admit() end
function role.unanswered.admit() end

local start = role.start

function role.start(c)
  start(c)
  c.works = c:limit('works')
end

local family = model.family {
  name = 'fenced',
  summary = 'the lock with fencing tokens, and a resource behind a fence',
  roles = {
    taker = role,
    operator = model.operator({ inspect = 'lock/inspect', break_ = 'fenced/break', owner = 4 }),
  },
  clients = function(n)
    return ('taker '):rep(n)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = 1,
    handover = false, works = 1, durable = true, behind = 0, back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = {
    { clients = 2, rounds = 1, limits = { renewals = math.huge } },
    { clients = 2, rounds = 2, limits = { levels = 2, handover = true, renewals = 0, works = 0 },
      kinds = { 'break' } },
    { clients = 2, rounds = 2, faults = 0, limits = { levels = 2, handover = true } },
    { kinds = { 'failover' }, only = { 'G3' }, says = 'the fence holds over a fail-over' },
    { kinds = { 'failover' }, only = { 'G1' }, expect = 'G1',
      says = 'a fail-over loses the lock' },
    { kinds = { 'failover' }, only = { 'G3' }, expect = 'G3', limits = { durable = false },
      says = 'the fence does not hold if it fails over with the lock' },
    { kinds = { 'failover' }, only = { 'G3' }, expect = 'G3', limits = { behind = 300 },
      says = 'the fence does not hold if the clock goes back' },
  },
  holders = model.holders.of_hash,
  judges = { 'G3' },
  verbs = { ['fenced/acquire'] = 'acquire', ['fenced/transfer'] = 'transfer',
    ['fenced/break'] = 'break', ['lock/renew'] = 'renew', ['lock/release'] = 'release',
    ['lock/inspect'] = 'inspect', ['fence/admit'] = 'admit' },
  unreached = {
    ['fenced/break {0}'] = 'nobody is told to break what inspect showed free',
  },
  durable = { ['latchkey_fence:{l}'] = true },
}

-- Tokens stand for their order alone: those that are past are counted down from now.
function family.settle(steps, state)
  local values, seen = {}, {}
  for k = 1, steps.BACK do
    for _, token in ipairs(state[k] and model.tokens(state[k]) or {}) do
      if not seen[token] then
        seen[token] = true
        values[#values + 1] = token
      end
    end
  end
  if #values == 0 then
    return
  end
  table.sort(values, function(a, b)
    return a > b
  end)
  local map, names, rank = {}, {}, 0
  for i, token in ipairs(values) do
    local new = token
    if token < model.now * 1000 then
      rank = rank + 1
      new = model.now * 1000 - rank * 1000
    end
    map[token], names[i] = new, ('%.0f=%.0f'):format(token, new)
  end
  local name = table.concat(names, ' ')
  for k = 1, steps.BACK do
    if state[k] then
      state[k] = steps.pool:map_tokens(state[k], name, function(token)
        return map[token]
      end, k == steps.KEYS and steps.server)
    end
  end
end

local TOKEN_AT = { acquire = 3, transfer = 2, ['break'] = 2 }

local function check_drawn(e, ghost, report, token)
  local owner = e.verb == 'transfer' and e.new_owner or e.owner
  local is_new = e.verb == 'break' or not e.before_holders[owner]
  if is_new and ghost.token and token <= ghost.token then
    report('G3', ('%s drew the token %s, not above the one before'):format(owner,
      model.token_text(token)))
  end
  ghost.token = math.max(ghost.token or 0, token)
end

local function check_admitted(e, ghost, report)
  local token, last = tonumber(e.args.token), ghost.admitted
  if last and (token < last or token == last and ghost.admitted_owner ~= e.owner) then
    report('G3', ('the fence admitted %s, though it had admitted a later hold'):format(e.owner))
  end
  if not last or token >= last then
    ghost.admitted, ghost.admitted_owner = token, e.owner
  end
end

function family.observe(e, ghost, report)
  local token = e.outcome == 1 and TOKEN_AT[e.verb] and e.reply[TOKEN_AT[e.verb]]
  if token then
    check_drawn(e, ghost, report, token)
  elseif e.verb == 'admit' and e.outcome == 1 then
    check_admitted(e, ghost, report)
  end
end

return family
