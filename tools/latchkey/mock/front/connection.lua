-- SPDX-License-Identifier: Apache-2.0
-- One client's connection: bytes in, commands in their order, bytes out.
local execute = require('latchkey.mock.front.execute')
local resp = require('latchkey.mock.resp')

local concat = table.concat

local Connection = {}
Connection.__index = Connection

---@param front table
---@param id integer
---@param address? string
function Connection.new(front, id, address)
  local now = front:now_ms()
  local conn = setmetatable({
    front = front, id = id, address = address or ('mock:%d'):format(id), name = '',
    began_ms = now, last_ms = now, parser = resp.parser(), version = 2, user = 'default',
    authenticated = not front.password, out = {}, out_n = 0, held = {}, heard = {},
    is_touched = false, rests = false, is_closed = false, ends = false,
    reply_off = false, skips = false, is_mute = false,
  }, Connection)
  return conn
end

---Bytes from the client. Commands that wait, wait; those behind one are kept.
---@param bytes string
---@return { conn: table, bytes: string, close: boolean }[] for this connection and for others
function Connection:feed(bytes)
  if not self.is_closed and not self.ends then
    self.parser:append(bytes)
    self:go_on()
  end
  return self.front:take()
end

-- Runs commands as long as there are some and none of them waits.
function Connection:go_on()
  local front, parser = self.front, self.parser
  while not (self.waits or self.ends or self.is_closed) do
    local argv, wrong = parser:next(self.authenticated)
    if argv then
      if argv[1] then
        execute.run(front, self, argv)
      end
    elseif wrong then
      self:send(resp.error('ERR Protocol error: ' .. wrong))
      return self:finish()
    else
      return
    end
  end
end

local function touch(self)
  if not self.is_touched then
    self.is_touched = true
    local touched = self.front.touched
    touched[#touched + 1] = self
  end
end

local function rest(self)
  if not self.rests then
    self.rests = true
    local resting = self.front.resting
    resting[#resting + 1] = self
  end
end

---Bytes to the client, at once or when a delay that was asked for is over.
---@param bytes string
---@param is_control? boolean is not delayed itself
function Connection:send(bytes, is_control)
  if self.is_closed or self.is_mute then
    return
  elseif self.in_transaction then
    table.insert(self.in_transaction, bytes)
    return
  end
  local delay, held = is_control and 0 or self.front.faults.delay_ms, self.held
  if delay > 0 or #held > 0 then
    local due = self.front:now_ms() + delay
    if #held > 0 and held[#held].due > due then
      due = held[#held].due
    end
    held[#held + 1] = { due = due, bytes = bytes }
    return rest(self)
  end
  self.out_n = self.out_n + 1
  self.out[self.out_n] = bytes
  touch(self)
end

---The connection ends behind what has been sent; nothing more is read from it.
function Connection:finish()
  self.ends = true
  if #self.held == 0 then
    self:cut()
  else
    self.front:forget(self)
  end
end

---The connection ends now, and what it has not been sent yet is lost.
function Connection:kill()
  self.out, self.out_n = {}, 0
  self:cut()
end

-- The connection ends now: whatever is still held back is lost.
function Connection:cut()
  if not self.is_closed then
    self:close()
    touch(self)
  end
end

---The client has gone. Nothing is to be sent.
function Connection:close()
  self.ends, self.is_closed, self.waits, self.held = true, true, nil, {}
  self.front:forget(self)
end

-- What `front:take` hands out.
function Connection:take()
  local bytes = self.out_n == 1 and self.out[1] or concat(self.out, '', 1, self.out_n)
  self.out, self.out_n, self.is_touched = {}, 0, false
  return { conn = self, bytes = bytes, close = self.is_closed }
end

---Nothing more is read until the time has come, or `answer` is called.
---@param due_ms integer|nil the world's time; nil: only `answer` ends it
---@param reply any what is answered then
function Connection:wait(due_ms, reply)
  self.waits = { due = due_ms, reply = reply }
  rest(self)
end

---Ends the waiting with this reply; what has come meanwhile is done.
---@param reply any
function Connection:answer(reply)
  if self.waits then
    self.waits = nil
    execute.answer(self, resp.encode(reply, self.version))
    self:go_on()
  end
end

function Connection:due_ms()
  local waits, held = self.waits and self.waits.due, self.held[1] and self.held[1].due
  return waits and held and math.min(waits, held) or waits or held
end

-- Does what is due; rests again if something is left.
function Connection:wake()
  local now, held, n = self.front:now_ms(), self.held, 0
  while held[n + 1] and held[n + 1].due <= now do
    n = n + 1
    self.out_n = self.out_n + 1
    self.out[self.out_n] = held[n].bytes
    touch(self)
  end
  if n > 0 then
    local left = {}
    for i = n + 1, #held do
      left[i - n] = held[i]
    end
    self.held = left
  end
  if self.waits and self.waits.due and self.waits.due <= now then
    self:answer(self.waits.reply)
  end
  if self.ends and #self.held == 0 then
    self:cut()
  elseif self.waits or #self.held > 0 then
    rest(self)
  end
end

---How many channels, patterns and sharded channels it hears.
---@param kind string as in mock.front.channels
function Connection:count(kind)
  local heard = self.heard[kind]
  return heard and #heard or 0
end

---Does it hear messages in the older protocol, where little else can be said?
function Connection:is_subscriber()
  return self:count('channel') + self:count('pattern') + self:count('shard') > 0
end

return Connection
