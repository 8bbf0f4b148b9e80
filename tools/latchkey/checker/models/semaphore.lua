-- SPDX-License-Identifier: Apache-2.0
-- The plain semaphore: clients take and give back one of its permits.

local TOTAL = 1

local CHANGE = { ['semaphore/acquire'] = -1, ['semaphore/release'] = 1, ['semaphore/add'] = 1 }

local function free(keys, name)
  return keys[name] and tonumber(keys[name].value) or 0
end

return model.family {
  name = 'semaphore',
  summary = 'permits without owners',
  roles = {
    taker = model.counter({ acquire = 'semaphore/acquire', release = 'semaphore/release',
      bound = TOTAL + 1 }),
    visitor = model.visitor({ { 'semaphore/inspect' }, { 'semaphore/set', { count = TOTAL } },
      { 'semaphore/set', { count = TOTAL } }, { 'semaphore/inspect' },
      { 'semaphore/add', { count = 1, change = 'RAISE' } },
      { 'semaphore/add', { count = 2147483647, change = 'RAISE' } }, { 'semaphore/drain' },
      { 'semaphore/release', { count = 9, bound = 8 } } }),
  },
  clients = function(n)
    return n == 1 and 'visitor' or ('taker '):rep(n)
  end,
  keys = function(steps)
    return steps.bounds.clients > 1
      and { [steps.server.name] = { type = 'string', value = tostring(TOTAL) } } or {}
  end,
  ghost = function(ghost, steps)
    ghost.free = steps.bounds.clients > 1 and TOTAL or 0
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, looks = 2, back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = { { clients = 2, rounds = 2 }, { clients = 3, rounds = 1 }, { clients = 1, rounds = 1 } },
  faults = { 'crash', 'pause', 'slow', 'request', 'reply', 'late', 'silence', 'drop', 'delay',
    'stranger', 'channel', 'flush', 'clock' },
  free = function(keys, name)
    return free(keys, name) > 0
  end,
  judges = { 'G1', 'G11' },
  verbs = { ['semaphore/acquire'] = 'take', ['semaphore/release'] = 'give',
    ['semaphore/set'] = 'set', ['semaphore/add'] = 'add', ['semaphore/drain'] = 'drain',
    ['semaphore/inspect'] = 'inspect' },
  unreached = {
    ['semaphore/inspect {-1}'] = 'no other kind of key has this name',
    ['semaphore/set {-2}'] = 'set is called once at a time, and so are add and drain',
    ['semaphore/add {-2}'] = 'as above',
    ['semaphore/drain {-2}'] = 'as above',
  },
  observe = function(e, ghost, report)
    if e.verb == 'inspect' then
      return
    elseif model.is_first(e, ghost) and e.outcome == 1 then
      local count = tonumber(e.args.count) or 0
      if e.verb == 'drain' then
        ghost.free = ghost.free - e.reply[2]
      elseif e.verb == 'set' then
        ghost.free = count
      else
        ghost.free = ghost.free + CHANGE[e.script] * count
      end
      ghost.freed = e.verb ~= 'take' and e.verb ~= 'drain' or nil
      if ghost.free < 0 then
        report('G1', ('%s took a permit, and none was free'):format(e.args.caller))
      end
    end
    if free(e.after.data, e.name) ~= ghost.free then
      report('G11', ('%d permits are free, and there should be %d'):format(
        free(e.after.data, e.name), ghost.free))
    end
  end,
}
