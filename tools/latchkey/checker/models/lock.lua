-- SPDX-License-Identifier: Apache-2.0
-- The re-entrant lock: the scripts of scripts/lock, and clients that take it.

-- Two replicas, of which so many must have a hold before it counts.
local function of_replicas(count, latest)
  return { levels = 1, handover = false, replicas = 2, min_replicas = count, latest = latest }
end

return model.family {
  name = 'lock',
  summary = 'the re-entrant lock, with hand-off inside a process',
  roles = {
    taker = model.taker({ acquire = 'lock/acquire', renew = 'lock/renew',
      release = 'lock/release', transfer = 'lock/transfer', reenters = true }),
    redisson = model.redisson({ lock = 'redisson/lock', unlock = 'redisson/unlock',
      renew = 'redisson/renew', thread = '1', wakes = { ['0'] = true } }),
    operator = model.operator({ inspect = 'lock/inspect', break_ = 'lock/break', owner = 4 }),
  },
  clients = function(n, limits)
    local others = limits.redisson
    return ('taker '):rep(n - others) .. ('redisson '):rep(others)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 2, renewals = 1,
    handover = true, behind = 0, back = 200, redisson = 0 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = {
    { clients = 3, rounds = 2, limits = { levels = 1, handover = false, renewals = math.huge } },
    { clients = 2, rounds = 2, limits = { levels = 1, renewals = math.huge } },
    { clients = 2, rounds = 2, limits = { renewals = math.huge } },
    { clients = 2, rounds = 1, limits = { levels = 1, handover = false, edges = true } },
    { limits = { levels = 1, handover = false }, kinds = { 'failover' }, only = { 'G1' },
      expect = 'G1', says = 'a fail-over loses the lock' },
    { limits = of_replicas(1), kinds = { 'failover' }, only = { 'G1' }, expect = 'G1',
      says = 'one of two replicas has it, and the other takes over' },
    { limits = of_replicas(1, true), kinds = { 'failover' }, only = { 'G1', 'G2' },
      says = 'one of two replicas has it, and takes over' },
    { limits = of_replicas(2), kinds = { 'failover' }, only = { 'G1', 'G2' },
      says = 'both replicas have it, and either takes over' },
    { limits = of_replicas(1) },
    { limits = { levels = 2, handover = false, redisson = 1 },
      says = 'beside a client of Redisson' },
    { clients = 3, faults = 0, limits = { levels = 1, handover = false, redisson = 1 },
      says = 'beside a client of Redisson' },
  },
  key = { 'lock/acquire', 'lock' },
  holders = model.holders.of_hash,
  verbs = { ['lock/acquire'] = 'acquire', ['lock/renew'] = 'renew', ['lock/release'] = 'release',
    ['lock/transfer'] = 'transfer', ['lock/break'] = 'break', ['lock/inspect'] = 'inspect' },
  unreached = {
    ['lock/break {0}'] = 'nobody is told to break what inspect showed free',
  },
}
