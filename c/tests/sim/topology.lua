-- SPDX-License-Identifier: Apache-2.0
-- Servers that are several: replicas that follow a master with some delay, and sentinels that say where it is.

local topology = {}

local HOST = '10.0.0.1'

-- ------------------------------------------------------------------------------------ replicas --

local function note_changes(server)
  local store = server.world.store
  local put, replace = store.put, store.replace
  function store:put(key, record)
    server.changed = server.changed or {}
    server.changed[key] = true
    return put(self, key, record)
  end
  function store:replace(keys)
    server.changed = nil
    return replace(self, keys)
  end
end

-- What FUNCTION LOAD and its like make of the libraries is sent to replicas, too.
local function note_libraries(server)
  local functions = server.world.functions
  for _, name in ipairs({ 'load', 'delete', 'flush' }) do
    local change = functions[name]
    functions[name] = function(...)
      server.has_learned = true
      return change(...)
    end
  end
end

-- Those of a replica are there when somebody may call them: when it is the master.
local function learn(server)
  local functions, wanted = server.world.functions, {}
  for _, library in ipairs(server.libraries) do
    local known = functions.libraries[library.name]
    wanted[library.name] = true
    if not known or known.code ~= library.code then
      assert(functions:load(library.code, true))
    end
  end
  for _, library in ipairs(functions:list()) do
    if not wanted[library.name] then
      functions:delete(library.name)
    end
  end
end

local function copy_of(keys)
  local copy = {}
  for key, record in pairs(keys) do
    copy[key] = record
  end
  return copy
end

---A server that may have replicas, or be one.
function topology.prepare(server)
  server.offset, server.applied, server.lag_ms, server.followers = 0, 0, 1, {}
  note_changes(server)
  note_libraries(server)
end

---What was written since the last time goes to the replicas, behind all that was sent before.
---@param has_moved boolean? to here, from another master: nobody has waited for these replicas to have it
---@return boolean was there something?
function topology.commit(server, now_ms, has_moved)
  local changed = server.changed or {}
  if not server.changed and not server.has_learned then
    return false
  end
  local libraries = server.has_learned and server.world.functions:list() or nil
  server.changed, server.has_learned = nil, nil
  local keys = server.world.store.keys
  server.offset = server.offset + 1
  local batch = {}
  for key in pairs(changed) do
    batch[key] = keys[key] or false
  end
  for _, follower in ipairs(server.followers) do
    local queue = follower.queue
    local due = now_ms + follower.lag_ms
    if queue[#queue] and queue[#queue].due > due then
      due = queue[#queue].due
    end
    if server.is_cut_off then
      follower.lacks_moved = follower.lacks_moved or has_moved
    else
      queue[#queue + 1] = { offset = server.offset, due = due, batch = batch, has_moved = has_moved,
        libraries = libraries }
    end
  end
  return true
end

---What this connection wrote last, also behind a WAIT for what it wrote before.
function topology.note_writes(server, conn)
  local go_on = conn.go_on
  function conn:go_on()
    go_on(self)
    if topology.commit(server, server.now_ms) then
      self.wrote = server.offset
    end
  end
end

-- What has arrived at a replica by now.
function topology.catch_up(replica, now_ms)
  local queue, n = replica.queue, 0
  local keys = replica.world.store.keys
  while queue[n + 1] and queue[n + 1].due <= now_ms do
    n = n + 1
    for key, record in pairs(queue[n].batch) do
      keys[key] = record or nil
    end
    replica.libraries = queue[n].libraries or replica.libraries
    replica.applied = queue[n].offset
  end
  if n > 0 then
    replica.queue = { unpack(queue, n + 1) }
  end
end

-- What has not arrived by now never does.
local function drop_queue(replica, now_ms)
  topology.catch_up(replica, now_ms)
  for _, sent in ipairs(replica.queue) do
    replica.lacks_moved = replica.lacks_moved or sent.has_moved
  end
  replica.queue = {}
end

---What has not arrived at its replicas by now never does.
function topology.cut_off(server, now_ms)
  server.is_cut_off = true
  for _, follower in ipairs(server.followers) do
    drop_queue(follower, now_ms)
  end
end

local function leave_master(replica)
  local master = replica.of
  for i, other in ipairs(master and master.followers or {}) do
    if other == replica then
      table.remove(master.followers, i)
      break
    end
  end
  replica.of = nil
end

---Begins to follow, with all that the master has.
function topology.follow(replica, master)
  leave_master(replica)
  for _, follower in ipairs(replica.followers) do
    follower.of = nil
  end
  replica.followers, replica.queue, replica.of = {}, {}, master
  replica.is_cut_off, replica.lacks_moved = false, false
  replica.world.store:replace(copy_of(master.world.store.keys))
  replica.libraries = master.world.functions:list()
  replica.applied = master.offset
  master.followers[#master.followers + 1] = replica
  replica.world:set_readonly(true)
end

---A replica with what has arrived becomes the master; those that followed with it follow it.
---@return boolean has the old one written what is lost?
---@return boolean is something among it that had moved there?
function topology.promote(replica, now_ms)
  local old = replica.of
  drop_queue(replica, now_ms)
  local is_lost, lacks_moved = replica.applied < old.offset, replica.lacks_moved
  leave_master(replica)
  replica.offset, replica.lacks_moved = old.offset + 1000, false
  replica.world:set_readonly(false)
  learn(replica)
  for _, other in ipairs({ unpack(old.followers) }) do
    topology.follow(other, replica)
  end
  return is_lost, lacks_moved
end

---It came up anew: a master without its data makes its replicas forget, too.
function topology.restarted(server, is_empty)
  if server.of then
    topology.follow(server, server.of)
  elseif is_empty then
    for _, follower in ipairs({ unpack(server.followers) }) do
      topology.follow(follower, server)
    end
  end
end

-- ---------------------------------------------------------------------------------------- WAIT --

local function count_behind(server, offset, now_ms)
  local n = 0
  for _, follower in ipairs(server.followers) do
    topology.catch_up(follower, now_ms)
    n = n + (follower.applied >= offset and 1 or 0)
  end
  return n
end

local function wait(server, clock)
  return function(_, conn, argv)
    local wanted, timeout = tonumber(argv[2]), tonumber(argv[3])
    if server.of then
      return nil, 'ERR WAIT cannot be used with replica instances.'
    end
    if topology.commit(server, clock()) then
      conn.wrote = server.offset
    end
    local n = count_behind(server, conn.wrote or 0, clock())
    if n < wanted then
      conn:wait(timeout > 0 and server.world.clock.ms + timeout or nil, n)
      conn.wanted = wanted
      server.waiting = server.waiting or {}
      server.waiting[#server.waiting + 1] = conn
    end
    return n
  end
end

---Those who wait for replicas are answered when enough have it.
function topology.wake(server, now_ms)
  local left = {}
  for _, conn in ipairs(server.waiting or {}) do
    local n = count_behind(server, conn.wrote or 0, now_ms)
    if conn.waits and n >= conn.wanted then
      conn:answer(n)
    elseif conn.waits then
      conn.waits.reply = n
      left[#left + 1] = conn
    end
  end
  server.waiting = #left > 0 and left or nil
end

---When something is to be done for those who wait, in the time of `now_ms`; nil: nobody does.
function topology.due_ms(server)
  if not server.waiting then
    return nil
  end
  local due = server.front:due_ms()
  due = due and due - server.start
  for _, follower in ipairs(server.followers) do
    local first = follower.queue[1]
    if first and (not due or first.due < due) then
      due = first.due
    end
  end
  return due
end

function topology.commands(server, clock)
  return { WAIT = { arity = 3, flags = 'noscript', serve = wait(server, clock) } }
end

-- ----------------------------------------------------------------------------------- sentinels --

local UNKNOWN = 'ERR No such master with that name'

---@param server table whose `views` say of each master where it is, by the last fail-over that was heard of
function topology.sentinel_commands(server)
  return { SENTINEL = { arity = -2, subcommands = {
    ['GET-MASTER-ADDR-BY-NAME'] = { arity = 3, serve = function(_, _, argv)
      local view = server.views[argv[3]]
      return view and { HOST, tostring(view.port) } or require('latchkey.mock.resp').NULL_ARRAY
    end },
    MASTER = { arity = 3, serve = function(_, _, argv)
      local view = server.views[argv[3]]
      if not view then
        return nil, UNKNOWN
      end
      return { 'name', argv[3], 'ip', HOST, 'port', tostring(view.port), 'flags', 'master',
        'config-epoch', tostring(view.epoch) }
    end },
  } } }
end

---A sentinel hears of a fail-over, and tells who listens.
function topology.hear(server, name, port, epoch)
  local old = server.views[name]
  server.views[name] = { port = port, epoch = epoch }
  if old then
    server.front.channels:tell({ verb = 'PUBLISH', channel = '+switch-master',
      message = ('%s %s %d %s %d'):format(name, HOST, old.port, HOST, port) })
  end
end

return topology
