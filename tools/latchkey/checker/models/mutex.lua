-- SPDX-License-Identifier: Apache-2.0
-- The string lock: the scripts of scripts/mutex, and clients that take it. Others may not tell of
-- their releases, so its clients also look now and then.

return model.family {
  name = 'mutex',
  summary = 'the SET NX PX lock',
  roles = {
    taker = model.taker({ acquire = 'mutex/acquire', renew = 'mutex/renew',
      release = 'mutex/release', polls = true }),
    operator = model.operator({ inspect = 'mutex/inspect', break_ = 'mutex/break', owner = 3 }),
  },
  clients = function(n)
    return ('taker '):rep(n)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = math.huge,
    back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = {
    { clients = 2, rounds = 2 },
    { clients = 2, rounds = 1, limits = { edges = true, renewals = 1 } },
  },
  key = { 'mutex/acquire', 'lock' },
  holders = model.holders.of_string,
  verbs = { ['mutex/acquire'] = 'acquire', ['mutex/renew'] = 'renew',
    ['mutex/release'] = 'release', ['mutex/break'] = 'break', ['mutex/inspect'] = 'inspect' },
  unreached = {
    ['mutex/break {0}'] = 'nobody is told to break what inspect showed free',
  },
}
