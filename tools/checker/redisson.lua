-- SPDX-License-Identifier: Apache-2.0
-- What Redisson's RLock does with the keys, as calls that stand beside those of scripts: each is
-- one step of the server, as Redisson's own scripts are. Replies are put as latchkey's scripts put
-- them: {1, ...} done, {0, ms} held by another so long, {-1} not the caller's. Unlocks leave no
-- receipts here, which latchkey never reads. spec/checker holds these calls to the player of
-- spec/interop.
local redisson = {}

local function prefixed(prefix, name)
  return prefix .. ':' .. (name:find('{', 1, true) and name or '{' .. name .. '}')
end

---@return string the channel that waiters listen on
function redisson.channel(name)
  return prefixed('redisson_lock__channel', name)
end

local calls = {}

calls['redisson/lock'] = { verb = 'acquire', run = function(ask, name, lease, owner)
  if ask('EXISTS', name) == 1 and ask('HEXISTS', name, owner) == 0 then
    return { 0, ask('PTTL', name) }
  end
  local count = ask('HINCRBY', name, owner, 1)
  ask('PEXPIRE', name, lease)
  return { 1, count }
end }

calls['redisson/unlock'] = { verb = 'release', run = function(ask, name, lease, owner)
  if ask('HEXISTS', name, owner) == 0 then
    return { -1 }
  end
  local count = ask('HINCRBY', name, owner, -1)
  if count > 0 then
    ask('PEXPIRE', name, lease)
  else
    ask('DEL', name)
    ask('PUBLISH', redisson.channel(name), 0)
  end
  return { 1, count }
end }

calls['redisson/renew'] = { verb = 'renew', run = function(ask, name, lease, owner)
  if ask('HEXISTS', name, owner) == 0 then
    return { -1 }
  end
  ask('PEXPIRE', name, lease)
  return { 1 }
end }

local HEADER = { keys = {}, derived = {}, returns = {}, errors = {}, repeat_ = 'no',
  argv = { { name = 'lease', type = 'ms', kind = 'integer' }, { name = 'owner', type = 'owner' } } }

---@return boolean is this one of these calls, and no script?
function redisson.has(name)
  return calls[name] ~= nil
end

---What stands for the header of a script.
function redisson.header()
  return HEADER
end

---@return string verb what the call is to an onlooker
function redisson.verb(name)
  return calls[name].verb
end

---@param world table of the mock
---@param name string of the call
---@param lock string
---@param args string[]
---@return table|nil reply
---@return table|nil err
function redisson.run(world, name, lock, args)
  local failed
  local function ask(...)
    local reply, err = world:command(...)
    if err then
      failed = err
      error(err.message, 0)
    end
    return reply
  end
  local good, reply = pcall(calls[name].run, ask, lock, unpack(args))
  if not good and not failed then
    error(reply, 0)
  end
  return good and reply or nil, failed
end

return redisson
