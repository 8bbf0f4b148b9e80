-- SPDX-License-Identifier: Apache-2.0
-- Replays what a client wrote of itself (docs/reference/trace.md) against the models that the
-- checker explores: each call that it sent must be one that the model sends there, each deadline no
-- later than the model's, each end one that the answers allow.
local cjson = require('cjson')

local Client = require('checker.client')
local Server = require('checker.server')
local parts = require('checker.parts')

local trace = {}

local KINDS = { lock = 'lock', mutex = 'mutex', fenced = 'fenced', read = 'rw', write = 'rw',
  fair = 'fair' }
local ROLE = { read = 'reader', write = 'writer' }
local STATUS = { ok = 'LK_OK', lost = 'LK_LOST', unsure = 'LK_UNSURE' }
local SLACK_MS = 2

local Player = {}
Player.__index = Player

local function new_player(event, server)
  local kind = event.lock:match('^(%a+):')
  local model = KINDS[kind] and require('checker.models.' .. KINDS[kind])
  if not model then
    return nil
  end
  local name = ROLE[kind] or 'taker'
  local player = setmetatable({ role = model.roles[name], data = Client.new(name), calls = {},
    said = {}, context = { server = server, limits = { levels = 1e6, renewals = math.huge,
      handover = true, rounds = math.huge, works = 0, recheck = 30000 } } }, Player)
  player.data.rounds = math.huge
  return player
end

-- A step of the model at this moment, on a copy.
function Player:try(now_ms, serial, step)
  local c = Client.draft(self.data, self.context, serial or self.data.serial + 1, now_ms)
  step(c, self.role)
  local data, said = c:finish()
  return { data = data, said = said }
end

function Player:take(result)
  self.data = result.data
  for _, word in ipairs(result.said) do
    self.said[word.what] = word.status
  end
end

local function same_arguments(call, event, uuid)
  if call.script ~= event.script or #call.args ~= #event.args then
    return false
  end
  for i, value in ipairs(call.args) do
    local actual = event.args[i]:gsub('lk%-' .. uuid:gsub('%p', '%%%0'), 'lk-@')
    if tostring(value) ~= actual and not actual:find('redis', 1, true)
      and not actual:find('latchkey', 1, true) then
      return false
    end
  end
  return true
end

local function unsent(data, calls)
  for _, call in ipairs(data.pipe) do
    local known = false
    for _, number in ipairs(parts.sorted_names(calls)) do
      known = known or calls[number] == call.role .. call.script .. table.concat(call.args, ' ')
    end
    if not known and call.script ~= 'SUBSCRIBE' then
      return call
    end
  end
end

-- What the model could do now that sends something.
function Player:ways(now_ms)
  local list = { function() end }
  local c = Client.draft(self.data, self.context, 0, now_ms)
  for _, name in ipairs(self.role.choices(c)) do
    list[#list + 1] = function(draft, role)
      role.act[name](draft)
    end
  end
  for _, name in ipairs(parts.sorted_names(self.data.timers)) do
    local early = name == 'wake' and self.context.limits.recheck / 4 or 0
    if self.role.due[name] and self.data.timers[name] <= now_ms + SLACK_MS + early then
      list[#list + 1] = function(draft, role)
        draft.timers[name] = nil
        role.due[name](draft)
      end
    end
  end
  if self.data.poked and self.data.pc == 'sleep' then
    list[#list + 1] = function(draft, role)
      draft.poked = nil
      role.message(draft, true)
    end
  end
  return list
end

local on = {}

function on.begin(self, event)
  local limits = self.context.limits
  limits.lease = event.lease_ms or limits.lease
  limits.third = limits.lease and math.floor(limits.lease / 3)
  limits.drift = event.drift_ms or limits.drift
  self.said = {}
end

function on.sent(self, event)
  if event.copy > 1 then
    for _, call in ipairs(self.data.pipe) do
      if self.calls[event.call] == call.role .. call.script .. table.concat(call.args, ' ') then
        call.copies, call.sent = event.copy, event.t / 1000
        return
      end
    end
    return 'another copy of a call that is not under way'
  end
  local serial
  for _, text in ipairs(event.args) do
    serial = serial or tonumber(text:match('^lk%-.*:(%d+)'))
  end
  for _, way in ipairs(self:ways(event.t / 1000)) do
    local result = self:try(event.t / 1000, serial, way)
    local call = unsent(result.data, self.calls)
    if call and same_arguments(call, event, event.client) then
      self:take(result)
      self.calls[event.call] = call.role .. call.script .. table.concat(call.args, ' ')
      return
    end
  end
  return ('the model sends no %s %s in the state "%s"'):format(event.script,
    table.concat(event.args, ' '), self.data.pc)
end

local function take_call(c, text, script)
  for i, call in ipairs(c.pipe) do
    if text == call.role .. call.script .. table.concat(call.args, ' ')
      or script and call.script == script then
      return table.remove(c.pipe, i)
    end
  end
end

function on.replied(self, event)
  local text = self.calls[event.call]
  self.calls[event.call] = nil
  if not text then
    return 'a reply to a call that is not under way'
  end
  self:take(self:try(event.t / 1000, nil, function(c, role)
    local call = take_call(c, text)
    role.reply[call.role](c, event.reply, call)
  end))
end

function on.unanswered(self, event)
  local text = self.calls[event.call]
  self.calls[event.call] = nil
  self:take(self:try(event.t / 1000, nil, function(c, role)
    local call = take_call(c, text)
    role.unanswered[call.role](c, call)
  end))
end

function on.listening(self, event)
  self:take(self:try(event.t / 1000, nil, function(c, role)
    local call = take_call(c, nil, 'SUBSCRIBE')
    if call then
      c.listens[call.args[1]] = true
      role.reply.listen(c, {}, call)
    else
      c.poked = true
    end
  end))
end

function on.message(self)
  self.data.poked = true
end

function on.deadline(self, event)
  local allowed = self.data.deadline
  if not allowed then
    return 'a deadline, and the model holds nothing'
  elseif event['until'] / 1000 > allowed + 1 then
    return ('believes until %d us, and the model until %d'):format(event['until'], allowed * 1000)
  end
end

on['end'] = function(self, event)
  local said = self.said.release
  if event.op == 'acquire' and event.status == 'LK_OK' and self.data.pc ~= 'held' then
    return ('acquire ended well, and the model is in the state "%s"'):format(self.data.pc)
  elseif event.op == 'release' and event.status == 'LK_OK' and said and STATUS[said] ~= 'LK_OK' then
    return ('release ended well, and the model says %s'):format(STATUS[said])
  end
end

-- Renewals, undoing and messages have no caller: they concern whoever has the owner, or all.
local function concerned(players, event)
  local id = ('%s %s'):format(event.client, event.lock or '')
  if event.caller then
    return { players[id .. ' ' .. event.caller] }
  end
  local list = {}
  for _, name in ipairs(parts.sorted_names(players)) do
    local player = players[name]
    local is_call = event.call and (player.calls[event.call] or event.e == 'sent'
      and player.data.owner and table.concat(event.args, ' '):find(
        ':' .. player.data.serial, 1, true))
    if name:sub(1, #id) == id and (not event.call or is_call) then
      list[#list + 1] = player
    end
  end
  return list
end

---@param lines fun(): string|nil
---@param scripts string
---@return table result { steps, finding = { line, message } }
function trace.check(lines, scripts)
  local server = Server.new({ scripts = scripts, pool = parts.pool(), memo = true })
  local players, result, number = {}, { steps = 0 }, 0
  for line in lines do
    number = number + 1
    local good, event = pcall(cjson.decode, line)
    if not good or type(event) ~= 'table' or not event.e then
      result.finding = { line = number, message = 'no event: ' .. line:sub(1, 60) }
      return result
    end
    local id = ('%s %s %s'):format(event.client, event.lock or '', event.caller or '')
    if event.e == 'begin' and not players[id] then
      players[id] = new_player(event, server)
    end
    for _, player in ipairs(on[event.e] and concerned(players, event) or {}) do
      local message = on[event.e](player, event)
      if message then
        result.finding = { line = number, message = message }
        return result
      end
    end
    result.steps = result.steps + 1
  end
  return result
end

---`latchkey check --trace FILE`.
---@return integer exit code
function trace.command(file, ctx, scripts)
  local handle, why = io.open(file)
  if not handle then
    return ctx:misuse(('--trace %s'):format(why))
  end
  local result = trace.check(handle:lines(), scripts)
  handle:close()
  local finding = result.finding
  ctx:result({ steps = result.steps, finding = finding }, finding
    and ('%s:%d: the model does not allow this: %s\n'):format(file, finding.line, finding.message)
    or ('%d steps, all of which the model allows\n'):format(result.steps))
  return finding and 1 or 0
end

return trace
