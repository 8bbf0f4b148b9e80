-- SPDX-License-Identifier: Apache-2.0
-- What Redisson's RLock and RReadWriteLock do with the keys, as calls that stand beside those of
-- scripts: each is one step of the server, as Redisson's own scripts are. Replies are put as
-- latchkey's scripts put them: {1, ...} done, {0, ms} held by another so long, {-1} not the
-- caller's. Unlocks leave no receipts here, which latchkey never reads. spec/checker holds these
-- calls to the player of spec/interop.
local redisson = {}

local function prefixed(prefix, name)
  return prefix .. ':' .. (name:find('{', 1, true) and name or '{' .. name .. '}')
end

---@param kind string the call's, such as "redisson/read_lock"
---@return string the channel that its waiters listen on
function redisson.channel(kind, name)
  return prefixed(kind:find('_') and 'redisson_rwlock' or 'redisson_lock__channel', name)
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
    ask('PUBLISH', redisson.channel('redisson/lock', name), 0)
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

-- A read hold has a key for each level, whose TTL is its lease.
local function level(name, owner, i)
  return ('%s:%s:rwlock_timeout:%d'):format(name:find('{', 1, true) and name or '{' .. name .. '}',
    owner, i)
end

local function longest_read(ask, name)
  local longest = -3
  for _, field in ipairs(ask('HKEYS', name)) do
    for i = tonumber(ask('HGET', name, field)) or 0, 1, -1 do
      longest = math.max(longest, ask('PTTL', level(name, field, i)))
    end
  end
  return longest
end

local function tell(ask, name, message)
  ask('PUBLISH', redisson.channel('redisson/read_lock', name), message)
end

calls['redisson/read_lock'] = { verb = 'acquire', run = function(ask, name, lease, owner)
  local mode = ask('HGET', name, 'mode')
  if mode == 'write' and ask('HEXISTS', name, owner .. ':write') == 0 then
    return { 0, ask('PTTL', name) }
  elseif not mode then
    ask('HSET', name, 'mode', 'read')
  end
  local count = ask('HINCRBY', name, owner, 1)
  ask('SET', level(name, owner, count), 1)
  ask('PEXPIRE', level(name, owner, count), lease)
  ask('PEXPIRE', name, math.max(ask('PTTL', name), lease))
  return { 1, count }
end }

calls['redisson/read_unlock'] = { verb = 'release', run = function(ask, name, _, owner)
  local mode = ask('HGET', name, 'mode')
  if not mode then
    tell(ask, name, 0)
    return { -1 }
  elseif ask('HEXISTS', name, owner) == 0 then
    return { -1 }
  end
  local count = ask('HINCRBY', name, owner, -1)
  if count == 0 then
    ask('HDEL', name, owner)
  end
  ask('DEL', level(name, owner, count + 1))
  if ask('HLEN', name) > 1 then
    local longest = longest_read(ask, name)
    if longest > 0 then
      ask('PEXPIRE', name, longest)
    end
    if longest > 0 or mode == 'write' then
      return { 1, count }
    end
  end
  ask('DEL', name)
  tell(ask, name, 0)
  return { 1, count }
end }

-- From 3.17, and again from 4.0 on: whoever reads is renewed.
calls['redisson/read_renew_all'] = { verb = 'renew', run = function(ask, name, lease, owner)
  if ask('HEXISTS', name, owner) == 0 then
    return { -1 }
  end
  ask('PEXPIRE', name, lease)
  for _, field in ipairs(ask('HKEYS', name)) do
    for i = tonumber(ask('HGET', name, field)) or 0, 1, -1 do
      ask('PEXPIRE', level(name, field, i), lease)
    end
  end
  return { 1 }
end }

-- From 3.44 to 3.52, of a name that is not the first of those that the process reads: levels of
-- another name.
calls['redisson/read_renew_hash'] = { verb = 'renew', run = function(ask, name, lease, owner)
  if ask('HEXISTS', name, owner) == 0 then
    return { -1 }
  end
  ask('PEXPIRE', name, lease)
  return { 1 }
end }

-- From 4.4 on.
calls['redisson/read_renew'] = { verb = 'renew', run = function(ask, name, lease, owner)
  local renewed = 0
  for i = 1, tonumber(ask('HGET', name, owner) or 0) do
    renewed = renewed + ask('PEXPIRE', level(name, owner, i), lease)
  end
  if renewed == 0 then
    return { -1 }
  end
  ask('PEXPIRE', name, lease)
  return { 1 }
end }

-- Its owner ends in ":write", as the field does.
calls['redisson/write_lock'] = { verb = 'acquire', run = function(ask, name, lease, owner)
  local mode = ask('HGET', name, 'mode')
  if mode and not (mode == 'write' and ask('HEXISTS', name, owner) == 1) then
    return { 0, ask('PTTL', name) }
  end
  if mode then
    lease = ask('PTTL', name) + lease
  else
    ask('HSET', name, 'mode', 'write')
  end
  local count = ask('HINCRBY', name, owner, 1)
  ask('PEXPIRE', name, lease)
  return { 1, count }
end }

calls['redisson/write_unlock'] = { verb = 'release', run = function(ask, name, lease, owner)
  local mode = ask('HGET', name, 'mode')
  if not mode then
    tell(ask, name, 1)
    return { -1 }
  elseif mode ~= 'write' or ask('HEXISTS', name, owner) == 0 then
    return { -1 }
  end
  local count = ask('HINCRBY', name, owner, -1)
  if count > 0 then
    ask('PEXPIRE', name, lease)
    return { 1, count }
  end
  ask('HDEL', name, owner)
  if ask('HLEN', name) == 1 then
    ask('DEL', name)
    tell(ask, name, 1)
  else
    ask('HSET', name, 'mode', 'read')
  end
  return { 1, count }
end }

calls['redisson/write_renew'] = calls['redisson/renew']

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
    return reply ~= world.null and reply or nil
  end
  local good, reply = pcall(calls[name].run, ask, lock, unpack(args))
  if not good and not failed then
    error(reply, 0)
  end
  return good and reply or nil, failed
end

return redisson
