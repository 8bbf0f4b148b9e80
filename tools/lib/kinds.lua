-- SPDX-License-Identifier: Apache-2.0
-- The kinds of locks, as they are seen on a server from outside.
local path = require('pl.path')

local catalog = require('lib.catalog')
local names = require('lib.names')

local kinds = {}

local UUID = ('%x'):rep(8) .. ('%-' .. ('%x'):rep(4)):rep(3) .. '%-' .. ('%x'):rep(12)

---Is it an owner's name as latchkey or Redisson forms it?
---@param word string
---@return boolean
local function is_owner(word)
  return word:gsub('^lk%-', '', 1):find('^' .. UUID .. ':%d+$') ~= nil
    or word:find('^' .. UUID .. ':%d+:[^:]+$') ~= nil and not word:find(':write$')
end

local function read_lock(reply)
  local holders, certain, fits = {}, true, reply.n > 3
  for i = 4, reply.n, 2 do
    local owner, count = reply[i], reply[i + 1]
    fits = fits and count:find('^%d+$') ~= nil
    certain = certain and is_owner(owner)
    holders[#holders + 1] = { owner = owner, holds = tonumber(count) }
  end
  return { lease_ms = reply[2], holders = fits and holders or {}, fields = reply[3],
    fits = fits, certain = fits and certain }
end

local function read_mutex(reply)
  return { lease_ms = reply[2], holders = { { owner = reply[3], holds = 1 } },
    fits = true, certain = reply[3]:find('^lk%-' .. UUID .. ':%d+$') ~= nil }
end

-- What each kind is on the server: the type of its key, the scripts that deal with it, and how the
-- reply of inspect is read.
kinds.ROWS = {
  lock = { type = 'hash', inspect = 'lock/inspect', release = 'lock/release', breaks = 'lock/break',
    read = read_lock },
  fenced = { type = 'hash', inspect = 'lock/inspect', release = 'lock/release',
    breaks = 'fenced/break', read = read_lock },
  mutex = { type = 'string', inspect = 'mutex/inspect', release = 'mutex/release',
    breaks = 'mutex/break', read = read_mutex },
}

kinds.NAMES = { 'lock', 'fenced', 'mutex' }
kinds.CHOICE = 'lock, fenced or mutex'

-- What a key of this type is at least.
local OF_TYPE = { hash = 'lock', string = 'mutex' }

local headers = {}

local function header_of(home, script)
  headers[script] = headers[script]
    or assert(catalog.read_file(path.join(home, 'scripts', script .. '.lua'))).header
  return headers[script]
end

---The keys and arguments of a script that follow from the lock's name alone.
---@param home string
---@param script string
---@param name string
---@return table values by name of the key or argument
function kinds.derived(home, script, name)
  local header, values = header_of(home, script), {}
  for _, key in ipairs(header.keys) do
    values[key.name] = names.form(key.form, name)
  end
  for _, field in ipairs(header.argv) do
    if field.form then
      values[field.name] = names.form(field.form, name)
    elseif field.type == 'verb' then
      values[field.name] = field.values[1]
    end
  end
  return values
end

local function look(client, kind, name)
  local row = kinds.ROWS[kind]
  local reply, err = client:eval(row.inspect, { name }, {})
  if not reply then
    return nil, err
  elseif reply[1] == 0 then
    return { free = true }
  end
  local lock = row.read(reply)
  lock.kind = kind
  return lock
end

-- Adds the token drawn last under the lock's name, if there is one.
local function add_token(client, home, lock, name)
  local counter = kinds.derived(home, kinds.ROWS.fenced.breaks, name).counter
  local reply, err = client:command('GET', counter)
  if err and err.status ~= 'LK_WRONGTYPE' then
    return nil, err
  end
  lock.token = reply and tonumber(reply:match('^%d+$'))
  return lock
end

---What a key holds, read as a lock of this kind.
---@param client latchkey.client
---@param home string
---@param kind string
---@param name string
---@return table|nil lock { kind, lease_ms, holders = { { owner, holds } }, fits, certain, token },
---  or { free = true }
---@return latchkey.error|nil err
function kinds.read(client, home, kind, name)
  local lock, err = look(client, kind, name)
  if kind ~= 'fenced' or not lock or lock.free then
    return lock, err
  end
  lock, err = add_token(client, home, lock, name)
  if not lock then
    return nil, err
  end
  lock.fits = lock.fits and lock.token ~= nil
  lock.certain = lock.certain and lock.fits
  return lock
end

---What a key of this type holds: of the kinds that share the type, the one whose keys are there.
---@param client latchkey.client
---@param home string
---@param key_type string "hash" or "string"
---@param name string
---@return table|nil lock as of read
---@return latchkey.error|nil err
function kinds.recognize(client, home, key_type, name)
  local lock, err = look(client, OF_TYPE[key_type], name)
  if not lock or lock.kind ~= 'lock' or not lock.fits then
    return lock, err
  end
  lock, err = add_token(client, home, lock, name)
  if lock and lock.token then
    lock.kind = 'fenced'
  end
  return lock, err
end

---@param client latchkey.client
---@param home string
---@param name string
---@return table|nil lock as of read; { free = true }; or { type } when its type is of no kind
---@return latchkey.error|nil err
function kinds.find(client, home, name)
  local reply, err = client:command('TYPE', name)
  if not reply then
    return nil, err
  elseif reply.ok == 'none' then
    return { free = true }
  elseif not OF_TYPE[reply.ok] then
    return { type = reply.ok }
  end
  return kinds.recognize(client, home, reply.ok, name)
end

---How many clients listen for the release.
---@param client latchkey.client
---@param home string
---@param kind string
---@param name string
---@return integer|nil count
---@return latchkey.error|nil err
function kinds.listeners(client, home, kind, name)
  local channel = kinds.derived(home, kinds.ROWS[kind].release, name).channel
  local reply, err = client:command('PUBSUB', 'NUMSUB', channel)
  if not reply then
    return nil, err
  end
  return reply[2]
end

return kinds
