-- SPDX-License-Identifier: Apache-2.0
-- Who waits for whom. Those who can wait or hold are units: a caller of a client, or a whole client
-- that says that its callers are one. A picture has
--   units  by name: { client, waits, elsewhere }; elsewhere: it waits in that database, for what is
--          not in the picture
--   locks  by "family name": { kind, name, holders, unnamed, unread }; so many more hold it who are
--          too many to be named; `unread` is why its holders are not known: nobody is blamed for it
-- A wait is { unit, lock, kind, any }: it ends when all who hold the lock release it, or, where
-- `any`, one of them. A holder has `units`, all of which must get on before it releases; none: who
-- that is, or what it does, is not known, and it may get on.
local tablex = require('pl.tablex')

local blame = {}

-- Kinds whose owner can wait for itself.
local OWN = { mutex = true, permit = true }

-- Does this holder keep the wait from its end, as long as `stuck` are?
local function keeps(wait, holder, stuck)
  for _, unit in ipairs(holder.units) do
    if stuck[unit] and (unit ~= wait.unit or OWN[wait.kind]) then
      return true
    end
  end
  return false
end

local function is_kept(wait, lock, stuck)
  local kept = 0
  for _, holder in ipairs(lock.holders) do
    if (wait.kind ~= 'read' or holder.writes) and keeps(wait, holder, stuck) then
      kept = kept + 1
    end
  end
  if wait.any then
    return lock.free == 0 and lock.unnamed == 0 and kept > 0 and kept == #lock.holders
  end
  return kept > 0
end

---The units that none of those who get on will ever release: each waits for others of them.
---@param picture table
---@return table<string, boolean> stuck
function blame.stuck(picture)
  local stuck = {}
  for name, unit in pairs(picture.units) do
    stuck[name] = #unit.waits > 0 or nil
  end
  local changed = true
  while changed do
    changed = false
    for name in tablex.sort(stuck) do
      for _, wait in ipairs(picture.units[name].waits) do
        if stuck[name] and not is_kept(wait, picture.locks[wait.lock], stuck) then
          stuck[name], changed = nil, true
        end
      end
    end
  end
  return stuck
end

-- For whom a stuck unit waits: { unit, wait } of each.
local function next_of(picture, stuck, name)
  local list, seen = {}, {}
  for _, wait in ipairs(picture.units[name].waits) do
    for _, holder in ipairs(picture.locks[wait.lock].holders) do
      for _, unit in ipairs(holder.units) do
        local counts = (wait.kind ~= 'read' or holder.writes)
          and (unit ~= name or OWN[wait.kind])
        if stuck[unit] and counts and not seen[unit] then
          seen[unit] = true
          list[#list + 1] = { unit = unit, wait = wait }
        end
      end
    end
  end
  return list
end

-- The shortest way from a unit back to itself.
local function way_back(picture, stuck, start)
  local from, rows, at = {}, { start }, 1
  while rows[at] do
    for _, step in ipairs(next_of(picture, stuck, rows[at])) do
      if not from[step.unit] then
        from[step.unit] = { unit = rows[at], wait = step.wait }
        rows[#rows + 1] = step.unit
      end
    end
    if from[start] then
      local way, unit = {}, start
      repeat
        table.insert(way, 1, from[unit])
        unit = from[unit].unit
      until unit == start
      return way
    end
    at = at + 1
  end
end

---@param picture table
---@return table[] cycles each a list of { unit, wait }, each of which waits for the next one's
---  hold; none is told twice
function blame.cycles(picture)
  local stuck, cycles, told = blame.stuck(picture), {}, {}
  for name in tablex.sort(stuck) do
    local way = not told[name] and way_back(picture, stuck, name)
    if way then
      cycles[#cycles + 1] = way
      for _, step in ipairs(way) do
        told[step.unit] = true
      end
    end
  end
  return cycles
end

---What tells two cycles apart.
---@param cycle table
---@return string
function blame.key(cycle)
  local parts = {}
  for i, step in ipairs(cycle) do
    parts[i] = step.unit .. ' ' .. step.wait.lock
  end
  table.sort(parts)
  return table.concat(parts, '\n')
end

-- -------------------------------------------------------------------------------- the picture --

local FAMILY = { read = 'rw', write = 'rw' }

-- The locks that are waited for, without their holders; and the units that wait.
local function begin(answers, further)
  local picture, by_owner = { units = {}, locks = {} }, {}
  for _, lock in ipairs(further or {}) do
    picture.locks[lock.kind .. ' ' .. lock.name] = { kind = lock.kind, name = lock.name,
      holders = {} }
  end
  local function unit_of(answer, caller)
    local name = answer.within and answer.uuid or ('%s/%s'):format(answer.uuid, caller or '?')
    picture.units[name] = picture.units[name] or { client = answer.client, waits = {} }
    return name
  end
  local function own(owner, unit)
    by_owner[owner] = by_owner[owner] or {}
    table.insert(by_owner[owner], unit)
  end
  local function add_wait(answer, wait)
    local family = FAMILY[wait.kind] or wait.kind
    wait.unit, wait.lock = unit_of(answer, wait.caller), family .. ' ' .. wait.name
    wait.any, wait.client = wait.kind == 'permit', answer.client
    picture.locks[wait.lock] = picture.locks[wait.lock]
      or { kind = family, name = wait.name, holders = {} }
    table.insert(picture.units[wait.unit].waits, wait)
  end
  for _, answer in ipairs(answers) do
    for _, wait in ipairs(answer.waits) do
      if answer.elsewhere then
        picture.units[unit_of(answer, wait.caller)].elsewhere = answer.elsewhere
      else
        add_wait(answer, wait)
      end
    end
    for _, hold in ipairs(answer.holds) do
      if hold.owner and (hold.caller or answer.within) then
        own(hold.owner, unit_of(answer, hold.caller))
      end
    end
    for _, owner in ipairs(answer.within or {}) do
      own(owner, unit_of(answer))
    end
  end
  return picture, by_owner
end

-- How many hold it whom the view does not name.
local function unnamed_in(view)
  local count = view.fits and (view.held or view.mode and view.fields - 1)
  return count and math.max(count - #view.holders, 0) or 0
end

-- Adds who holds it, as its view says.
local function add_holders(lock, view, by_owner)
  lock.view, lock.free, lock.unnamed = view, view.permits or 0, unnamed_in(view)
  for _, holder in ipairs(view.holders or {}) do
    if not holder.over then
      local writes = lock.kind ~= 'rw' or view.mode == 'write'
      table.insert(lock.holders, { units = by_owner[holder.owner] or {}, writes = writes,
        view = holder })
    end
  end
end

---@param answers table[] as of answer.read
---@param read fun(kind: string, name: string): table|nil, table|nil a view of the lock, or an error
---@param further? { kind: string, name: string }[] locks that nobody who answers waits for
---@return table|nil picture
---@return table|nil err none of the locks could be read
function blame.picture(answers, read, further)
  local picture, by_owner = begin(answers, further)
  local known, failure = 0, nil
  for key in tablex.sort(picture.locks) do
    local lock = picture.locks[key]
    local view, err = read(lock.kind, lock.name)
    if view then
      add_holders(lock, view, by_owner)
    else
      lock.free, lock.unnamed = 0, 0
      lock.unread = err.status ~= 'LK_WRONGTYPE' and err or nil
      failure = failure or lock.unread
    end
    known = known + (lock.unread and 0 or 1)
  end
  if failure and known == 0 then
    return nil, failure
  end
  return picture
end

return blame
