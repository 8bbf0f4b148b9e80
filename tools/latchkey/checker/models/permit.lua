-- SPDX-License-Identifier: Apache-2.0
-- Permits with ids and leases: what a dead client held returns when its lease ends.

local TOTAL = 1

local function free(keys, name)
  return keys[name] and tonumber(keys[name].value) or 0
end

local function listed(keys, name)
  local record = keys[('{%s}:timeout'):format(name)]
  return record and #record.value or 0
end

return model.family {
  name = 'permit',
  summary = 'permits with ids and leases',
  roles = {
    taker = model.taker({ acquire = 'permit/acquire', renew = 'permit/renew',
      release = 'permit/release', owner = 'ids', id = true, mode = 'permit' }),
    operator = model.operator({ inspect = 'permit/inspect', break_ = 'permit/break', owner = 5 }),
    visitor = model.visitor({ { 'permit/inspect' }, { 'permit/set', { total = 1, mode = 'INIT' } },
      { 'permit/set', { total = 2, mode = 'INIT' } },
      { 'permit/set', { total = 2, mode = 'CHANGE' } } }),
  },
  clients = function(n)
    return n == 1 and 'visitor' or ('taker '):rep(n)
  end,
  keys = function(steps)
    return steps.bounds.clients > 1
      and { [steps.server.name] = { type = 'string', value = tostring(TOTAL) } } or {}
  end,
  limits = { lease = 199, third = 100, drift = 5, recheck = 300, levels = 1, renewals = math.huge,
    back = 200 },
  bounds = { clients = 2, rounds = 1, faults = 1 },
  runs = { { clients = 2, rounds = 2, limits = { renewals = 1 } }, { clients = 1, rounds = 1 } },
  holders = model.holders.of_permits,
  free = function(keys, name)
    return free(keys, name) > 0
  end,
  event = function(e)
    e.mode = 'permit'
    e.owner = e.args.ids
    e.after_free = free(e.after.data, e.name)
  end,
  judges = { 'G11' },
  verbs = { ['permit/acquire'] = 'acquire', ['permit/renew'] = 'renew',
    ['permit/release'] = 'release', ['permit/break'] = 'break', ['permit/inspect'] = 'inspect',
    ['permit/set'] = 'set' },
  unreached = {
    ['permit/inspect {-1}'] = 'no other kind of key has this name',
    ['permit/set {-2}'] = 'set is called once at a time',
  },
  observe = function(e, ghost, report)
    local live = 0
    for _, id in ipairs(model.names(ghost.grants)) do
      live = live + (ghost.grants[id].ends > model.now and 1 or 0)
    end
    if e.verb == 'set' or e.verb == 'inspect' then
      return
    elseif live > TOTAL then
      report('G1', ('%d permits are out, and there are %d'):format(live, TOTAL))
    end
    if e.after_free + listed(e.after.data, e.name) ~= TOTAL then
      report('G11', ('%d permits are free and %d are out, of %d'):format(e.after_free,
        listed(e.after.data, e.name), TOTAL))
    end
  end,
}
