-- SPDX-License-Identifier: Apache-2.0
-- Taking a lock away: from every holder that was shown, by the scripts, and with a word to whoever
-- waits for it as another kind that its key fits.
local expect = require('latchkey.servers.expect')
local kinds = require('latchkey.locks.kinds')
local shapes = require('latchkey.locks.kinds.shapes')

local breaking = {}

-- So many permits are taken by one call.
local IDS_MAX = 100

-- Kinds that share a shape: who waits for one of them also wants to know of the others' release.
local SAME_SHAPE = { lock = true, fenced = true, fair = true }

-- So many further holders are asked for at a time.
local STEP = 250

local function permits_of(client, home, view, name)
  local key, holders = kinds.formed(home, kinds.ROWS.permit.breaks, 'leases', name), {}
  for from = 0, view.held - 1, STEP do
    local reply, err = expect('list', 'ZRANGE',
      client:command('ZRANGE', key, from, from + STEP - 1))
    if not reply then
      return nil, err
    end
    for i = 1, reply.n do
      holders[#holders + 1] = shapes.permit_holder(reply[i])
    end
  end
  return holders
end

local function owners_of(client, name)
  local cursor, holders, seen = '0', {}, { mode = true }
  repeat
    local reply, err = expect('cursor and list', 'HSCAN',
      client:command('HSCAN', name, cursor, 'COUNT', STEP))
    if not reply then
      return nil, err
    end
    cursor = reply[1]
    for i = 1, reply[2].n, 2 do
      local owner = reply[2][i]
      if not seen[owner] then
        seen[owner] = true
        holders[#holders + 1] = { owner = owner, holds = tonumber(reply[2][i + 1]) or 0 }
      end
    end
  until cursor == '0'
  return holders
end

---All holders, also where there are more than the inspect script names.
---@param client latchkey.client
---@param home string
---@param view table
---@param name string
---@return table[]|nil holders as a view has them
---@return latchkey.error|nil err
function breaking.holders(client, home, view, name)
  if view.held and view.held > #view.holders then
    return permits_of(client, home, view, name)
  elseif view.mode and #view.holders == 0 and view.fields > 1 then
    return owners_of(client, name)
  end
  return view.holders
end

-- Nobody else uses this name for its calls.
local function caller()
  local file = assert(io.open('/dev/urandom', 'rb'))
  local bytes = file:read(16)
  file:close()
  return 'latchkey-break-' .. bytes:gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end)
end

local function break_latch(client, home, name)
  local reply, err = kinds.call(client, home, kinds.ROWS.countdown.breaks, name,
    { caller = caller(), seq = 1 })
  if not reply then
    return nil, err
  end
  return { broken = reply[1], owners = {}, left = reply[2] }
end

local function break_permits(client, home, name, holders)
  local done = { broken = 0, owners = {} }
  for from = 1, #holders, IDS_MAX do
    local ids, last = {}, math.min(from + IDS_MAX - 1, #holders)
    for i = from, last do
      ids[#ids + 1] = holders[i].id
    end
    local reply, err = kinds.call(client, home, kinds.ROWS.permit.breaks, name, { ids = ids })
    if not reply then
      return done, err
    end
    for i = from, last do
      done.owners[#done.owners + 1] = holders[i].owner
    end
    done.broken = done.broken + (reply[2] or 0)
  end
  done.another = done.broken == 0
  return done
end

local function break_holds(client, home, kind, name, holders)
  local done = { broken = 0, owners = {} }
  for _, holder in ipairs(holders) do
    local reply, err = kinds.call(client, home, kinds.ROWS[kind].breaks, name,
      { owner = holder.owner })
    if not reply then
      return done, err
    end
    if reply[1] == 1 then
      done.broken = done.broken + 1
      done.owners[#done.owners + 1] = holder.owner
      done.token = reply[2]
    end
    done.another = done.another or reply[1] == -1
  end
  return done
end

local function tell(client, channel)
  return client:command(client:publish_verb(channel), channel, '0')
end

-- The script tells whoever waits for its own kind. A plain lock's waiters listen on the channel of
-- the name, a fair one's first waiter on one of its own, which ends in its owner's name, or in that
-- of its client.
local function tell_others(client, home, kind, name)
  local row = kinds.ROWS.fair
  local channel = kinds.formed(home, row.tells, 'channel', name)
  if kind == 'fair' then
    return tell(client, channel)
  end
  local fair, err = kinds.read(client, home, 'fair', name)
  if not fair then
    -- Keys of another type: nobody waits in such a queue.
    return err.status == 'LK_WRONGTYPE', err
  end
  local head = fair.queue[1]
  if not head then
    return true
  end
  local told
  told, err = tell(client, channel .. ':' .. head.owner)
  if told then
    told, err = tell(client, channel .. ':' .. head.owner:gsub(':%d+$', ''))
  end
  return told, err
end

---@param client latchkey.client
---@param home string
---@param kind string one with a script that breaks
---@param name string
---@param holders table[] as a view has them
---@return table|nil done { broken = count, owners, token, left, another }; nil: nothing was done,
---  as far as it is known
---@return latchkey.error|nil err with `done`: what went wrong behind that
function breaking.run(client, home, kind, name, holders)
  if kind == 'countdown' then
    return break_latch(client, home, name)
  elseif kind == 'permit' then
    return break_permits(client, home, name, holders)
  end
  local done, err = break_holds(client, home, kind, name, holders)
  if done.broken > 0 and not err and SAME_SHAPE[kind] then
    local told, wrong = tell_others(client, home, kind, name)
    err = not told and wrong or nil
  end
  return done, err
end

return breaking
