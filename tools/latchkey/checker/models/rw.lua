-- SPDX-License-Identifier: Apache-2.0
-- The read-write lock: readers, and writers that say that they wait.

local WAITERS = 'latchkey_rw_wait:{l}'

local WRITER = { acquire = 'rw/write_acquire', renew = 'rw/write_renew',
  release = 'rw/write_release', reenters = true, suffix = ':write', wait = 'rw/write_wait',
  leave = 'rw/write_leave', extra = { reader = '', heartbeat = 150 } }

local WAKES = { ['0'] = true, ['1'] = true }
-- A reader of Redisson that is late counts on a hold that is over.
local DEAF = { drop = true, delay = true, stranger = true }

-- How a reader of Redisson is renewed, by the version from which on.
local RENEWALS = { [3.17] = 'redisson/read_renew_all', [3.44] = 'redisson/read_renew_hash',
  [4] = 'redisson/read_renew_all', [4.4] = 'redisson/read_renew' }

-- Who writes may read, and who reads is told so when it asks to write; nobody else is.
local function check_both(e, report)
  local reads = e.args.reader and e.before_holders[e.args.reader] ~= nil
  if e.args.writer and e.before_holders[e.args.writer] and e.outcome == 0 then
    report('G6', ('%s was told to wait for itself'):format(e.owner))
  elseif not e.args.reader or e.args.reader == '' then
    return
  elseif reads and e.outcome ~= -2 then
    report('G6', ('%s asked to write, and was not told that it reads'):format(e.owner))
  elseif not reads and e.outcome == -2 then
    report('G6', ('%s was told that it reads, and it does not'):format(e.owner))
  end
end

-- The hash lives on with a read hold of the same caller, and for the server its write hold, too.
-- Some versions of Redisson renew whoever reads.
local function outlast(e, ghost)
  for _, owner in ipairs(model.names(e.after_holders)) do
    local grant, held = ghost.grants[owner], e.after_holders[owner]
    if grant and (held.mode == 'write' or e.script == 'redisson/read_renew_all') then
      grant.ends = math.max(grant.ends, model.now + held.left_ms)
    end
  end
end

return model.family {
  name = 'rw',
  summary = 'the read-write lock, with preference of writers',
  roles = {
    reader = model.taker({ acquire = 'rw/read_acquire', renew = 'rw/read_renew',
      release = 'rw/read_release', reenters = true, mode = 'read', extra = { writer = '' } }),
    writer = model.taker(WRITER),
    both = model.both(WRITER),
    redisson_reader = model.redisson({ lock = 'redisson/read_lock', unlock = 'redisson/read_unlock',
      renewals = RENEWALS, thread = '1', wakes = WAKES, suffers = DEAF }),
    redisson_writer = model.redisson({
      lock = 'redisson/write_lock', unlock = 'redisson/write_unlock',
      renew = 'redisson/write_renew', thread = '2:write', wakes = WAKES }),
    operator = model.operator({ inspect = 'rw/inspect', break_ = 'rw/break', owner = 6 }),
  },
  clients = function(n, limits)
    local others = ('both '):rep(limits.both)
      .. ('redisson_reader '):rep(limits.redisson_readers)
      .. ('redisson_writer '):rep(limits.redisson_writers)
    local left = n - select(2, others:gsub(' ', ''))
    -- One that is alone beside a reader of Redisson writes: readers do not exclude each other.
    local readers = limits.redisson_readers > 0 and math.floor(left / 2) or math.ceil(left / 2)
    return others .. ('reader '):rep(readers) .. ('writer '):rep(left - readers)
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = math.huge,
    reads = 1, upgrades = 1, back = 200, both = 0, redisson_readers = 0, redisson_writers = 0,
    redisson_age = 4.4 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  far_ms = 400,
  runs = {
    { clients = 3, rounds = 1 },
    { clients = 2, rounds = 2 },
    { clients = 2, rounds = 1, limits = { levels = 2, renewals = 1 },
      kinds = { 'break', 'crash' } },
    { limits = { both = 1, renewals = 1 }, says = 'one of them writes and reads' },
    { limits = { both = 2, renewals = 1 }, faults = 0, says = 'both write and read' },
    { clients = 3, faults = 0, limits = { redisson_readers = 1, redisson_age = 3.17 },
      says = 'beside a reader of Redisson 3.17, or 4.0 to 4.3' },
    { clients = 3, faults = 0, limits = { redisson_readers = 1, redisson_age = 3.44 },
      says = 'beside a reader of Redisson 3.44 to 3.52' },
    { clients = 3, faults = 0, limits = { redisson_readers = 1 },
      says = 'beside a reader of Redisson 4.4' },
    { limits = { redisson_readers = 1, redisson_age = 3.17 },
      says = 'a writer beside a reader of Redisson 3.17, or 4.0 to 4.3' },
    { limits = { redisson_readers = 1, redisson_age = 3.44 },
      says = 'a writer beside a reader of Redisson 3.44 to 3.52' },
    { limits = { redisson_readers = 1 }, says = 'a writer beside a reader of Redisson 4.4' },
    { limits = { redisson_writers = 1, renewals = 1 }, says = 'beside a writer of Redisson' },
  },
  holders = model.holders.of_rw,
  free = function(keys, name)
    return next(model.holders.of_rw(keys, name)) == nil and not keys[WAITERS]
  end,
  event = function(e)
    e.mode = e.script:find('read') and 'read' or 'write'
    e.partner = e.args.writer ~= '' and e.args.writer or e.args.reader
    e.may_wait = e.mode == 'read' and e.before.data[WAITERS] ~= nil
  end,
  verbs = { ['rw/read_acquire'] = 'acquire', ['rw/read_renew'] = 'renew',
    ['rw/read_release'] = 'release', ['rw/write_acquire'] = 'acquire',
    ['rw/write_renew'] = 'renew', ['rw/write_release'] = 'release', ['rw/write_wait'] = 'wait',
    ['rw/write_leave'] = 'waits no more', ['rw/break'] = 'break', ['rw/inspect'] = 'inspect' },
  -- Nobody is told when the heartbeat of a writer that waited ends.
  observe = function(e, ghost, report)
    check_both(e, report)
    outlast(e, ghost)
    if e.after.data[WAITERS] then
      ghost.freed = nil
    end
  end,
  unreached = {
    ['rw/break {0}'] = 'nobody is told to break what inspect showed free',
    ['rw/inspect {-1}'] = 'no lock of another kind has this name',
  },
}
