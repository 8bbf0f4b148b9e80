-- SPDX-License-Identifier: Apache-2.0
-- What happens when the server runs a call: the next keyspace, what an onlooker makes of it, the
-- reply on its way, and the messages.
local Client = require('latchkey.checker.client')
local parts = require('latchkey.checker.parts')
local properties = require('latchkey.checker.properties')
local redisson = require('latchkey.checker.redisson_calls')
local replicas = require('latchkey.checker.replicas')

local execution = {}

local LETTERS = 'ABCDEFGH'

---@return string what the i-th client is called
function execution.letter(i)
  return LETTERS:sub(i, i)
end

local function with(state, i, part)
  local new = parts.array(#state)
  for k = 1, #state do
    new[k] = state[k]
  end
  new[i] = part
  return new
end
execution.with = with

local function holders_of(self, keyspace)
  local found = keyspace.holders
  if not found then
    if self.model.holders then
      found, keyspace.has_last_ms = self.model.holders(keyspace.data, self.lock)
    end
    found = found or {}
    keyspace.holders = found
  end
  return found
end

-- Arguments that mean the same in each family; what else a call has is in `args` alone, whatever it
-- is called.
local MEANT = { 'owner', 'new_owner', 'lease', 'hold' }

local function value_of(field, text)
  return field.kind == 'integer' and tonumber(text) or text
end

-- Those of an argument of several, which is the last one.
local function values_of(field, args, first)
  local values = {}
  for i = first, #args do
    values[#values + 1] = value_of(field, args[i])
  end
  return values
end

local function event(self, before, call, letter, result)
  local header = self.server:header(call.script, call.beside)
  local verb = redisson.has(call.script) and redisson.verb(call.script)
  local e = { script = call.script, verb = verb or self.model.verbs[call.script], header = header,
    letter = letter, keys = result.keys, reply = result.reply, outcome = result.reply[1],
    before = before, after = result.after, again = result.again, messages = result.messages,
    before_holders = holders_of(self, before), after_holders = holders_of(self, result.after),
    longest = self.model.longest or math.huge, mode = 'write', limits = self.limits,
    name = self.lock, args = {}, ends_at_score = before.has_last_ms ~= nil,
    has_last_ms = before.has_last_ms or result.after.has_last_ms }
  for i, field in ipairs(header.argv) do
    local value = value_of(field, result.args[i])
    e.args[field.name] = field.many and self.model.foreign and values_of(field, result.args, i)
      or value
  end
  for _, name in ipairs(self.model.foreign and {} or MEANT) do
    e[name] = e.args[name]
  end
  e.hold = e.hold or e.verb == 'release' and (verb and e.reply[2] or 0) or nil
  if self.model.event then
    self.model.event(e)
  end
  return e
end

-- What an onlooker makes of a run: the next ghost, and findings.
local function observe(self, state, call, letter, result)
  local ghost = state[self.GHOST]
  local seen = result.seen[ghost]
  if seen then
    return seen
  end
  local findings = {}
  local function report(property, message)
    if self.wanted(property) then
      findings[#findings + 1] = { property = property, message = message, script = call.script }
    end
  end
  if result.err then
    -- No model says what a client does after an error: the run ends here, whatever is looked for.
    local property, message = result.err.property, result.err.message
    findings[1] = { property = property or 'G10', script = call.script, line = result.err.line,
      message = property and message or ('%s: %s'):format(call.script, message), ends_run = true }
    seen = { ghost = ghost, findings = findings }
  else
    local data = parts.copy(ghost.data)
    properties.executed(self.model, event(self, state[self.KEYS], call, letter, result), data,
      report)
    seen = { ghost = self.pool:part(data), findings = findings }
  end
  result.seen[ghost] = seen
  return seen
end

local function hear(self, part, letter, message)
  local name = 'm' .. letter .. message.channel .. '\1' .. message.message
  local heard = part.memo[name]
  if heard == nil then
    local channel = message.channel:gsub('lk%-' .. letter .. '%f[%W]', 'lk-@')
    heard = part
    if part.data.listens[channel] and part.data.pc ~= 'dead' then
      local role = self.model.roles[part.data.role]
      local c = Client.draft(part.data, self.context, 0)
      if role.hear then
        role.hear(c, channel, message.message)
      else
        c.poked = true
      end
      heard = self.pool:part((c:finish()))
    end
    part.memo[name] = heard
  end
  return heard
end

local function subscribe(self, state, i, k)
  local result = self:own_step(state, i, 's' .. k, function(c)
    local call = c.pipe[k]
    call.reply, c.sending = {}, nil
    c.listens[call.args[1]] = true
  end)
  return with(state, i, result.part)
end

-- The server runs a call of a client: the k-th of its pipe, or a late copy.
local function execute(self, state, i, call, answer, is_late)
  local letter = execution.letter(i)
  local result = self.server:run(state[self.KEYS], call, letter)
  local seen = observe(self, state, call, letter, result)
  local new = with(state, self.KEYS, result.after)
  if self.may_fail_over and result.wrote then
    new[self.BACK] = replicas.written(self, state, not is_late and letter)
  end
  new[self.GHOST] = seen.ghost
  if not result.err then
    new[i] = answer(result)
    for _, message in ipairs(result.messages) do
      for j = 1, self.n do
        new[j] = hear(self, new[j], execution.letter(j), message)
      end
    end
  end
  return new, seen.findings[1]
end

-- What a client makes of a reply depends on who it is where the reply has somebody's name: clients
-- whose parts are one may be told of either.
local function reply_name(result, letter)
  local name = result.reply_name
  if not name then
    name = 'x' .. parts.text(result.reply)
    result.reply_name, result.has_names = name, name:find('lk-', 1, true) ~= nil
  end
  return result.has_names and letter .. name or name
end

local function answered(self, state, i, k, letter)
  return function(result)
    local name = reply_name(result, letter)
    local part = state[i]
    local wrote = self.may_fail_over and self.limits.min_replicas
      and result.wrote or part.data.wrote
    name = wrote and name .. 'w' or name
    local known = part.memo[name]
    if not known then
      local data = parts.copy(part.data)
      data.sending, data.wrote = nil, wrote
      data.pipe[k].reply = parts.copy(result.reply)
      for place, value in ipairs(data.pipe[k].reply) do
        if type(value) == 'string' then
          data.pipe[k].reply[place] = value:gsub('lk%-' .. letter .. '%f[%W]', 'lk-@')
        end
      end
      known = self.pool:part(data)
      part.memo[name] = known
    end
    return known
  end
end

local function verb_of(call)
  return call.script:match('[^/]+$'):lower()
end

function execution.run_call(self, state, i, view, emit)
  local call = state[i].data.pipe[view.call]
  local label = execution.letter(i) .. '.' .. verb_of(call)
  if call.script == 'SUBSCRIBE' then
    return emit(label, subscribe(self, state, i, view.call))
  end
  if call.script == 'WAIT' then
    return emit(label, replicas.wait(self, state, i, view.call))
  end
  local new, finding = execute(self, state, i, call, answered(self, state, i, view.call,
    execution.letter(i)))
  emit(label, new, finding)
end

function execution.run_late(self, state, i, emit)
  local part = state[i]
  for k, call in ipairs(part.data.late) do
    local left = self:own_step(state, i, 'l' .. k, function(c)
      table.remove(c.late, k)
    end)
    local new, finding = execute(self, state, i, call, function()
      return left.part
    end, true)
    local number = #part.data.late > 1 and '#' .. k or ''
    emit(execution.letter(i) .. '~' .. verb_of(call) .. number, new, finding)
  end
end

return execution
