-- SPDX-License-Identifier: Apache-2.0
-- A mock world as a server that speaks the Redis protocol: connections that take and give bytes,
-- subscribers, transactions, and faults that are asked for. There is no socket in it, no clock but
-- the world's, and no chance: the same bytes in the same order give the same bytes.
--
--   local front = Front.new({ world = World.new({ strict = false, time = 'frozen' }) })
--   local conn = front:connect()
--   for _, output in ipairs(conn:feed('PING\r\n')) do
--     -- output.conn, output.bytes; output.close: the connection ends behind these bytes
--   end
--   front:advance(30000)                  -- time moves when it is told to
--   for _, output in ipairs(front:tick()) do ... end
--   conn:close()                          -- the client has gone
local Connection = require('latchkey.mock.front.connection')
local Faults = require('latchkey.mock.front.faults')
local Journal = require('latchkey.mock.front.journal')
local channels = require('latchkey.mock.front.channels')
local dispatch = require('latchkey.mock.dispatch')
local execute = require('latchkey.mock.front.execute')
local transactions = require('latchkey.mock.front.transactions')

local Front = {}
Front.__index = Front

local NOTHING = {}

---@class front.options
---@field world table of mock.world; several fronts may not share one
---@field password? string|false what AUTH asks for; none without it
---@field users? table<string, string> further users and their passwords; each may do everything
---@field commands? table further commands, or others in the place of known ones, in the form of
---  `mock.commands` with `serve(front, conn, argv)` in the place of `run`
---@field gate? fun(front: table, conn: table, command: table, argv: string[]): string|nil refuses a
---  command before it runs: MOVED, ASK, CLUSTERDOWN
---@field control? boolean may clients send MOCK? default true
---@field journal? integer how many calls are remembered for MOCK CALLS; default 1000, 0: none
---@field max_clients? integer default 10000
---@field process? table<string, string|integer> what INFO says of the process, such as
---  { process_id = 7, tcp_port = 6379 }

---@param options front.options
---@return table front
function Front.new(options)
  local world = options.world
  local self = setmetatable({
    world = world, password = options.password or false, users = options.users or {},
    gate = options.gate, max_clients = options.max_clients or 10000,
    process = options.process or {}, commands = execute.commands(options),
    connections = {}, next_id = 1, touched = {}, resting = {},
    began_ms = world.clock.ms, stats = execute.stats(),
  }, Front)
  self.channels = channels.new()
  self.faults = Faults.new(self)
  self.journal = Journal.new(options.journal or 1000)
  world.channels = self.channels
  return self
end

---A client has come. It may be refused at once: take what `front:take()` gives.
---@param address? string as CLIENT LIST shows it
---@return table conn with the methods feed and close
function Front:connect(address)
  local conn = Connection.new(self, self.next_id, address)
  self.next_id = self.next_id + 1
  self.stats.connections = self.stats.connections + 1
  self.connections[#self.connections + 1] = conn
  if #self.connections > self.max_clients then
    self.stats.rejected = self.stats.rejected + 1
    conn:send('-ERR max number of clients reached\r\n')
    conn:finish()
  end
  return conn
end

-- It is none of the server's any more.
function Front:forget(conn)
  for i, other in ipairs(self.connections) do
    if other == conn then
      table.remove(self.connections, i)
      break
    end
  end
  self.channels:leave(conn)
  transactions.unwatch(self, conn)
end

---@param id integer
---@return table|nil conn
function Front:connection(id)
  for _, conn in ipairs(self.connections) do
    if conn.id == id then
      return conn
    end
  end
end

---What is to be sent, and which connections end, in the order in which it came to be.
---@return { conn: table, bytes: string, close: boolean }[]
function Front:take()
  local touched = self.touched
  if #touched == 0 then
    return NOTHING
  end
  self.touched = {}
  local outputs = {}
  for i = 1, #touched do
    outputs[i] = touched[i]:take()
  end
  return outputs
end

---@return integer ms since 1970, as TIME tells it
function Front:now_ms()
  return self.world.clock.ms
end

---Time goes on; what was waiting for it is done by the next `tick`.
---@param ms integer
function Front:advance(ms)
  self.world:advance(ms)
end

---Time is this at least; it never goes back.
---@param ms integer
---@param beyond_us? integer what TIME says beyond that, 0 to 999
function Front:at(ms, beyond_us)
  local clock = self.world.clock
  if ms > clock.ms then
    clock.ms, clock.beyond_us = ms, beyond_us or clock.beyond_us
  elseif ms == clock.ms and beyond_us and beyond_us > clock.beyond_us then
    clock.beyond_us = beyond_us
  end
end

---The time at which `tick` has something to do; nil: not before something else happens.
---@return integer|nil ms
function Front:due_ms()
  local due
  for _, conn in ipairs(self.resting) do
    local at = conn:due_ms()
    if at and (not due or at < due) then
      due = at
    end
  end
  return due
end

---Does what the time has come for: answers of clients that wait, replies that were held back.
---@return { conn: table, bytes: string, close: boolean }[]
function Front:tick()
  self:wake()
  return self:take()
end

-- What is due is done; its bytes wait for `take`.
function Front:wake()
  local resting = self.resting
  if #resting > 0 then
    self.resting = {}
    for _, conn in ipairs(resting) do
      conn.rests = false
      conn:wake()
    end
  end
end

---The keys that a command names, as COMMAND GETKEYS would.
---@param command table
---@param argv string[]
---@return string[]
function Front.keys(command, argv)
  return execute.keys(command, argv)
end

---The command that these words are; nil: there is none.
function Front:find(argv)
  return dispatch.find(self.commands, argv)
end

return Front
