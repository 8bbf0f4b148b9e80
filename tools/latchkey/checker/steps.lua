-- SPDX-License-Identifier: Apache-2.0
-- The steps that a state allows. A state is an array: the parts of the clients, then keyspace,
-- ghost, what replicas may lack (or false), how many faults may still strike.
--
-- Steps by name, as replays have them (A is a client):
--   A:lock      a decision of its own          A.acquire   the server runs its call
--   A<          it reads the reply             A<msg       it takes note of a message
--   A@renew     its timer fires                A~release   a late copy of a call runs
--   A!crash     a fault                        +100        time passes, in ms
--                                              +100*       and what is far off stays so
--
-- Time passes only where nobody has anything to do at once: who is slow is so by a fault. What can
-- wait for any time (decisions, late calls, the end of a pause) happens at each third of a lease,
-- or in the last millisecond before it; leases that began there end there. Timers fire when they
-- are due, and what follows from them goes on at once.
local Client = require('latchkey.checker.client')
local execution = require('latchkey.checker.execution')
local faults = require('latchkey.checker.faults')
local parts = require('latchkey.checker.parts')
local passing = require('latchkey.checker.passing')
local properties = require('latchkey.checker.properties')
local replicas = require('latchkey.checker.replicas')

local run_call, run_late, with = execution.run_call, execution.run_late, execution.with
local is_occasion, pass_time = passing.is_occasion, passing.pass_time

local Steps = {}
Steps.__index = Steps

---@param options { model, server, pool, kinds, reduce, wanted, bounds, limits }
function Steps.new(options)
  local self = setmetatable(options, Steps)
  self.transitions, self.struck = 0, {}
  self.context = { limits = self.limits, server = self.server }
  local key = self.model.key
  self.lock = key and self.server:form(key[1], key[2]) or self.server.name
  self.roles = {}
  for role in self.model.clients(self.bounds.clients, self.limits):gmatch('%S+') do
    self.roles[#self.roles + 1] = role
  end
  if self.kinds['break'] and self.model.roles.operator then
    self.roles[#self.roles + 1] = 'operator'
  end
  local n = #self.roles
  self.n, self.KEYS, self.GHOST, self.BACK, self.LEFT = n, n + 1, n + 2, n + 3, n + 4
  self.PHASE = n + 5
  self.may_fail_over = self.kinds.failover
  self.client_faults = {}
  for _, kind in ipairs(faults.order) do
    if self.kinds[kind] then
      table.insert(self.client_faults, kind)
    end
  end
  return self
end

Steps.letter = execution.letter

function Steps:first()
  local state = {}
  for i, role in ipairs(self.roles) do
    local data = Client.new(role)
    data.place = self.model.distinct and i or nil
    data.beside = self.server.beside and i % 2 == 0 or nil
    local c = Client.draft(data, self.context, 1)
    self.model.roles[role].start(c)
    state[i] = self.pool:part((c:finish()))
  end
  state[self.KEYS] = self.server:keyspace(self.model.keys and self.model.keys(self) or {})
  local ghost = properties.new_ghost()
  if self.model.ghost then
    self.model.ghost(ghost, self)
  end
  state[self.GHOST] = self.pool:part(ghost)
  state[self.BACK] = self.may_fail_over and replicas.first(self) or false
  state[self.LEFT], state[self.PHASE] = self.bounds.faults, 0
  return state
end

local function look_at_calls(data, view)
  for k, call in ipairs(data.pipe) do
    if not call.reply then
      view.call, view.slow_call = k, call.slow
      break
    elseif call.slow then
      view.slow_call = true
    end
  end
  local first = data.pipe[1]
  view.reply = first and first.reply and not data.paused
  view.slow_reply = view.reply and first.slow
end

local function look_at_timers(data, view)
  for _, name in ipairs(parts.sorted_names(data.timers)) do
    local left = data.timers[name] - parts.START_MS
    if left > 0 then
      view.next_ms = math.min(view.next_ms or left, left)
    elseif not data.paused then
      table.insert(view.due, name)
    end
  end
end

local function is_urgent(data, view)
  return view.call and not view.slow_call or view.reply and not view.slow_reply
    or #view.due > 0 or view.poked and not data.paused
end

local ENDED = { done = true, dead = true, absent = true }

-- What can be said about a client's part alone, found once.
local function look(self, part)
  local data = part.data
  local role = self.model.roles[data.role]
  local c = Client.draft(data, self.context, 0)
  local awake = not data.paused and data.pc ~= 'dead'
  local takes = role.takes and role.takes(c) or data.pc == 'sleep'
  local view = { due = {}, believes = role.believes(c), poked = data.poked and takes,
    choices = awake and role.choices(c) or {} }
  look_at_calls(data, view)
  look_at_timers(data, view)
  view.urgent = is_urgent(data, view)
  view.ended = ENDED[data.pc] and #data.pipe == 0 and #data.quiet == 0
  view.patient = #view.choices > 0 or #data.late > 0 or data.paused or data.delayed
    or view.slow_call or view.slow_reply
  view.asleep = data.pc == 'sleep' and not data.paused and not view.poked
  return view
end

function Steps:view(part)
  local view = part.view
  if not view then
    view = look(self, part)
    part.view = view
  end
  return view
end

-- Above every serial of this client that any part knows: names are never used again.
local function fresh_serial(self, state, i)
  local letter = Steps.letter(i)
  local highest = parts.serial(state[i], '@')
  highest = math.max(highest, parts.serial(state[self.KEYS], letter),
    parts.serial(state[self.GHOST], letter))
  if state[self.BACK] then
    highest = math.max(highest, parts.serial(state[self.BACK], letter))
  end
  local last = state[self.n]
  if last.data.role == 'operator' and self.n ~= i then
    highest = math.max(highest, parts.serial(last, letter))
  end
  return parts.next_serial(highest)
end

---What a client does at once when something happens to it, remembered by its part: it depends on
---nothing else.
function Steps:own_step(state, i, name, step)
  local part, fresh = state[i], fresh_serial(self, state, i)
  local known = part.memo[name]
  local result = known and known[fresh]
  if not result then
    local c = Client.draft(part.data, self.context, fresh)
    step(c, self.model.roles[c.role])
    local data, said = c:finish()
    local findings = {}
    properties.said(said, function(property, message)
      findings[#findings + 1] = { property = property, message = message }
    end)
    result = { part = self.pool:part(data), findings = findings, said = said }
    known = known or {}
    known[fresh] = result
    part.memo[name] = known
  end
  return result
end

local function own(self, state, i, name, label, step, emit)
  local result = self:own_step(state, i, name, step)
  emit(label, with(state, i, result.part), result.findings[1])
end

local function read_reply(c, role)
  local call = table.remove(c.pipe, 1)
  if call.role == 'relisten' and c.pc == 'listen' and c.deaf then
    role.reply.listen(c)
  elseif call.role == 'relisten' then
    c.poked = true -- a connection made anew wakes every waiter
  else
    role.reply[call.role](c, call.reply, call)
  end
end

local function take_message(c, role)
  local message = c.poked
  c.poked, c.missed = nil, nil
  role.message(c, message)
end

local function read(self, state, i, _, emit)
  own(self, state, i, '<', Steps.letter(i) .. '<', read_reply, emit)
end

local function fire(name)
  return function(c, role)
    if name == 'quiet' then
      local call = table.remove(c.quiet, 1)
      c.timers.quiet = c.quiet[1] and c.quiet[1].due
      if call.role == 'relisten' then
        c:listen('relisten', call.args[1])
      else
        role.unanswered[call.role](c, call)
      end
    else
      if name == 'wake' then
        c.missed = nil
      end
      c.timers[name] = nil
      role.due[name](c)
    end
  end
end

local FIRE = setmetatable({}, { __index = function(list, name)
  list[name] = fire(name)
  return list[name]
end })

local function choose(name)
  return function(c, role)
    if name == 'resume' then
      c.paused = nil
    elseif name == 'message' then
      c.poked, c.delayed = c.delayed, nil
    else
      role.act[name](c)
    end
  end
end

local CHOOSE = setmetatable({}, { __index = function(list, name)
  list[name] = choose(name)
  return list[name]
end })

local function strike(kind)
  return function(c, role)
    faults.of_client[kind].strike(c, role)
  end
end

local STRIKE = setmetatable({}, { __index = function(list, name)
  list[name] = strike(name)
  return list[name]
end })

local function own_faults(self, state, i, emit)
  local part = state[i]
  local can = part.can
  if not can then
    can = {}
    local suffers = self.model.roles[part.data.role].suffers
    for _, kind in ipairs(self.client_faults) do
      if part.data.pc ~= 'dead' and not part.data.paused and part.data.role ~= 'operator'
        and (not suffers or suffers[kind]) and faults.of_client[kind].can(part.data) then
        can[#can + 1] = kind
      end
    end
    part.can = can
  end
  for _, kind in ipairs(can) do
    local result = self:own_step(state, i, '!' .. kind, STRIKE[kind])
    local new = with(state, i, result.part)
    new[self.LEFT] = state[self.LEFT] - 1
    self.struck[kind] = true
    emit(Steps.letter(i) .. '!' .. kind, new)
  end
end

-- The limit that says how far each sets the server's clock, and in which direction.
local OF_THE_CLOCK = { { 'clock', 'drift', 1 }, { 'clock-back', 'back', -1 } }

local function clock_faults(self, state, emit)
  for _, fault in ipairs(OF_THE_CLOCK) do
    local kind, limit, sign = fault[1], fault[2], fault[3]
    local gain = self.kinds[kind] and sign * self.limits[limit]
    local keys = gain and self.server:shift(state[self.KEYS], gain) or state[self.KEYS]
    if keys ~= state[self.KEYS] then
      local new = with(state, self.KEYS, keys)
      new[self.GHOST] = self.pool:shift(state[self.GHOST], gain)
      new[self.LEFT] = state[self.LEFT] - 1
      self.struck[kind] = true
      emit('!' .. kind, new)
    end
  end
end

local function shared_faults(self, state, emit)
  local left = state[self.LEFT] - 1
  local operator = state[self.n]
  if self.kinds['break'] and operator.data.pc == 'absent' then
    local result = self:own_step(state, self.n, 'appear', function(c, role)
      role.appear(c)
    end)
    local new = with(state, self.n, result.part)
    new[self.LEFT] = left
    self.struck['break'] = true
    emit(Steps.letter(self.n) .. '!break', new)
  end
  clock_faults(self, state, emit)
  if self.may_fail_over then
    replicas.fail_over(self, state, function(label, new, finding)
      new[self.LEFT] = left
      self.struck.failover = true
      emit(label, new, finding)
    end)
  end
end

local function check_quiet(self, state)
  local sleepers = {}
  for i = 1, self.n do
    if self:view(state[i]).asleep then
      sleepers[#sleepers + 1] = { letter = Steps.letter(i), data = state[i].data }
    end
  end
  local finding
  if #sleepers > 0 then
    local check = self.model.quiet or properties.quiet
    check(self.model, sleepers, state[self.KEYS], state[self.GHOST].data, self.lock,
      function(property, message)
        finding = finding or { property = property, message = message }
      end)
  end
  return finding
end

---Two clients that believe at once.
function Steps:check_belief(state)
  local first
  for i = 1, self.n do
    local believes = self:view(state[i]).believes
    if believes and first then
      return self:check_believers(state)
    end
    first = first or believes
  end
end

function Steps:check_believers(state)
  local believers, finding = {}, nil
  for i = 1, self.n do
    local mode = self:view(state[i]).believes
    if mode then
      believers[#believers + 1] = { mode = mode,
        owner = (state[i].data.owner or '?'):gsub('@', Steps.letter(i)) }
    end
  end
  properties.believed(believers, state[self.GHOST].data, function(property, message)
    finding = finding or { property = property, message = message }
  end)
  return finding
end

-- The one client whose next step need not wait for others, and that step: it runs the call that it
-- has just sent, or reads a reply upon which it sends nothing.
local function next_alone(self, state)
  for i = 1, self.n do
    if state[i].data.sending then
      return i, run_call
    end
  end
  for i = 1, self.n do
    local view = self:view(state[i])
    if view.reply and not view.slow_reply and #view.due == 0 then
      local result = self:own_step(state, i, '<', read_reply)
      if not result.part.data.sending
        and (not view.believes or self:view(result.part).believes) then
        return i, read
      end
    end
  end
end

-- Orders that lead nowhere else are left out: a client's own step is nobody else's business, so it
-- may as well come directly before the run of the call that it sends (and a fault between the two);
-- one that sends nothing may as well come at once, unless the client ceases to believe by it.
local function follow(self, label, state, finding, emit)
  self.transitions = self.transitions + 1
  if finding or not self.reduce or self.may_fail_over and state[self.LEFT] > 0 then
    return emit(label, state, finding)
  end
  local i, step = next_alone(self, state)
  if not i then
    return emit(label, state)
  end
  local function further(next_label, new, next_finding)
    follow(self, label .. ' ' .. next_label, new, next_finding, emit)
  end
  step(self, state, i, self:view(state[i]), further)
  if state[self.LEFT] > 0 then
    own_faults(self, state, i, further)
  end
end

local function client_steps(self, state, i, view, occasion, emit)
  local letter, data = Steps.letter(i), state[i].data
  if view.call and (occasion or not view.slow_call) then
    run_call(self, state, i, view, emit)
  end
  if view.reply and (occasion or not view.slow_reply) then
    read(self, state, i, view, emit)
  end
  if view.poked and not data.paused then
    own(self, state, i, 'm<', letter .. '<msg', take_message, emit)
  end
  for _, name in ipairs(view.due) do
    if name == 'end' and self.limits.renewals == math.huge
      and state[self.LEFT] == self.bounds.faults then
      emit(letter .. '@end', state, { property = 'R1',
        message = ('%s lost its hold, though nothing failed'):format(letter) })
    end
    own(self, state, i, '@' .. name, letter .. '@' .. name, FIRE[name], emit)
  end
  if not occasion then
    return
  end
  for _, name in ipairs(view.choices) do
    own(self, state, i, ':' .. name, letter .. ':' .. name, CHOOSE[name], emit)
  end
  if data.paused then
    own(self, state, i, ':resume', letter .. ':resume', CHOOSE.resume, emit)
  end
  if data.delayed then
    own(self, state, i, ':message', letter .. ':message', CHOOSE.message, emit)
  end
  if #data.late > 0 then
    run_late(self, state, i, emit)
  end
end

---Every step that the state allows, with those that follow it alone.
---@param emit fun(label: string, state: table, finding: table|nil)
---@return table|nil finding about the state itself
function Steps:each(state, emit)
  local urgent, count, occasion = false, 0, is_occasion(self, state)
  local function further(label, new, finding)
    count = count + 1
    follow(self, label, new, finding, emit)
  end
  for i = 1, self.n do
    local view = self:view(state[i])
    urgent = urgent or view.urgent
    client_steps(self, state, i, view, occasion, further)
  end
  local finding
  if not urgent then
    finding = check_quiet(self, state)
    local moves = count > 0
    if not pass_time(self, state, further) and not moves then
      finding = finding or { property = 'G6', message = 'nobody can do anything any more' }
    end
  end
  if state[self.LEFT] > 0 then
    for i = 1, self.n do
      own_faults(self, state, i, further)
    end
    shared_faults(self, state, further)
  end
  return finding
end

return Steps
