-- SPDX-License-Identifier: Apache-2.0
-- The re-entrant lock: the scripts of scripts/lock, and clients that take it.
local holders = require('checker.holders')
local operator = require('checker.models.operator')
local taker = require('checker.models.taker')

return {
  name = 'lock',
  summary = 'the re-entrant lock, with hand-over inside a process',
  roles = {
    taker = taker.role({ acquire = 'lock/acquire', renew = 'lock/renew',
      release = 'lock/release', transfer = 'lock/transfer', reenters = true }),
    operator = operator.role({ inspect = 'lock/inspect', break_ = 'lock/break', owner = 4 }),
  },
  clients = function(n)
    return ('taker '):rep(n)
  end,
  limits = { lease = 299, third = 100, drift = 5, recheck = 400, levels = 2, renewals = 1, handover = true },
  bounds = { clients = 3, rounds = 2, faults = 1 },
  holders = holders.of_hash,
  verbs = { ['lock/acquire'] = 'acquire', ['lock/renew'] = 'renew', ['lock/release'] = 'release',
    ['lock/transfer'] = 'transfer', ['lock/break'] = 'break' },
}
