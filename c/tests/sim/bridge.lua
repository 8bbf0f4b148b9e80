-- SPDX-License-Identifier: Apache-2.0
-- Servers of the simulator: mocks behind the protocol. What is called from C takes the server's number
-- and its time in milliseconds first.
package.path = HOME .. '/tools/?.lua;' .. HOME .. '/tools/?/init.lua;' .. HOME
  .. '/c/tests/sim/?.lua;' .. package.path

-- The mock's compiled code is more than is kept by default; what is full is thrown away as a whole.
jit.opt.start('maxtrace=20000', 'maxmcode=32768', 'sizemcode=256')

local Front = require('latchkey.mock.front')
local World = require('latchkey.mock.world')
local catalog = require('latchkey.script.catalog')
local cluster = require('cluster')
local copies = require('copies')
local dispatch = require('latchkey.mock.dispatch')
local functions = require('latchkey.bundle.functions')
local told = require('told')
local topology = require('topology')
local warm = require('warm')

-- No script of these worlds is endless.
debug.sethook = function() end -- luacheck: ignore 122
collectgarbage('setpause', 400)

local scripts

-- The scripts of a folder are read once, for all worlds of a process.
function bridge_know(folder)
  local world = World.new({ strict = false })
  scripts = catalog.read(folder)
  for _, script in ipairs(scripts) do
    world.library:load(script.source)
  end
end

-- As functions, too: few worlds have any.
function bridge_warm()
  local world = World.new({ strict = false })
  for _, script in ipairs(scripts) do
    world.functions:load(assert(functions.library(script)), true)
  end
  warm(scripts)
end

local servers = {}

-- The mock's clock begins at some date of its own; a server's goes wherever a fault puts it.
local function at(number, ms)
  local server = servers[number]
  server.world.clock.ms = server.start + ms
  server.now_ms = ms
  return server
end

-- What stands before a command: who remembers it, in a cluster who refuses it, and a story.
local function gate_of(number, server)
  local tell = story_of_server and told.command(number) or nil
  local gate = server.cluster and cluster.gate(server) or function(_, conn, command, argv)
    copies.note(server.calls, server.world, conn, command, argv)
  end
  return tell and function(...)
    tell(...)
    return gate(...)
  end or gate
end

local function new_front(number, server)
  local commands
  if server.views then
    commands = topology.sentinel_commands(server)
  elseif server.offset then
    commands = topology.commands(server, function()
      return server.now_ms
    end)
  end
  if server.cluster then
    cluster.add_commands(server, commands)
  end
  server.front = Front.new({ world = server.world, control = false, journal = 0,
    commands = commands, gate = gate_of(number, server) })
  if server.cluster then
    cluster.connect(server)
  end
end

local function new_server(number, ms)
  local world = World.new({ scripts = HOME .. '/scripts', strict = false, time = 'frozen' })
  servers[number] = { world = world, start = world:now_ms() - ms, now_ms = ms, conns = {},
    calls = copies.new() }
  if story_of_server then
    told.follow(servers[number])
  end
  return servers[number]
end

function bridge_new(number, ms)
  local server = new_server(number, ms)
  new_front(number, server)
end

local clusters = {}

function bridge_new_cluster(number, _, shards, old, no_host, whole)
  clusters[number] = cluster.new(shards, { old = old, no_host = no_host, whole = whole })
end

-- One of several that have the same data; of_cluster: nil, or the cluster of which this is a shard.
function bridge_new_member(number, ms, master, of_cluster, shard, stride)
  local server = new_server(number, ms)
  topology.prepare(server)
  if of_cluster then
    cluster.join(clusters[of_cluster], server, number, of_cluster, shard, stride)
  end
  new_front(number, server)
  if master ~= number then
    topology.follow(server, servers[master])
  end
end

function bridge_new_sentinel(number, ms)
  local server = new_server(number, ms)
  server.views = {}
  new_front(number, server)
end

local function add_outputs(out, n, server, outputs)
  for _, output in ipairs(outputs) do
    local conn = output.conn
    out[n + 1], out[n + 2], out[n + 3] = conn.number, output.bytes, output.close
    n = n + 3
    if output.close then
      server.conns[conn.number] = nil
    end
  end
  return n
end

-- What goes out: for each connection its number, its bytes, and whether it ends behind them. One
-- server's messages may be heard at the others of its cluster.
local function flat(server, outputs)
  local out = {}
  local n = add_outputs(out, 0, server, outputs)
  for _, other in ipairs(server.cluster and server.cluster.members or {}) do
    if other ~= server then
      n = add_outputs(out, n, other, other.front:take())
    end
  end
  return unpack(out, 1, n)
end

-- is_orphan: the client closed the connection before the server read this.
function bridge_hear(number, ms, conn_number, bytes, is_orphan)
  local server = at(number, ms)
  local conn = server.conns[conn_number]
  if not conn then
    conn = server.front:connect()
    conn.number = conn_number
    server.conns[conn_number] = conn
    if server.offset then
      topology.note_writes(server, conn)
    end
  end
  conn.is_orphan = is_orphan
  local outputs = conn:feed(bytes)
  if story_of_server then
    told.keys(server, number)
  end
  return flat(server, outputs)
end

function bridge_listens(number, _, conn_number)
  return servers[number].conns[conn_number]:count('channel') > 0
end

-- When it has to be woken; nothing: not at all.
function bridge_due(number)
  return servers[number].offset and topology.due_ms(servers[number]) or -1
end

function bridge_wake(number, ms)
  local server = at(number, ms)
  topology.wake(server, ms)
  return flat(server, server.front:tick())
end

function bridge_follow(number, ms, master)
  topology.follow(at(number, ms), servers[master])
end

function bridge_cut_off(number, ms)
  topology.cut_off(at(number, ms), ms)
end

function bridge_promote(number, ms)
  return topology.promote(at(number, ms), ms)
end

function bridge_lag(number, ms, lag_ms)
  at(number, ms).lag_ms = lag_ms
end

function bridge_hear_of(number, ms, name, port, epoch)
  local server = at(number, ms)
  topology.hear(server, name, port, epoch)
  return flat(server, server.front:take())
end

-- Who serves a shard of a cluster, and who has a key.
local function masters_of(self, ...)
  local masters = {}
  for i = 0, self.shards - 1 do
    masters[i] = servers[select(i + 1, ...)]
  end
  return masters
end

function bridge_find(number, _, key, ...)
  return cluster.find(clusters[number], masters_of(clusters[number], ...), key).number
end

-- In a cluster a copy may go another way, elsewhere only on a connection that was given up.
function bridge_older_is_last(number, _, key, owner)
  local of_cluster = servers[number].cluster
  return copies.older_is_last((of_cluster or servers[number]).calls, key, owner, not of_cluster)
end

-- The slot, and the shards that it leaves and comes to; -1: none was asked for yet.
function bridge_begin_move(number, _, pick, by, ...)
  local self = clusters[number]
  local slot = cluster.begin_move(self, masters_of(self, ...), pick, by)
  if not slot then
    return -1, 0, 0
  end
  return slot, self.move.from.number, self.move.to.number
end

-- true: there is another.
function bridge_move_key(number, ms)
  local move = clusters[number].move
  at(move.from.number, ms)
  at(move.to.number, ms)
  local moved = cluster.move_key(clusters[number])
  topology.commit(move.from, ms)
  topology.commit(move.to, ms, true)
  return moved
end

function bridge_hand_over(number, _, serial)
  local self = clusters[number]
  local move = self.move
  cluster.hand_over(self, serial)
  return move.shard
end

function bridge_hear_of_slot(number, ms, slot, shard, serial)
  local server = at(number, ms)
  cluster.hear_of_slot(server, slot, shard, serial)
  return flat(server, server.front:take())
end

function bridge_hear_of_master(number, ms, master, serial)
  local server = at(number, ms)
  cluster.hear_of_master(server, servers[master].shard, master, serial)
  return flat(server, server.front:take())
end

function bridge_hear_all(number, ms, from)
  local server = at(number, ms)
  cluster.hear_all(server, servers[from])
  return flat(server, server.front:take())
end

function bridge_gone(number, ms, conn_number)
  local server = at(number, ms)
  local conn = server.conns[conn_number]
  if conn then
    server.conns[conn_number] = nil
    conn:close()
  end
end

function bridge_refuse(number, ms, code)
  local server = at(number, ms)
  server.front.faults:refuse(code or nil)
  if server.of then
    server.world:set_readonly(true)
  end
end

function bridge_lose_reply(number, ms, how)
  at(number, ms).front.faults:lose(1, how)
end

function bridge_flush(number, ms)
  at(number, ms).world:script_flush()
end

-- Its connections are gone already.
function bridge_restart(number, ms, empty)
  local server = at(number, ms)
  server.world:script_flush()
  if empty then
    server.world.store:replace({})
    server.world.functions:flush()
  end
  new_front(number, server)
  server.conns = {}
  server.waiting = nil
  if server.offset then
    topology.restarted(server, empty)
  end
end

-- By the world's own hand: no state of the server refuses it, and nobody is told.
function bridge_command(number, ms, ...)
  local world = at(number, ms).world
  local full, replica, broken_disk = world.full, world.replica, world.broken_disk
  world.full, world.replica, world.broken_disk = false, false, false
  local _, err = dispatch.from_client(world, { ... })
  assert(not err, err)
  world.full, world.replica, world.broken_disk = full, replica, broken_disk
  world:messages()
  if servers[number].offset then
    topology.commit(servers[number], ms)
  end
  if story_of_server then
    told.keys(servers[number], number)
  end
end

-- Of a slot that is on its way a key may be with either.
local function record_of(number, ms, key)
  local server = at(number, ms)
  local world = server.world
  world:begin()
  local record, move = world.store:get(key), server.cluster and server.cluster.move
  if not record and move and (move.from == server or move.to == server) then
    local other = at((move.from == server and move.to or move.from).number, ms).world
    other:begin()
    record = other.store:get(key)
  end
  return record, world
end

local function field_of(value, name)
  for i = 1, #value, 2 do
    if value[i] == name then
      return value[i + 1]
    end
  end
end

-- A reader's count and lease stand in a key of its own.
local function reader(number, ms, key, owner)
  local level = record_of(number, ms, ('{%s}:%s:rwlock_timeout:1'):format(key, owner))
  return level and tonumber(level.value) or 0, level
end

function bridge_look(number, ms, key, owner)
  local record, world = record_of(number, ms, key)
  local count = 0
  if record and record.type == 'hash' then
    count = tonumber(field_of(record.value, owner) or 0) or 0
    if count > 0 and field_of(record.value, 'mode') and not owner:find(':write$') then
      count, record = reader(number, ms, key, owner)
    end
  elseif record and record.type == 'string' then
    count = record.value == owner and 1 or 0
  end
  if count == 0 then
    return 0, 0
  end
  return count, record.expires_at and record.expires_at - world:now_ms() or -1
end

-- Who has a lock that one owner has at a time.
function bridge_holder(number, ms, key)
  local record = record_of(number, ms, key)
  return record and record.type == 'hash' and record.value[1] or ''
end

function bridge_has(number, ms, key)
  return record_of(number, ms, key) ~= nil
end

function bridge_number(number, ms, key)
  local record = record_of(number, ms, key)
  return record and record.type == 'string' and tonumber(record.value) or 0
end

function bridge_left(number, ms, longer)
  local world = at(number, ms).world
  if servers[number].of then
    topology.catch_up(servers[number], math.huge)
  end
  world:begin()
  local left = {}
  for _, name in ipairs(world.store:names()) do
    local record = world.store:get(name)
    if not record.expires_at or record.expires_at - world:now_ms() > longer then
      left[#left + 1] = name
    end
  end
  return table.concat(left, '\n')
end
