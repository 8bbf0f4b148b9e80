-- SPDX-License-Identifier: Apache-2.0
-- The kinds of locks, as they are seen on a server from outside.
local path = require('pl.path')

local catalog = require('lib.catalog')
local names = require('lib.names')

local kinds = {}

kinds.NAMES = { 'lock', 'mutex' }

-- What a key of this type can be; `certain` when its content says so, else it may be anything.
local OF_TYPE = { hash = 'lock', string = 'mutex' }

local TYPE_OF = { lock = 'hash', mutex = 'string' }

local UUID = ('%x'):rep(8) .. ('%-' .. ('%x'):rep(4)):rep(3) .. '%-' .. ('%x'):rep(12)

---Is it an owner's name as latchkey or Redisson forms it?
---@param word string
---@return boolean
local function is_owner(word)
  return word:gsub('^lk%-', '', 1):find('^' .. UUID .. ':%d+$') ~= nil
    or word:find('^' .. UUID .. ':%d+:[^:]+$') ~= nil and not word:find(':write$')
end

---@param kind string
---@return string type of its key
function kinds.type_of(kind)
  return TYPE_OF[kind]
end

local function read_lock(reply)
  local holders, certain, fits = {}, true, reply.n > 3
  for i = 4, reply.n, 2 do
    local owner, count = reply[i], reply[i + 1]
    fits = fits and count:find('^%d+$') ~= nil
    certain = certain and is_owner(owner)
    holders[#holders + 1] = { owner = owner, holds = tonumber(count) }
  end
  return { kind = 'lock', lease_ms = reply[2], holders = fits and holders or {}, fields = reply[3],
    fits = fits, certain = fits and certain }
end

local function read_mutex(reply)
  return { kind = 'mutex', lease_ms = reply[2], holders = { { owner = reply[3], holds = 1 } },
    fits = true, certain = reply[3]:find('^lk%-' .. UUID .. ':%d+$') ~= nil }
end

local READ = { lock = read_lock, mutex = read_mutex }

---What a key holds, read as a lock of this kind.
---@param client latchkey.client
---@param kind string
---@param name string
---@return table|nil lock { kind, lease_ms, holders = { { owner, holds } }, fits, certain }, or
---  { free = true }
---@return latchkey.error|nil err
function kinds.read(client, kind, name)
  local reply, err = client:eval(kind .. '/inspect', { name }, {})
  if not reply then
    return nil, err
  elseif reply[1] == 0 then
    return { free = true }
  end
  return READ[kind](reply)
end

---@param client latchkey.client
---@param name string
---@return table|nil lock as of read; { free = true }; or { type } when its type is of no kind
---@return latchkey.error|nil err
function kinds.find(client, name)
  local reply, err = client:command('TYPE', name)
  if not reply then
    return nil, err
  elseif reply.ok == 'none' then
    return { free = true }
  elseif not OF_TYPE[reply.ok] then
    return { type = reply.ok }
  end
  return kinds.read(client, OF_TYPE[reply.ok], name)
end

---The values of a script's arguments that follow from the lock's name alone.
---@param home string
---@param script string
---@param name string
---@return table values by argument
function kinds.derived(home, script, name)
  local found = assert(catalog.read_file(path.join(home, 'scripts', script .. '.lua')))
  local values = {}
  for _, field in ipairs(found.header.argv) do
    if field.form then
      values[field.name] = names.form(field.form, name)
    elseif field.type == 'verb' then
      values[field.name] = field.values[1]
    end
  end
  return values
end

---How many clients listen for the release.
---@param client latchkey.client
---@param home string
---@param kind string
---@param name string
---@return integer|nil count
---@return latchkey.error|nil err
function kinds.listeners(client, home, kind, name)
  local channel = kinds.derived(home, kind .. '/release', name).channel
  local reply, err = client:command('PUBSUB', 'NUMSUB', channel)
  if not reply then
    return nil, err
  end
  return reply[2]
end

return kinds
