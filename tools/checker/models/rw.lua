-- SPDX-License-Identifier: Apache-2.0
-- The read-write lock: readers, and writers that say that they wait.
local holders = require('checker.holders')
local operator = require('checker.models.operator')
local taker = require('checker.models.taker')

local WAITERS = 'latchkey_rw_wait:{l}'

return {
  name = 'rw',
  summary = 'the read-write lock, with preference of writers',
  roles = {
    reader = taker.role({ acquire = 'rw/read_acquire', renew = 'rw/read_renew',
      release = 'rw/read_release', reenters = true, mode = 'read', extra = { writer = '' } }),
    writer = taker.role({ acquire = 'rw/write_acquire', renew = 'rw/write_renew',
      release = 'rw/write_release', reenters = true, suffix = ':write', wait = 'rw/write_wait',
      leave = 'rw/write_leave', extra = { reader = '', heartbeat = 150 } }),
    operator = operator.role({ inspect = 'rw/inspect', break_ = 'rw/break', owner = 6 }),
  },
  clients = function(n)
    return ('reader '):rep(math.ceil(n / 2)) .. ('writer '):rep(math.floor(n / 2))
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = math.huge,
    back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = {
    { clients = 3, rounds = 1 },
    { clients = 2, rounds = 2 },
    { clients = 2, rounds = 1, limits = { levels = 2, renewals = 1 },
      kinds = { 'break', 'crash' } },
  },
  holders = holders.of_rw,
  free = function(keys, name)
    return next(holders.of_rw(keys, name)) == nil and not keys[WAITERS]
  end,
  event = function(e)
    e.mode = e.script:find('read') and 'read' or 'write'
    e.may_wait = e.mode == 'read' and e.before.data[WAITERS] ~= nil
  end,
  verbs = { ['rw/read_acquire'] = 'acquire', ['rw/read_renew'] = 'renew',
    ['rw/read_release'] = 'release', ['rw/write_acquire'] = 'acquire',
    ['rw/write_renew'] = 'renew', ['rw/write_release'] = 'release', ['rw/write_wait'] = 'wait',
    ['rw/write_leave'] = 'waits no more', ['rw/break'] = 'break', ['rw/inspect'] = 'inspect' },
  -- Nobody is told when the heartbeat of a writer that waited ends.
  observe = function(e, ghost)
    if e.after.data[WAITERS] then
      ghost.freed = nil
    end
  end,
  unreached = {
    ['rw/break {0}'] = 'nobody is told to break what inspect showed free',
    ['rw/inspect {-1}'] = 'no lock of another kind has this name',
    ['rw/write_acquire {-2}'] = 'no client reads and writes at once',
  },
}
