-- SPDX-License-Identifier: Apache-2.0
-- What the specs of read-write locks share: calls with the usual arguments, and the keys of a lock
-- called "job" from a short description of who holds it and who waits.
local tablex = require('pl.tablex')

local helper = require('helper')

local rw = {}

rw.WAITERS, rw.CHANNEL = 'latchkey_rw_wait:{job}', 'redisson_rwlock:{job}'
rw.THEIRS, rw.WHOLE = 'latchkey_rw_theirs:{job}', 'latchkey_rw_whole:{job}'
rw.LEASE, rw.HEARTBEAT = 30000, 50000

local WAITED, READ = { 'job', rw.WAITERS }, { 'job', rw.THEIRS, rw.WHOLE }
local ALL = { 'job', rw.WAITERS, rw.THEIRS, rw.WHOLE }

---@param options? table { lease, writer }
function rw.read(world, owner, hold, options)
  options = options or {}
  return world:eval('rw/read_acquire', ALL, { options.lease or rw.LEASE, owner, hold or 1,
    options.writer or '' })
end

function rw.read_renew(world, owner, lease)
  return world:eval('rw/read_renew', READ, { lease or rw.LEASE, owner })
end

function rw.read_release(world, owner, hold, lease, publish)
  return world:eval('rw/read_release', READ, { lease or rw.LEASE, owner, hold or 0, rw.CHANNEL,
    publish or 'PUBLISH' })
end

---@param options? table { lease, reader }
function rw.write(world, owner, hold, options)
  options = options or {}
  return world:eval('rw/write_acquire', ALL, { options.lease or rw.LEASE, owner, hold or 1,
    options.reader or '' })
end

function rw.write_renew(world, owner, lease)
  return world:eval('rw/write_renew', { 'job' }, { lease or rw.LEASE, owner })
end

function rw.write_release(world, owner, hold, lease, publish)
  return world:eval('rw/write_release', { 'job', rw.WHOLE }, { lease or rw.LEASE, owner, hold or 0,
    rw.CHANNEL, publish or 'PUBLISH' })
end

function rw.wait(world, owner, heartbeat)
  return world:eval('rw/write_wait', WAITED, { heartbeat or rw.HEARTBEAT, owner })
end

function rw.leave(world, owner, publish)
  return world:eval('rw/write_leave', { rw.WAITERS }, { owner, rw.CHANNEL, publish or 'PUBLISH' })
end

function rw.break_(world, owner, publish)
  return world:eval('rw/break', READ, { owner, rw.CHANNEL, publish or 'PUBLISH' })
end

function rw.inspect(world)
  return world:eval('rw/inspect', ALL, {})
end

function rw.told(message, verb)
  return { { verb = verb or 'PUBLISH', channel = rw.CHANNEL, message = message } }
end

function rw.level(owner, number)
  return ('{job}:%s:rwlock_timeout:%d'):format(owner, number)
end

---The keys of a lock.
---@param mode 'read'|'write'
---@param lease integer|nil ms; nil: it has none
---@param holds table by owner: the lease of a reader, and its levels if there are more than one; of
---  a reader of Redisson, the leases of its levels; or a count alone, as a writer's, or that of a
---  reader whose levels are gone
function rw.keys(mode, lease, holds)
  local fields, keys = { mode = mode }, {}
  for owner, levels in pairs(holds) do
    local is_ours = owner:find('^lk%-')
    fields[owner] = tostring(type(levels) ~= 'table' and levels or is_ours and 1 or #levels)
    for number, level_lease in ipairs(type(levels) == 'table' and levels or {}) do
      assert(number == 1 or not is_ours, 'a reader of latchkey has one level')
      keys[rw.level(owner, number)] = helper.string(tostring(levels.count or 1), level_lease)
    end
  end
  keys.job = helper.hash(fields, lease)
  return keys
end

---Puts so many readers whose holds are over into a lock.
---@return table keys of them alone, as `rw.keys` gives them
function rw.fill_readers(world, count, lease)
  local holds, start = {}, 'lk-reader:'
  for first = 1, count, 500 do
    local arguments = { 'HSET', 'job', 'mode', 'read' }
    for number = first, math.min(first + 499, count) do
      holds[start .. number] = 1
      table.insert(arguments, start .. number)
      table.insert(arguments, 1)
    end
    assert(world:command(unpack(arguments)))
  end
  assert(world:command('PEXPIRE', 'job', lease))
  return rw.keys('read', lease, holds)
end

---The key of what Redisson's readers have, beside other keys.
---@param keys table
---@param ends integer ms until the hash ends, as latchkey has set it
---@param theirs integer ms until it ended as Redisson left it
function rw.beside_theirs(keys, ends, theirs)
  local note = helper.string(('@%+d @%+d'):format(ends, theirs), ends)
  return tablex.merge(keys, { [rw.THEIRS] = note }, true)
end

---The key of writers that wait, beside other keys.
---@param keys table
---@param ... table { owner, ms to the end of the heartbeat }, in this order; the last one's is the
---  TTL
function rw.beside_waiting(keys, ...)
  local entries, last = {}, 0
  for i, waiter in ipairs({ ... }) do
    entries[i] = { waiter[1], ('@%+d'):format(waiter[2]) }
    last = waiter[2]
  end
  return tablex.merge(keys, { [rw.WAITERS] = helper.zset(entries, last) }, true)
end

return rw
