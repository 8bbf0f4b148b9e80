-- SPDX-License-Identifier: Apache-2.0
-- Views of locks (lib/kinds/shapes.lua) for people and for JSON.
local clients = require('latchkey.servers.clients')
local text = require('latchkey.text')

local words = {}

-- The column of the node, where there are several.
words.NODE = '%-21s '

---@param view table
---@return table document
function words.document(view)
  local document = { kind = view.kind, certain = view.certain, lease_ms = view.lease_ms,
    waiters = view.waiters, token = view.token, mode = view.mode and text.safe(view.mode),
    permits = view.permits, held = view.held, left = view.left, node = view.node,
    clients_hidden = view.hidden and text.safe(view.hidden), holders = {} }
  for i, holder in ipairs(view.holders or {}) do
    document.holders[i] = { owner = text.safe(holder.owner), holds = holder.holds,
      left_ms = not holder.over and holder.left_ms or nil, over = holder.over,
      client = clients.document(holder) }
  end
  if view.kind == 'rw' then
    document.writers_waiting = view.waiting
  end
  if view.queue then
    document.queue = {}
    for i, waiter in ipairs(view.queue) do
      document.queue[i] = { owner = text.safe(waiter.owner), stays_ms = waiter.stays_ms,
        client = clients.document(waiter) }
    end
  end
  return document
end

---When the last hold ends, unless it is renewed. Permits have leases of their own; the number of
---them has none.
---@param view table
---@return integer|nil ms -1: never; nil where nothing is held, or too much to know each lease
function words.left_ms(view)
  if not view.permits and not view.left or view.lease_ms >= 0 then
    return view.lease_ms
  elseif #(view.holders or {}) == 0 or view.held > #view.holders then
    return nil
  end
  local last_ms = 0
  for _, holder in ipairs(view.holders) do
    if holder.left_ms < 0 then
      return -1
    end
    last_ms = math.max(last_ms, holder.left_ms)
  end
  return last_ms
end

---@param view table
---@return string
function words.lease(view)
  local ms = words.left_ms(view)
  return not ms and '-' or ms < 0 and 'endless' or text.show_ms(ms)
end

-- "1 permit", "2 permits"
local function counted(count, one, many)
  return ('%.0f %s'):format(count, count == 1 and one or many)
end
words.counted = counted

---What is wrong with a hash that is no lock.
---@param view table
---@return string
function words.no_owners(view)
  return ('is a hash, but no lock: it has %s with counts'):format(counted(view.fields,
    'field that is not an owner', 'fields that are not owners'))
end

---What else may be locks; nil when nothing is.
---@param possible { strings: integer, hashes: integer, strings_unread: boolean }
---@return string|nil
function words.possible(possible)
  local parts = {}
  if possible.strings_unread then
    parts[1] = 'strings, which were not read among so many keys (--kind mutex)'
  elseif possible.strings > 0 then
    parts[1] = counted(possible.strings, 'string', 'strings')
      .. ' (--kind mutex, semaphore, permit or countdown)'
  end
  if possible.hashes > 0 then
    parts[#parts + 1] = counted(possible.hashes, 'hash', 'hashes')
      .. ' (--kind lock, fenced, fair or rw)'
  end
  return parts[1] and 'may be locks, too: ' .. table.concat(parts, ', ') or nil
end

---@param left_out survey.left_out
---@return integer keys
function words.count_left_out(left_out)
  return left_out.denied + left_out.moving
end

---Was all read that is there?
---@param scan survey
---@return boolean
function words.is_whole(scan)
  return #scan.failures == 0 and words.count_left_out(scan.left_out) == 0
end

---What documents say of keys that are left out; nil where there are none.
---@param left_out survey.left_out
---@return table|nil
function words.left_out(left_out)
  if words.count_left_out(left_out) == 0 then
    return nil
  end
  local keys = {}
  for i, key in ipairs(left_out.keys) do
    keys[i] = { name = text.safe(key.name), status = key.err.status,
      message = text.safe(key.err.message) }
  end
  return { denied = left_out.denied, moving = left_out.moving, keys = keys }
end

---Who has it, on one line.
---@param view table
---@return string
function words.holders(view)
  local parts = {}
  if view.permits then
    parts[1] = counted(view.permits, 'permit is free', 'permits are free')
    parts[2] = view.held and ('%.0f held'):format(view.held)
    return table.concat(parts, ', ')
  elseif view.left then
    return ('%.0f left to count'):format(view.left)
  end
  if view.mode and #view.holders == 0 and view.fields > 1 then
    return ('%d of them'):format(view.fields - 1)
  end
  for i, holder in ipairs(view.holders) do
    parts[i] = (holder.client and clients.short(holder.client) or text.safe(holder.owner))
      .. (holder.holds > 1 and ' x' .. text.number(holder.holds) or '')
      .. (holder.over and ' (over)' or '')
  end
  if view.token then
    parts[#parts + 1] = ('token %.0f'):format(view.token)
  end
  return table.concat(parts, ' ')
end

local function add(lines, label, ...)
  lines[#lines + 1] = ('  %-8s %s'):format(label, (...):format(select(2, ...)))
end

local function add_holders(lines, view)
  for _, holder in ipairs(view.holders or {}) do
    local more = holder.holds > 1 and (', %s holds'):format(text.number(holder.holds)) or ''
    if holder.over then
      more = more .. ', over: its lease has ended'
    elseif holder.left_ms then
      more = more .. (holder.left_ms < 0 and ', for ever'
        or ', for another ' .. text.show_ms(holder.left_ms))
    end
    add(lines, 'holder', '%s%s', text.safe(holder.owner), more)
    local about = clients.about(holder)
    if about then
      add(lines, '', '%s', about)
    end
  end
  if view.held and view.held > #view.holders then
    add(lines, 'holder', 'and %.0f more', view.held - #view.holders)
  elseif view.mode and #view.holders == 0 and view.fields > 1 then
    add(lines, 'holder', '%d, too many to be named here', view.fields - 1)
  end
end

local function add_waiters(lines, view)
  if view.queue then
    for i, waiter in ipairs(view.queue) do
      add(lines, i == 1 and 'queue' or '', '%d. %s%s', i, text.safe(waiter.owner),
        (waiter.client and ', ' .. clients.person(waiter.client) or '')
          .. (waiter.stays_ms > 0 and '' or ', overdue: dropped when it is first'))
    end
    if view.waiting > #view.queue then
      add(lines, '', 'and %d more', view.waiting - #view.queue)
    elseif view.waiting == 0 then
      add(lines, 'queue', 'nobody waits in it')
    end
    return
  end
  add(lines, 'waiting', '%s for its release', counted(view.waiters, 'client listens',
    'clients listen'))
  if view.waiting and view.waiting > 0 then
    add(lines, '', '%s, before new readers', counted(view.waiting, 'writer waits', 'writers wait'))
  end
end

local function add_counters(lines, view)
  if view.permits then
    add(lines, 'free', '%s%s', counted(view.permits, 'permit', 'permits'),
      view.held and (' of %.0f'):format(view.permits + view.held) or '')
  elseif view.left then
    add(lines, 'left', '%.0f to count', view.left)
  end
end

local function lease_of(view)
  if view.permits or view.left then
    return view.lease_ms < 0 and 'it lives until it is removed'
      or ('it ends in %s'):format(text.show_ms(view.lease_ms))
  end
  return view.lease_ms < 0 and 'endless: it is no lock of latchkey\'s'
    or ('ends in %s unless it is renewed'):format(text.show_ms(view.lease_ms))
end

local function add_view(lines, view)
  add_counters(lines, view)
  if view.mode then
    add(lines, 'mode', '%s', text.safe(view.mode))
  end
  add_holders(lines, view)
  if view.token then
    add(lines, 'token', '%.0f, drawn last', view.token)
  end
  if view.lease_ms then
    add(lines, 'lease', '%s', lease_of(view))
  end
  add_waiters(lines, view)
end

---Is it a matter of holding, or of counting?
local function verb_of(view)
  if view.permits then
    return 'is set'
  elseif view.left then
    return 'is closed'
  end
  return 'is held'
end

---Everything about one name.
---@param name string
---@param views table[] the kinds that fit, with `waiters`
---@return string
function words.about(name, views)
  local lines, list = { ('%s %s.'):format(name, verb_of(views[1])) }, {}
  for i, view in ipairs(views) do
    list[i] = ('%s (%s)'):format(view.kind, view.certain and 'certain' or 'possible')
  end
  add(lines, 'kind', '%s', table.concat(list, ', '))
  if views[1].node then
    add(lines, 'node', '%s', views[1].node)
  end
  for i, view in ipairs(views) do
    if i == 1 then
      add_view(lines, view)
    elseif view.permits or view.left then
      lines[#lines + 1] = ('  as %s'):format(view.kind)
      add_counters(lines, view)
      add_waiters(lines, view)
    elseif view.token then
      add(lines, 'token', '%.0f, drawn last', view.token)
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

local FREE = { semaphore = 'is not set', permit = 'is not set', countdown = 'is open' }

---What nobody holds, and who waits for it nevertheless.
---@param name string
---@param views table[] may be empty
---@param kind? string
---@return string
function words.free(name, views, kind)
  local lines = { ('%s %s.'):format(name, FREE[kind] or 'is free') }
  for _, view in ipairs(views) do
    if view.queue and view.waiting > 0 then
      add_waiters(lines, view)
    elseif (view.waiting or 0) > 0 then
      add(lines, 'waiting', '%s', counted(view.waiting, 'writer', 'writers'))
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

return words
