-- SPDX-License-Identifier: Apache-2.0
-- What the specs of fair locks share: calls with the usual arguments, and the keys of a lock called
-- "job" from a short description of who holds it and who waits.
local helper = require('helper')

local fair = {}

fair.KEYS = { 'job', 'redisson_lock_queue:{job}', 'redisson_lock_timeout:{job}',
  'latchkey_fair:{job}' }
fair.CHANNEL = 'redisson_lock__channel:{job}'
fair.LEASE, fair.WAIT, fair.HEARTBEAT = 30000, 300000, 50000

---@param owner string "lk-ann:7": client lk-ann, ticket 7
function fair.acquire(world, owner, hold, options)
  options = options or {}
  local client, ticket = owner:match('^(.*):(%d+)$')
  return world:eval('fair/acquire', fair.KEYS, { options.lease or fair.LEASE, owner, hold or 1,
    options.wait or fair.WAIT, options.heartbeat or fair.HEARTBEAT, client, ticket, fair.CHANNEL,
    options.publish or 'PUBLISH' })
end

---An acquire that does not queue.
function fair.try(world, owner)
  return fair.acquire(world, owner, 1, { heartbeat = 0 })
end

function fair.wait_renew(world, owner, lease, publish)
  return world:eval('fair/wait_renew', fair.KEYS, { lease or fair.LEASE, owner, fair.HEARTBEAT,
    fair.CHANNEL, publish or 'PUBLISH' })
end

---The heartbeats of several.
function fair.wait_renew_all(world, owners, publish)
  return world:eval('fair/wait_renew_all', fair.KEYS, { fair.HEARTBEAT, fair.CHANNEL,
    publish or 'PUBLISH', unpack(owners) })
end

function fair.leave(world, owner, publish)
  return world:eval('fair/leave', fair.KEYS, { owner, fair.CHANNEL, publish or 'PUBLISH' })
end

function fair.release(world, owner, hold, lease, publish)
  return world:eval('fair/release', fair.KEYS, { lease or fair.LEASE, owner, hold or 0,
    fair.CHANNEL, publish or 'PUBLISH' })
end

function fair.break_(world, owner, publish)
  return world:eval('fair/break', fair.KEYS, { owner, fair.CHANNEL, publish or 'PUBLISH' })
end

function fair.inspect(world)
  return world:eval('fair/inspect', fair.KEYS, {})
end

---@param to string a client, or an owner of another kind of client
---@param message? string the ticket; "0" without
function fair.told(to, message, verb)
  return { { verb = verb or 'PUBLISH', channel = fair.CHANNEL .. ':' .. to,
    message = message or '0' } }
end

---The keys of a lock.
---@param state table { holder, count, lease, ttl } and, in order of arrival, waiters { owner,
---  score = ms from now, beat = ms from now if it is latchkey's, lease, wait }; ttl is the records'
function fair.keys(state)
  local keys, owners, scores, records = {}, {}, {}, {}
  if state.holder then
    keys[fair.KEYS[1]] = helper.hash({ [state.holder] = tostring(state.count or 1) },
      state.lease or fair.LEASE)
  end
  for _, waiter in ipairs(state) do
    local owner = waiter[1]
    local client, ticket = owner:match('^(.*):(%d+)$')
    table.insert(owners, owner)
    if waiter.score then
      table.insert(scores, { owner, ('@%+d'):format(waiter.score), order = waiter.score })
    end
    if waiter.beat then
      records[owner] = ('@%+d %d %d %s %s'):format(waiter.beat, waiter.lease or fair.LEASE,
        waiter.wait or fair.WAIT, ticket, client)
    end
  end
  table.sort(scores, function(a, b)
    return a.order < b.order or a.order == b.order and a[1] < b[1]
  end)
  for _, entry in ipairs(scores) do
    entry.order = nil
  end
  keys[fair.KEYS[2]] = #owners > 0 and helper.list(owners) or nil
  keys[fair.KEYS[3]] = #scores > 0 and helper.zset(scores) or nil
  keys[fair.KEYS[4]] = next(records) and helper.hash(records, state.ttl or 600000) or nil
  return keys
end

---Puts such a lock into a world.
function fair.fill(world, state)
  helper.fill(world, fair.keys(state))
end

return fair
