-- SPDX-License-Identifier: Apache-2.0
-- A client while it takes a step: a copy of its part that the model may change. Its data:
--   role, pc     which model, and where in it
--   pipe         calls under way, in the order in which they were sent: { role, script, args, sent,
--                copies, reply once the server has run it, slow }; SUBSCRIBE, WAIT are no scripts
--   late         copies of calls nobody waits for, which the server may still run, at any time
--   quiet        calls whose connection is silent: `due` is when their caller gives up
--   timers       name -> moment
--   sending      it has just sent something, and nobody has done anything since
--   listens      channel -> true; poked: a message came since the client last looked
--   serial       of the owner's name that it used last
--   beside       its scripts are those of the second folder
--   locks        the names that its calls are about, where that is not the one of the server
--   wrote        its connection has written since it was made, where replicas are asked about that
-- and whatever its model keeps. "lk-@" stands for the client in owners.
local domain = require('latchkey.script.domain')
local parts = require('latchkey.checker.parts')

local Client = {}
Client.__index = Client

-- What a client has only while it takes a step.
local OF_A_STEP = { _context = true, _fresh = true, _said = true, _now = true }

---@param data table
---@param context { model: table, server: table }
---@param fresh integer above every serial of this client that anything still knows
---@param now? number
function Client.draft(data, context, fresh, now)
  local c = parts.copy(data)
  c._context, c._fresh, c._said, c._now = context, fresh, {}, now or parts.START_MS
  return setmetatable(c, Client)
end

---A client as it begins.
function Client.new(role)
  return { role = role, pc = 'idle', pipe = {}, late = {}, quiet = {}, timers = {}, listens = {},
    serial = 0 }
end

---@return table data without what only the step needs
---@return table said what the client told its application: { what, status } each
function Client:finish()
  local said = self._said
  self._context, self._fresh, self._said, self._now = nil, nil, nil, nil
  return setmetatable(self, nil), said
end

function Client:now()
  return self._now
end

function Client:limit(name)
  return self._context.limits[name]
end

---@return string a name that no hold of it had, as long as the scripts of the model want one
function Client:new_owner()
  self.serial = self._fresh
  self._fresh = parts.next_serial(self._fresh)
  local owner = 'lk-@:' .. self.serial
  return owner .. ('.'):rep((self:limit('owner_bytes') or 0) - #owner)
end

---@return string the name that a header gives a channel or key
function Client:form(script, field)
  return self._context.server:form(script, field, self)
end

---@return string|nil the channel that a script publishes on, whether it takes or forms its name
function Client:channel(script)
  local server = self._context.server
  local header = server:header(script, self.beside)
  if server:field(header.argv, 'channel') or header.channels[1] then
    return self:form(script, 'channel')
  end
end

---@return integer where an argument stands among those of its script
function Client:place(script, field)
  local server = self._context.server
  local _, place = server:field(server:header(script, self.beside).argv, field)
  if place then
    return place
  end
  error(('%s has no argument "%s"'):format(script, field))
end

-- An argument of a script that is not latchkey's: what the model says, else what its type means.
local function theirs(field, values)
  local given = values[1] and values[1][field.name]
  if given ~= nil then
    return given
  end
  return field.type == 'owner' and values.owner or field.type == 'ms' and values.lease
    or values[field.name]
end

---Why a value that a model has computed is no argument, whatever its range is.
---@return string|nil wrong
function Client:cannot_send(script, name, value)
  local server = self._context.server
  local field = server:field(server:header(script, self.beside).argv, name)
  local is_table = type(value) == 'table'
  if not field then
    return nil
  elseif is_table ~= (field.many ~= nil) then
    return is_table and 'is one value, no table' or 'is a list of values'
  elseif field.kind == 'integer' and type(value) == 'number' and value % 1 ~= 0 then
    return ('is a whole number, not %s'):format(value)
  elseif type(value) == 'function' then
    return 'is a text or a number, no function'
  end
end

---Sends a call; its arguments are those of the header's fields that `values` has.
---@param role string whose reply it is
---@param values table field -> value; at 1, those that a model of other scripts has by name
---@param target? string the key of a guarded command
function Client:send(role, script, values, target)
  local args = {}
  local server = self._context.server
  for _, field in ipairs(server:header(script, self.beside).argv) do
    local value = values[field.name]
    if server.translate then
      value = theirs(field, values)
    end
    if value == nil and field.type == 'verb' then
      value = 'PUBLISH'
    elseif value == nil and field.form then
      value = self:form(script, field.name)
    end
    if field.many then
      for _, one in ipairs(value or {}) do
        args[#args + 1] = domain.text(one)
      end
    elseif value ~= nil then
      args[#args + 1] = domain.text(value)
    end
  end
  table.insert(self.pipe, { role = role, script = script, args = args, target = target,
    beside = self.beside, locks = self.locks, sent = self:now(), copies = 1 })
  self.sending = true
end

---Asks for the messages of a channel.
function Client:listen(role, channel)
  table.insert(self.pipe, { role = role, script = 'SUBSCRIBE', args = { channel },
    sent = self:now(), copies = 1 })
  self.sending = true
end

---Asks how many replicas have what this connection wrote last.
---@param role string whose reply it is
---@param ends number how long the hold that waits for it would count
function Client:wait(role, owner, ends)
  table.insert(self.pipe, { role = role, script = 'WAIT',
    args = { tostring(self:limit('min_replicas')), owner }, ends = ends, sent = self:now(),
    copies = 1 })
  self.sending = true
end

---Is it a call of a script?
function Client.is_script(call)
  return call.script:find('/', 1, true) ~= nil
end

---Says something to its application, which properties look at.
function Client:say(what, status, call, reply)
  table.insert(self._said, { what = what, status = status, script = call and call.script,
    outcome = reply and reply[1] })
end

---A key for sorting and finding late copies; blanks may stand in arguments.
local function call_text(call)
  return call.script .. '\1' .. table.concat(call.args, '\1')
end

---Leaves a copy of a call on its way.
function Client:leave_late(call)
  local copy = { script = call.script, args = call.args, target = call.target,
    beside = call.beside, locks = call.locks }
  for _, other in ipairs(self.late) do
    if call_text(other) == call_text(copy) then
      return
    end
  end
  if Client.is_script(call) then
    table.insert(self.late, copy)
    table.sort(self.late, function(a, b)
      return call_text(a) < call_text(b)
    end)
  end
end

---Stops: the process is gone, and what it sent may still arrive.
function Client:die()
  for _, call in ipairs(self.pipe) do
    if not call.reply then
      self:leave_late(call)
    end
  end
  local kept, late = Client.new(self.role), self.late
  for _, name in ipairs(parts.sorted_names(self)) do
    if not OF_A_STEP[name] then
      self[name] = kept[name]
    end
  end
  self.pc, self.late = 'dead', late
end

---The same call once more, as a new one.
function Client:send_again(call)
  table.insert(self.pipe, { role = call.role, script = call.script, args = call.args,
    target = call.target, beside = call.beside, locks = call.locks, sent = self:now(),
    copies = 1 })
  self.sending = true
end

---A call to be sent again, as one more copy.
function Client:resend(call)
  table.insert(self.pipe, { role = call.role, script = call.script, args = call.args,
    target = call.target, beside = call.beside, locks = call.locks, sent = self:now(),
    copies = call.copies + 1 })
  self.sending = true
end

return Client
