-- SPDX-License-Identifier: Apache-2.0
-- Servers that are a cluster: each has its own view of who serves which slot, and answers MOVED
-- by it; slots move key by key from one to another, with ASK and TRYAGAIN meanwhile.
local Front = require('latchkey.mock.front')
local copies = require('copies')
local names = require('latchkey.script.names')
local resp = require('latchkey.mock.resp')

local cluster = {}

local SLOTS, PORT, HOST = 16384, 6379, '10.0.0.1'
-- A subcommand that servers before 7.0 do not have.
local UNKNOWN = 'ERR Unknown subcommand or wrong number of arguments'
local NEWER = { ['PUBSUB|SHARDNUMSUB'] = true, SSUBSCRIBE = true, SUNSUBSCRIBE = true, SPUBLISH = true }

---@param shards integer
---@param options table { old, no_host, whole }: before 7.0; nodes do not say their addresses; a server
---  that has some of a call's keys says ASK instead of TRYAGAIN
function cluster.new(shards, options)
  return { shards = shards, options = options, members = {}, slot_of = {}, asked = {},
    is_asked = {}, owner = {}, calls = copies.new() }
end

---A server becomes a member of a shard. The first one's master has the cluster's number, the next
---one's is `stride` on.
function cluster.join(self, server, number, first, shard, stride)
  server.cluster, server.number, server.shard = self, number, shard
  server.view = { masters = {}, slots = {} }
  self.members[#self.members + 1] = server
  for i = 0, self.shards - 1 do
    server.view.masters[i] = { number = first + i * stride, serial = 0 }
  end
end

local function slot_of(self, key)
  local slot = self.slot_of[key]
  if not slot then
    slot = names.slot(key)
    self.slot_of[key] = slot
  end
  return slot
end

local function default_shard(self, slot)
  return math.floor(slot * self.shards / SLOTS)
end

local function shard_of(self, view, slot)
  local moved = view.slots[slot]
  return moved and moved.shard or default_shard(self, slot)
end

-- Who serves a slot, as this server sees it.
local function owner_of(server, slot)
  return server.view.masters[shard_of(server.cluster, server.view, slot)].number
end

-- ------------------------------------------------------------------------------------- the gate --

local CHANNELS = { SSUBSCRIBE = true, SPUBLISH = true }

-- Keys, or channels, which are placed like keys.
local function names_in(command, argv)
  if not CHANNELS[command.name] then
    return Front.keys(command, argv)
  end
  return { unpack(argv, 2, command.name == 'SPUBLISH' and 2 or #argv) }
end

local function note(self, slot)
  if not self.is_asked[slot] then
    self.is_asked[slot] = true
    self.asked[#self.asked + 1] = slot
  end
end

local function count_missing(server, keys)
  local missing = 0
  server.world:begin()
  for _, key in ipairs(keys) do
    missing = missing + (server.world.store:get(key) and 0 or 1)
  end
  return missing
end

local function refer(server, word, slot, number)
  local host = server.cluster.options.no_host and '' or HOST
  return ('%s %d %s:%d'):format(word, slot, host, PORT + number)
end

-- A slot that is on its way, at the one who has it still.
local function leaving(server, move, keys)
  local missing = count_missing(server, keys)
  if missing == 0 then
    return nil
  elseif missing < #keys and not server.cluster.options.whole then
    return 'TRYAGAIN Multiple keys request during rehashing of slot'
  end
  return refer(server, 'ASK', move.slot, move.to.number)
end

local function arriving(server, keys)
  if #keys > 1 and count_missing(server, keys) > 0 then
    return 'TRYAGAIN Multiple keys request during rehashing of slot'
  end
end

local function refuse_of_slot(server, command, keys, slot, asking)
  local move = server.cluster.move
  local is_channel = CHANNELS[command.name]
  local owner = owner_of(server, slot)
  local moves = move and move.slot == slot
  if owner == server.number then
    return moves and move.from == server and not is_channel and leaving(server, move, keys) or nil
  elseif moves and move.to == server and asking then
    return not is_channel and arriving(server, keys) or nil
  elseif is_channel and server.of and server.of.number == owner then
    return nil
  end
  return refer(server, 'MOVED', slot, owner)
end

---What a member refuses before a command runs.
function cluster.gate(server)
  local self = server.cluster
  return function(_, conn, command, argv)
    if command.name == 'ASKING' then
      return nil
    end
    local asking, slot = conn.asking, nil
    conn.asking = nil
    if self.options.old and NEWER[command.name] then
      return UNKNOWN
    end
    local keys = names_in(command, argv)
    for _, key in ipairs(keys) do
      local its = slot_of(self, key)
      if slot and its ~= slot then
        return "CROSSSLOT Keys in request don't hash to the same slot"
      end
      slot = its
    end
    if not slot then
      return nil
    end
    note(self, slot)
    local refused = refuse_of_slot(server, command, keys, slot, asking)
    if not refused then
      copies.note(self.calls, server.world, conn, command, argv)
    end
    return refused
  end
end

-- ------------------------------------------------------------------------------- what is asked --

-- The slots of a view that have moved, in their order.
local function moved_slots(view)
  local list = {}
  for slot in pairs(view.slots) do
    list[#list + 1] = slot
  end
  table.sort(list)
  return list
end

-- Where another shard may begin: by default, and at each slot that has moved and behind it.
local function places_of(server)
  local shards, places = server.cluster.shards, moved_slots(server.view)
  for i = 1, #places do
    places[#places + 1] = places[i] + 1
  end
  for shard = 0, shards - 1 do
    places[#places + 1] = math.ceil(shard * SLOTS / shards)
  end
  table.sort(places)
  return places
end

-- { first, last, shard }, in the order of slots.
local function ranges(server)
  local list, last = {}, nil
  for _, first in ipairs(places_of(server)) do
    local shard = shard_of(server.cluster, server.view, first)
    if first < SLOTS and not (last and last[3] == shard) then
      if last then
        last[2] = first - 1
      end
      last = { first, SLOTS - 1, shard }
      list[#list + 1] = last
    end
  end
  return list
end

-- Until the view changes.
local function known_ranges(server)
  local view = server.view
  view.ranges = view.ranges or ranges(server)
  return view.ranges
end

local function members_of(server, shard)
  local first, others = server.view.masters[shard].number, {}
  for _, other in ipairs(server.cluster.members) do
    if other.shard == shard and other.number ~= first then
      others[#others + 1] = other.number
    end
  end
  return first, others
end

local function host(server)
  return server.cluster.options.no_host and '' or HOST
end

local function slots(_, server)
  local reply = {}
  for i, range in ipairs(known_ranges(server)) do
    local first, others = members_of(server, range[3])
    reply[i] = { range[1], range[2], { host(server), PORT + first, ('node%d'):format(first) } }
    for _, number in ipairs(others) do
      table.insert(reply[i], { host(server), PORT + number, ('node%d'):format(number) })
    end
  end
  return reply
end

---@param into table<string, table> the commands of a server, which gets those of a cluster
function cluster.add_commands(server, into)
  into.ASKING = { arity = 1, flags = 'loading', serve = function(_, conn)
    conn.asking = true
    return { ok = 'OK' }
  end }
  into.CLUSTER = { arity = -2, subcommands = {
    SLOTS = { arity = 2, serve = function(front)
      return slots(front, server)
    end },
  } }
end

-- ------------------------------------------------------------------------------------- messages --

---What one is told to publish goes to the others of the cluster, or of the shard.
function cluster.connect(server)
  local own = server.front.channels
  local tell = own.tell
  function own:tell(message)
    tell(self, message)
    for _, other in ipairs(server.is_cut_off and {} or server.cluster.members) do
      local hears = message.verb == 'PUBLISH' or other.shard == server.shard
      if other ~= server and hears and not other.is_cut_off then
        tell(other.front.channels, message)
      end
    end
  end
end

-- A server ends subscriptions to channels of slots that it serves no more.
local function unsubscribe(server)
  local channels = server.front.channels
  for _, name in ipairs(channels:names('shard')) do
    local owner = owner_of(server, slot_of(server.cluster, name))
    local serves = owner == server.number or server.of and server.of.number == owner
    for _, conn in ipairs(serves and {} or { unpack(channels.shard[name]) }) do
      channels:remove(conn, 'shard', name)
      local words = { 'sunsubscribe', name, conn:count('shard') }
      conn:send(resp.encode(conn.version == 3 and { push = words } or words, conn.version))
    end
  end
end

-- ---------------------------------------------------------------------------- what it hears of --

---Of a fail-over.
function cluster.hear_of_master(server, shard, number, serial)
  local known = server.view.masters[shard]
  if serial > known.serial then
    server.view.masters[shard] = { number = number, serial = serial }
    unsubscribe(server)
  end
end

---Of a slot that has moved.
function cluster.hear_of_slot(server, slot, shard, serial)
  local known = server.view.slots[slot]
  if not known or serial > known.serial then
    server.view.slots[slot] = { shard = shard, serial = serial }
    server.view.ranges = nil
    unsubscribe(server)
    local move = server.cluster.move
    if move and move.slot == slot and move.from == server then
      server.cluster.move = nil
    end
  end
end

---Of all that another knows.
function cluster.hear_all(server, from)
  for shard = 0, server.cluster.shards - 1 do
    local master = from.view.masters[shard]
    cluster.hear_of_master(server, shard, master.number, master.serial)
  end
  for _, slot in ipairs(moved_slots(from.view)) do
    local moved = from.view.slots[slot]
    cluster.hear_of_slot(server, slot, moved.shard, moved.serial)
  end
end

-- --------------------------------------------------------------------------- a slot that moves --

---Who has a key now: the one whom its slot leaves, while it is there.
---@param masters table<integer, table> the shards' masters
function cluster.find(self, masters, key)
  local slot = slot_of(self, key)
  local move = self.move
  if move and move.slot == slot then
    move.from.world:begin()
    return move.from.world.store:get(key) and move.from or move.to
  end
  return masters[self.owner[slot] or default_shard(self, slot)]
end

---One of the slots that were asked for begins to move.
---@return integer|nil slot
function cluster.begin_move(self, masters, pick, by)
  if #self.asked == 0 then
    return nil
  end
  local slot = self.asked[pick % #self.asked + 1]
  local from = self.owner[slot] or default_shard(self, slot)
  local shard = (from + by) % self.shards
  self.move = { slot = slot, from = masters[from], to = masters[shard], shard = shard }
  return slot
end

---One key goes over, with what is left of its lease.
---@return boolean was there one?
function cluster.move_key(self)
  local move = self.move
  local from, to = move.from.world, move.to.world
  from:begin()
  to:begin()
  for _, key in ipairs(from.store:names()) do
    if slot_of(self, key) == move.slot then
      local record = from.store:get(key)
      local copy = {}
      for field, value in pairs(record) do
        copy[field] = value
      end
      copy.expires_at = record.expires_at and record.expires_at + to:now_ms() - from:now_ms()
      to.store:put(key, copy)
      from.store:put(key, nil)
      return true
    end
  end
  return false
end

---The slot is the other's, who knows it first. The one who had it says ASK until it hears of it.
function cluster.hand_over(self, serial)
  local move = self.move
  self.owner[move.slot] = move.shard
  cluster.hear_of_slot(move.to, move.slot, move.shard, serial)
end

return cluster
