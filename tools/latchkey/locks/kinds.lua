-- SPDX-License-Identifier: Apache-2.0
-- The kinds of locks, as they are seen on a server from outside. Views: lib/kinds/shapes.lua.
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local expect = require('latchkey.servers.expect')
local fleet = require('latchkey.servers.fleet')
local headers = require('latchkey.script.header')
local names = require('latchkey.script.names')
local shapes = require('latchkey.locks.kinds.shapes')

local kinds = {}

-- What each kind is on the server: the type of its key, the script that looks at it and how its
-- reply is read, the script that says where waiters listen, and the one that takes it away.
kinds.ROWS = {
  lock = { type = 'hash', inspect = 'lock/inspect', tells = 'lock/release', breaks = 'lock/break' },
  fenced = { type = 'hash', inspect = 'lock/inspect', tells = 'lock/release',
    breaks = 'fenced/break', shape = 'lock' },
  fair = { type = 'hash', inspect = 'fair/inspect', tells = 'fair/release',
    breaks = 'fair/break' },
  rw = { type = 'hash', inspect = 'rw/inspect', tells = 'rw/write_release', breaks = 'rw/break' },
  mutex = { type = 'string', inspect = 'mutex/inspect', tells = 'mutex/release',
    breaks = 'mutex/break' },
  semaphore = { type = 'string', inspect = 'semaphore/inspect', tells = 'semaphore/release' },
  permit = { type = 'string', inspect = 'permit/inspect', tells = 'permit/release',
    breaks = 'permit/break' },
  countdown = { type = 'string', inspect = 'countdown/inspect', tells = 'countdown/count_down',
    breaks = 'countdown/reset' },
}

kinds.NAMES = { 'lock', 'fenced', 'fair', 'rw', 'mutex', 'semaphore', 'permit', 'countdown' }
kinds.CHOICE = 'lock, fenced, fair, rw, mutex, semaphore, permit or countdown'

local known = {}

local function header_of(home, script)
  known[script] = known[script]
    or assert(catalog.read_file(path.join(home, 'scripts', script .. '.lua'))).header
  return known[script]
end

---What a key or argument of a script is for a lock's name.
---@param home string
---@param script string
---@param field string name of the key or argument
---@param name string
---@return string
function kinds.formed(home, script, field, name)
  local header = header_of(home, script)
  for _, list in ipairs({ header.keys, header.argv }) do
    for _, one in ipairs(list) do
      if one.name == field then
        return names.form(one.form, name)
      end
    end
  end
  error(('%s has no "%s"'):format(script, field), 2)
end

---Runs a script on a lock's name: what the header forms is formed, the rest comes from `args`.
---@param client latchkey.client
---@param home string
---@param script string
---@param name string
---@param args? table values by the names of the arguments; an array where one stands for many
---@return any reply
---@return latchkey.error|nil err
function kinds.call(client, home, script, name, args)
  local header, keys, argv, channel = header_of(home, script), {}, {}, nil
  args = args or {}
  for i, key in ipairs(header.keys) do
    keys[i] = names.form(key.form, name, args)
  end
  for _, field in ipairs(header.argv) do
    if field.many then
      for _, value in ipairs(args[field.name]) do
        argv[#argv + 1] = value
      end
    elseif field.form then
      argv[#argv + 1] = names.form(field.form, name)
      channel = argv[#argv]
    elseif field.type == 'verb' then
      argv[#argv + 1] = client:publish_verb(channel)
    else
      argv[#argv + 1] = args[field.name]
    end
  end
  return expect('list', script, client:eval(script, keys, argv))
end

-- Adds the token drawn last under the lock's name, if there is one.
local function add_token(client, home, view, name)
  local counter = kinds.formed(home, kinds.ROWS.fenced.breaks, 'counter', name)
  local reply, err = expect('text or nil', 'GET', client:command('GET', counter))
  if err and err.status ~= 'LK_WRONGTYPE' then
    return nil, err
  end
  view.token = reply and tonumber(reply:match('^%d+$'))
  return view
end

---What a key holds, read as a lock of this kind.
---@param client latchkey.client
---@param home string
---@param kind string
---@param name string
---@return table|nil view with its `kind`
---@return latchkey.error|nil err
function kinds.read(client, home, kind, name)
  local row = kinds.ROWS[kind]
  local reply, err = kinds.call(client, home, row.inspect, name)
  if not reply then
    return nil, err
  elseif not headers.reply_shape(header_of(home, row.inspect), reply) then
    return expect('list that it gives', row.inspect)
  end
  local view = shapes[row.shape or kind](reply)
  view.kind = kind
  if view.free or kind ~= 'fenced' then
    return view
  end
  view, err = add_token(client, home, view, name)
  if not view then
    return nil, err
  end
  view.fits = view.fits and view.token ~= nil
  view.certain = view.certain and view.fits
  return view
end

---Can it be what it was read as? A plain lock is shown as a fenced one without a token.
---@param view table as of kinds.read
---@return boolean
function kinds.fits(view)
  return view.free or view.fits or view.kind == 'fenced' and view.holders[1] ~= nil
end

---What a string is if it is too long for a lock of any kind; it is not read.
---@param client latchkey.client
---@param name string
---@return string|false|nil what
---@return latchkey.error|nil err
function kinds.too_long(client, name)
  local bytes, err = expect('integer', 'STRLEN', client:command('STRLEN', name))
  if not bytes then
    return nil, err
  end
  return bytes > shapes.OWNER_MAX and ('a string of %.0f bytes'):format(bytes)
end

-- Of a kind that shares its keys with another, and whose own keys may be of another type.
local function read_beside(client, home, kind, name)
  local view, err = kinds.read(client, home, kind, name)
  if not view and err.status == 'LK_WRONGTYPE' then
    return { free = true }
  end
  return view, err
end

-- A hash of owners: with a counter of tokens it is fenced, with a queue fair; with both it may be
-- either. Without them it is a plain lock, or a fair one for which nobody waits.
local function recognize_owners(client, home, lock, name)
  local fenced, fair, err
  fair, err = read_beside(client, home, 'fair', name)
  if fair then
    fenced, err = read_beside(client, home, 'fenced', name)
  end
  if not fenced then
    return nil, err
  end
  local has_queue, has_token = (fair.waiting or 0) > 0 and not fair.free, fenced.token ~= nil
  if has_queue and has_token then
    fair.certain, fenced.certain = false, false
    return { fair, fenced }
  elseif has_queue then
    return { fair }
  elseif has_token then
    return { fenced }
  end
  fair.certain = false
  return fair.free and { lock } or { lock, fair }
end

local function recognize_hash(client, home, name)
  local lock, err = kinds.read(client, home, 'lock', name)
  if not lock then
    return nil, err
  elseif lock.free then
    return {}
  elseif lock.fits then
    return recognize_owners(client, home, lock, name)
  end
  local rw
  rw, err = kinds.read(client, home, 'rw', name)
  if not rw then
    return nil, err
  elseif rw.free then
    return {}
  end
  return { rw.mode and rw or lock }
end

-- A number may be many things; the ids of permits beside it, and the name of an owner, are proof.
local function recognize_string(client, home, name)
  local mutex, err = kinds.read(client, home, 'mutex', name)
  if not mutex then
    return nil, err
  elseif mutex.free then
    return {}
  end
  local found = { mutex }
  if mutex.certain then
    return found
  end
  for _, kind in ipairs({ 'semaphore', 'permit', 'countdown' }) do
    local view
    view, err = read_beside(client, home, kind, name)
    if not view then
      return nil, err
    elseif view.certain then
      return { view }
    elseif view.fits and not view.free then
      found[#found + 1] = view
    end
  end
  -- Owners' names are hardly numbers: what counts is likelier than a mutex.
  table.insert(found, table.remove(found, 1))
  return found
end

---The kinds that a key of this type can be, likely ones first; none if it is gone by now.
---@param client latchkey.client
---@param home string
---@param key_type "hash"|"string"
---@param name string
---@return table[]|nil views
---@return latchkey.error|nil err
function kinds.recognize(client, home, key_type, name)
  if key_type == 'hash' then
    return recognize_hash(client, home, name)
  end
  return recognize_string(client, home, name)
end

-- Who waits for what nobody holds.
local function find_waiters(client, home, name)
  local found = {}
  for _, kind in ipairs({ 'fair', 'rw' }) do
    local view, err = read_beside(client, home, kind, name)
    if not view then
      return nil, err
    elseif view.free and (view.waiting or 0) > 0 then
      found[#found + 1] = view
    end
  end
  return { free = true, views = found }
end

---@param client latchkey.client
---@param home string
---@param name string
---@return table|nil found { views }, the kinds that fit; { free, views }, of which some may have
---  waiters; { what }, a few words, when it is of no kind
---@return latchkey.error|nil err
function kinds.find(client, home, name)
  local reply, err = expect('status', 'TYPE', client:command('TYPE', name))
  if not reply then
    return nil, err
  elseif reply.ok == 'none' then
    return find_waiters(client, home, name)
  elseif reply.ok ~= 'hash' and reply.ok ~= 'string' then
    return { what = 'a ' .. reply.ok }
  end
  if reply.ok == 'string' then
    local what
    what, err = kinds.too_long(client, name)
    if what or err then
      return what and { what = what }, err
    end
  end
  local views
  views, err = kinds.recognize(client, home, reply.ok, name)
  if not views then
    return nil, err
  end
  return { views = views, free = #views == 0 or nil }
end

---How many wait: as the keys tell, else how many listen for the release.
---@param client latchkey.client
---@param home string
---@param view table
---@param name string
---@param masters latchkey.node[]
---@param at latchkey.node which of them has it
---@return integer|nil count
---@return latchkey.error|nil err
function kinds.waiters(client, home, view, name, masters, at)
  if view.kind == 'fair' then
    return view.waiting
  end
  local channel = kinds.formed(home, kinds.ROWS[view.kind].tells, 'channel', name)
  return fleet.listeners(client, channel, masters, at)
end

return kinds
