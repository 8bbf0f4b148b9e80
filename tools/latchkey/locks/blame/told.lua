-- SPDX-License-Identifier: Apache-2.0
-- What blame has seen of who waits for whom, for people, for JSON and for dot(1).
local clients = require('latchkey.servers.clients')
local text = require('latchkey.text')
local words = require('latchkey.locks.kinds.words')

local told = {}

-- So many locks whose waiters are silent are listed.
local SILENT_MAX = 100

-- "web-3:4711 (pg_dump@nightly)" of a client's name
local function person(name)
  local host, process, rest = name:match('^latchkey:([^:]+):(%d+):%x+(.*)$')
  if not host then
    return text.safe(name)
  end
  local label = rest:match('^:(.+)$')
  return ('%s:%s%s'):format(text.safe(host), process,
    label and (' (%s)'):format(text.safe(label)) or '')
end

---The database that a holder waits in, where that is another than the picture's.
---@param picture table as of blame.picture
---@param holder table of it
---@return integer|nil
function told.database_of(picture, holder)
  for _, unit in ipairs(holder.units) do
    if picture.units[unit].elsewhere then
      return picture.units[unit].elsewhere
    end
  end
end

local function holder_text(picture, holder)
  local unit = holder.units[1]
  if holder.view.client then
    return clients.short(holder.view.client)
  elseif unit then
    return person(picture.units[unit].client)
  end
  return text.safe(holder.view.owner)
end

-- Those who hold it beside the ones that are named; nil where there are none.
local function unnamed_text(lock)
  return lock.unnamed > 0 and ('%.0f%s who are not named'):format(lock.unnamed,
    #lock.holders > 0 and ' more' or '') or nil
end

local function lasting(ms)
  return ms and text.show_ms(ms) or '?'
end

local function cycle_lines(picture, cycle, lines)
  lines[#lines + 1] = #cycle == 1 and 'DEADLOCK: a client waits for what it holds itself'
    or ('DEADLOCK of %d clients'):format(#cycle)
  for i, step in ipairs(cycle) do
    local wait, other = step.wait, cycle[i % #cycle + 1].unit
    lines[#lines + 1] = ('  %s waits for %s (%s) since %s%s'):format(person(wait.client),
      text.safe(wait.name), wait.kind, lasting(wait.waited_ms),
      wait.rest_ms and wait.rest_ms >= 0 and (', for %s yet'):format(lasting(wait.rest_ms)) or '')
    lines[#lines + 1] = ('    which %s keeps from it'):format(person(picture.units[other].client))
  end
end

local function lock_lines(picture, lock, lines)
  lines[#lines + 1] = ('%s (%s)'):format(text.safe(lock.name), lock.kind)
  for _, holder in ipairs(lock.holders) do
    local left_ms = holder.view.left_ms or lock.view.lease_ms
    lines[#lines + 1] = ('  held by %s%s'):format(holder_text(picture, holder),
      left_ms and left_ms >= 0 and (', lease ends in %s'):format(text.show_ms(left_ms)) or '')
    local database = #lock.waits > 0 and told.database_of(picture, holder)
    if database then
      lines[#lines + 1] = ('    which waits in database %d: a deadlock over both is not seen')
        :format(database)
    end
  end
  local unnamed = unnamed_text(lock)
  if unnamed then
    lines[#lines + 1] = '  held by ' .. unnamed
  elseif lock.unread then
    lines[#lines + 1] = '  who holds it is not known: ' .. text.safe(lock.unread.message)
  elseif #lock.holders == 0 then
    lines[#lines + 1] = '  nobody holds it now'
  end
  for i, wait in ipairs(lock.waits) do
    lines[#lines + 1] = ('  %s %s waits since %s%s'):format(i == #lock.waits and '`-' or '|-',
      person(wait.client), lasting(wait.waited_ms), wait.kind ~= lock.kind
        and (' (%s)'):format(wait.kind) or '')
  end
end

local function silent_lines(seen, lines)
  if seen.hidden then
    lines[#lines + 1] = ('clients that wait and do not answer cannot be seen: %s '
      .. '(latchkey acl --operator)'):format(text.safe(seen.hidden))
  end
  if seen.silent_count == 0 then
    return
  end
  lines[#lines + 1] = ('%s could not be asked; a deadlock of them is not seen'):format(
    words.counted(seen.silent_count, 'client that waits', 'clients that wait'))
  for i = 1, math.min(#seen.silent, SILENT_MAX) do
    local lock = seen.silent[i]
    lines[#lines + 1] = ('  %s (%s): %s'):format(text.safe(lock.name), lock.kind,
      words.counted(lock.silent, 'client', 'clients'))
  end
  for _, one in ipairs(seen.people or {}) do
    lines[#lines + 1] = ('  %s: %s'):format(one.person, one.why)
  end
  local named = seen.people and #seen.people or 0
  if seen.people and seen.people_count > named then
    lines[#lines + 1] = ('  and %d more of latchkey\'s clients'):format(seen.people_count - named)
  elseif named < seen.silent_count then
    lines[#lines + 1] = ('  %d without a name of latchkey\'s: Redisson, or another program')
      :format(seen.silent_count - named)
  end
end

---@param seen table
---@param keys string[] of the locks to be shown
---@return string
function told.text(seen, keys)
  local lines = {}
  for _, cycle in ipairs(seen.cycles) do
    cycle_lines(seen.picture, cycle, lines)
    lines[#lines + 1] = ''
  end
  for _, key in ipairs(keys) do
    lock_lines(seen.picture, seen.picture.locks[key], lines)
  end
  if #keys == 0 and seen.name then
    lines[#lines + 1] = ('nobody holds %s, and nobody who answers waits for it'):format(
      text.safe(seen.name))
  elseif #keys == 0 then
    lines[#lines + 1] = 'nobody who answers waits for anything'
  end
  silent_lines(seen, lines)
  if seen.elsewhere then
    lines[#lines + 1] = ('%s of this server (%s): latchkey blame with the URL of one shows them')
      :format(words.counted(seen.elsewhere.clients, 'client waits in another database',
        'clients wait in other databases'), table.concat(seen.elsewhere.databases, ', '))
  end
  if (seen.others or 0) > 0 then
    lines[#lines + 1] = ('%s elsewhere: latchkey blame names them'):format(
      words.counted(seen.others, 'deadlock', 'deadlocks'))
  end
  if seen.expected > seen.answered then
    lines[#lines + 1] = ('%d of %d clients answered'):format(seen.answered, seen.expected)
  end
  return table.concat(lines, '\n') .. '\n'
end

local function wait_document(wait)
  return { client = text.safe(wait.client), kind = wait.kind, name = text.safe(wait.name),
    owner = wait.owner and text.safe(wait.owner), caller = wait.caller, place = wait.place,
    waited_ms = wait.waited_ms, rest_ms = wait.rest_ms }
end

---@param seen table
---@param keys string[]
---@return table
function told.document(seen, keys)
  local fields = { deadlocks = {}, locks = {}, answered = seen.answered,
    expected = seen.expected >= 0 and seen.expected or nil, unasked = { clients = seen.silent_count,
      locks = {}, people = {}, hidden = seen.hidden and text.safe(seen.hidden) },
    deadlocks_elsewhere = seen.others, elsewhere = seen.elsewhere }
  for i, lock in ipairs(seen.silent) do
    fields.unasked.locks[i] = { name = text.safe(lock.name), kind = lock.kind,
      clients = lock.silent }
  end
  for i, one in ipairs(seen.people or {}) do
    fields.unasked.people[i] = { client = one.person, why = one.why }
  end
  for i, cycle in ipairs(seen.cycles) do
    fields.deadlocks[i] = {}
    for k, step in ipairs(cycle) do
      fields.deadlocks[i][k] = wait_document(step.wait)
    end
  end
  for i, key in ipairs(keys) do
    local lock = seen.picture.locks[key]
    local holders, waits = {}, {}
    for k, holder in ipairs(lock.holders) do
      holders[k] = { owner = text.safe(holder.view.owner), left_ms = holder.view.left_ms,
        client = clients.document(holder.view), answered = #holder.units > 0,
        waits_in = told.database_of(seen.picture, holder) }
    end
    for k, wait in ipairs(lock.waits) do
      waits[k] = wait_document(wait)
    end
    fields.locks[i] = { name = text.safe(lock.name), kind = lock.kind, holders = holders,
      unnamed = lock.unnamed > 0 and lock.unnamed or nil, waits = waits,
      listeners = lock.listeners, error = lock.unread and {
        status = lock.unread.status, message = text.safe(lock.unread.message),
        hint = lock.unread.hint or '' } }
  end
  return fields
end

local function quoted(word)
  return '"' .. word:gsub('[\\"]', '\\%0') .. '"'
end

---Clients are ellipses, locks are boxes; what is deadlocked is red.
---@param seen table
---@param keys string[]
---@return string
function told.graph(seen, keys)
  local red, lines = {}, { 'digraph latchkey {', '  rankdir=LR;' }
  for _, cycle in ipairs(seen.cycles) do
    for _, step in ipairs(cycle) do
      red[step.unit .. ' ' .. step.wait.lock] = true
    end
  end
  for _, key in ipairs(keys) do
    local lock = seen.picture.locks[key]
    lines[#lines + 1] = ('  %s [shape=box];'):format(quoted(text.safe(key)))
    for _, holder in ipairs(lock.holders) do
      lines[#lines + 1] = ('  %s -> %s [label="held by"];'):format(quoted(text.safe(key)),
        quoted(holder_text(seen.picture, holder)))
    end
    lines[#lines + 1] = lock.unnamed > 0 and ('  %s -> %s [label="held by"];'):format(
      quoted(text.safe(key)), quoted(unnamed_text(lock))) or nil
    for _, wait in ipairs(lock.waits) do
      lines[#lines + 1] = ('  %s -> %s [label="waits for"%s];'):format(quoted(person(wait.client)),
        quoted(text.safe(key)), red[wait.unit .. ' ' .. key] and ', color=red' or '')
    end
  end
  lines[#lines + 1] = '}'
  return table.concat(lines, '\n') .. '\n'
end

return told
