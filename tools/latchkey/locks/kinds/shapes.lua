-- SPDX-License-Identifier: Apache-2.0
-- What the replies of the inspect scripts say, in one form for all kinds. A view has
--   fits      can the key be of this kind?
--   certain   is it, as far as the names in it tell?
--   free      true when nobody holds it; the rest but `waiters` is then missing
--   lease_ms  what is left of the key's life, -1 for ever
--   holders   { owner, holds, left_ms, over }, in the order of the reply; left_ms where it differs
--   fields    of a hash; above 100 its holders are not named
--   queue     who waits, in order: { owner, stays_ms }
--   waiting   how many wait, where the keys tell
--   mode      "read" or "write"
--   permits   how many are free; `held` how many are not
--   left      what is left to count
local shapes = {}

local UUID = ('%x'):rep(8) .. ('%-' .. ('%x'):rep(4)):rep(3) .. '%-' .. ('%x'):rep(12)

shapes.OWNER_MAX = 256

-- The last holder that a view names is this many; the rest is only counted.
local FIELDS_MAX = 100

---Is it an owner's name as latchkey or Redisson forms it?
---@param word string
---@return boolean
function shapes.is_owner(word)
  return word:gsub('^lk%-', '', 1):find('^' .. UUID .. ':%d+$') ~= nil
    or word:find('^lk%-' .. UUID .. ':%d+:kept$') ~= nil -- released, and not yet free
    or word:find('^' .. UUID .. ':%d+:[^:]+$') ~= nil and not word:find(':write$')
end

local function is_count(word)
  return word:find('^%d+$') ~= nil
end

-- Holders that follow each other in a reply, each with its count; where the next thing stands.
local function read_holders(view, reply, from)
  local fits, certain = view.fields <= FIELDS_MAX, true
  local last = fits and from + 2 * view.fields - 1 or from - 1
  view.holders = {}
  for i = from, last, 2 do
    local owner, count = reply[i], reply[i + 1]
    fits = fits and is_count(count)
    certain = certain and shapes.is_owner(owner)
    view.holders[#view.holders + 1] = { owner = owner, holds = tonumber(count) or 0 }
  end
  view.fits, view.certain = fits, fits and certain
  view.holders = fits and view.holders or {}
  return last + 1
end

function shapes.lock(reply)
  if reply[1] == 0 then
    return { free = true }
  end
  local view = { lease_ms = reply[2], fields = reply[3] }
  read_holders(view, reply, 4)
  return view
end

local function read_queue(view, reply, from)
  view.queue = {}
  for i = from, reply.n, 2 do
    view.queue[#view.queue + 1] = { owner = reply[i], stays_ms = reply[i + 1] }
  end
  return view
end

function shapes.fair(reply)
  if reply[1] == 0 then
    return read_queue({ free = true, waiting = reply[2] }, reply, 3)
  end
  local view = { lease_ms = reply[2], fields = reply[3], waiting = reply[4] }
  return read_queue(view, reply, read_holders(view, reply, 5))
end

function shapes.rw(reply)
  if reply[1] == 0 then
    return { free = true, waiting = reply[2] }
  elseif reply[1] == -1 then
    return { fits = false, certain = false, holders = {} }
  end
  local view = { lease_ms = reply[2], fields = reply[3], waiting = reply[4], mode = reply[5],
    holders = {} }
  -- Above the limit the mode has to do: many may read at once.
  local fits = view.mode == 'read' or view.mode == 'write'
  local certain = true
  for i = 6, reply.n, 3 do
    local owner, count, left_ms = reply[i], reply[i + 1], reply[i + 2]
    fits = fits and is_count(count)
    certain = certain and shapes.is_owner((owner:gsub(':write$', '')))
    view.holders[#view.holders + 1] = { owner = owner, holds = tonumber(count) or 0,
      left_ms = left_ms, over = left_ms == -2 or nil }
  end
  view.fits, view.certain = fits, fits and certain and #view.holders > 0
  view.holders = fits and view.holders or {}
  return view
end

function shapes.mutex(reply)
  if reply[1] == 0 then
    return { free = true }
  end
  local owner = reply[3]
  return { lease_ms = reply[2], holders = { { owner = owner, holds = 1 } },
    fits = #owner >= 1 and #owner <= shapes.OWNER_MAX,
    certain = owner:find('^lk%-' .. UUID .. ':%d+$') ~= nil }
end

local function counter(reply, name)
  if reply[1] == 0 then
    return { free = true }
  elseif reply[1] == -1 then
    return { fits = false, certain = false, holders = {} }
  end
  return { lease_ms = reply[2], [name] = reply[3], holders = {}, fits = true, certain = false }
end

function shapes.semaphore(reply)
  return counter(reply, 'permits')
end

function shapes.countdown(reply)
  return counter(reply, 'left')
end

---One who has a permit.
---@param id string 16 bytes
---@param left_ms? integer
---@return table holder
function shapes.permit_holder(id, left_ms)
  return { id = id, holds = 1, left_ms = left_ms, owner = (id:gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end)) }
end

function shapes.permit(reply)
  local view = counter(reply, 'permits')
  if view.free or not view.fits then
    return view
  end
  view.held, view.certain = reply[4], reply[4] > 0
  for i = 5, reply.n, 2 do
    local id = reply[i]
    view.certain = view.certain and #id == 16
    view.holders[#view.holders + 1] = shapes.permit_holder(id, reply[i + 1])
  end
  return view
end

return shapes
