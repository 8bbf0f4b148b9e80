-- SPDX-License-Identifier: Apache-2.0
-- One acquire of a traced client, and the hold that it may become: a client of the model
-- (checker.client), led along the events. What the library does and when is its own; whether the
-- model does it there, with these arguments, until then, is looked at here. Each `on` function
-- answers what is wrong with an event, or nothing.
local Client = require('latchkey.checker.client')
local events = require('latchkey.checker.events')
local taker = require('latchkey.checker.roles.taker')
local words = require('latchkey.checker.words')
local names = require('latchkey.script.names')
local parts = require('latchkey.checker.parts')
local sends = require('latchkey.checker.trace.sends')

local Follower = {}
Follower.__index = Follower

local KINDS = {
  lock = { 'lock', 'taker' }, mutex = { 'mutex', 'taker' }, fenced = { 'fenced', 'taker' },
  fair = { 'fair', 'taker' }, read = { 'rw', 'reader' }, write = { 'rw', 'writer' },
}
local RETRY_PART, RETRY_MIN_MS, RETRY_MAX_MS = 12, 5, 1000
-- Who begins so soon after a channel is lost may still have taken it for heard.
local NEWS_MS = 20
-- The library's choice, or the server's: not the model's.
local FREE = { heartbeat = true, wait = true, client = true, publish = true }

local function limits_of(event, recheck_ms)
  return { lease = event.lease_ms, third = math.floor(event.lease_ms / 3), drift = event.drift_ms,
    recheck = recheck_ms, levels = math.huge, rounds = math.huge, works = 0, handover = true,
    renewals = event.renew == 1 and math.huge or 0, silent = true }
end

local function idle(role)
  local data = Client.new(role)
  data.rounds, data.works = math.huge, 0
  return data
end

---@param event table `begin` of an acquire
---@param about { server: table, recheck_ms: number, heard: table, deaf: table } which channels are
---  heard, and since when (ms) those that were are not
---@return table|nil follower nil: there is no model of this kind
function Follower.new(event, about)
  local kind, name = event.lock:match('^(%a+):(.*)$')
  local known = KINDS[kind]
  if not known then
    return nil
  end
  local role = words.family(known[1]).roles[known[2]]
  local f = setmetatable({ kind = kind, name = name, lock = event.lock, caller = event.caller,
    client = event.client, owner = event.owner, role = role, row = role.row, server = about.server,
    limits = limits_of(event, about.recheck_ms), recheck_ms = about.recheck_ms,
    role_name = known[2], poked = 0, acted = 0, owed = {}, began_ms = event.t / 1000,
    heard = about.heard, deaf = about.deaf, deaf_looks = 0 }, Follower)
  f.channel = f:formed(role.row.release, 'channel')
  f.data = idle(known[2])
  return f
end

---The name that a header gives a key or channel of this lock.
function Follower:formed(script, field)
  for _, entry in ipairs(self.server:header(script).argv) do
    if entry.name == field then
      return names.form(entry.form, self.name, {})
    end
  end
end

---Is this the channel on which it waits? That of a fair lock ends with its client's name.
function Follower:listens_to(channel)
  return channel == self.channel or self.kind == 'fair'
    and channel:sub(1, #self.channel + 1) == self.channel .. ':'
end

---Is this a script of a hold's life?
function Follower.knows(script)
  for _, kind in ipairs(parts.sorted_names(KINDS)) do
    local row = words.family(KINDS[kind][1]).roles[KINDS[kind][2]].row
    if script == row.acquire or script == row.renew or script == row.release
      or script == row.transfer then
      return true
    end
  end
end

---What its hold was granted: of a fair lock that was given to it, a heartbeat until it renews or
---enters again.
function Follower:lease_ms()
  return self.inherited and self.limits.heartbeat or self.limits.lease
end

---Another acquire of who holds it already: its handle's lease may be another.
function Follower:begin_again(event)
  self.again = limits_of(event, self.recheck_ms)
  self.level_before = self.data.level
end

function Follower:serial()
  return tonumber(self.owner:match('^lk%-.-:(%d+)'))
end

---It goes on under another name.
function Follower:rename(owner)
  self.owner, self.owed, self.ticket = owner, {}, nil
  self.data = idle(self.role_name)
  self.inherited = nil
end

-- A step of the model, on a copy.
function Follower:try(now_ms, step, limits)
  local context = { server = self.server, limits = limits or self.limits }
  local c = Client.draft(self.data, context, self:serial(), now_ms)
  step(c, self.role)
  return c:finish()
end

function Follower:take(data, said)
  self.data = data
  for _, word in ipairs(said) do
    self.said = word.status
  end
end

function Follower:step(now_ms, step, limits)
  self:take(self:try(now_ms, step, limits))
end

-- Is this the call that the model sent last? Its channel and keys are those of this lock.
local function differs(self, call, event)
  if not call or call.script ~= event.script then
    return call and ('the model sends %s there'):format(call.script)
      or 'the model sends nothing there'
  end
  local fields = self.server:header(call.script).argv
  if #call.args ~= #event.args then
    return ('%d arguments instead of %d'):format(#event.args, #call.args)
  end
  for i, text in ipairs(event.args) do
    local field = fields[i]
    local actual = text:gsub('lk%-' .. self.client:gsub('%p', '%%%0'), 'lk-@')
    local expected = call.args[i]
    if field.form then
      expected = names.form(field.form, self.name, {})
    end
    local beside = expected == '' and actual:find('^lk%-@:')
    local free = FREE[field.name] or field.name == 'ticket' and self.again
    if actual ~= expected and not free and not beside then
      return ('%s is %s, and the model says %s'):format(field.name, actual, expected)
    end
  end
  local key = event.keys[1] or ''
  return not key:find(self.name, 1, true) and 'the key is not of this lock' or nil
end

-- The step sends this call, or the event is wrong.
function Follower:send(event, step, limits, now_ms)
  local data, said = self:try(now_ms or event.t / 1000, step, limits)
  local call = data.pipe[#data.pipe]
  local wrong = differs(self, #data.pipe > #self.data.pipe and call, event)
  if wrong then
    return wrong
  end
  call.number = event.call
  self:take(data, said)
end

function Follower:model_owner()
  return 'lk-@:' .. self:serial() .. (self.row.suffix or '')
end

---What a script is to this row; nil: nothing.
function Follower:purpose(script)
  local row = self.row
  return script == row.acquire and 'acquire' or script == row.renew and 'renew'
    or script == row.release and 'release' or script == row.wait and 'wait'
    or script == 'fair/wait_renew' and 'beat' or script == row.transfer and 'transfer'
    or script == (row.leave or 'fair/leave') and 'leave' or nil
end

---What the server refused to run did not go out again in its time: a call of the caller, or
---(renews) a renewal, which goes on beside what its caller begins and ends.
function Follower:give_up_refused(renews)
  for i = #self.data.pipe, 1, -1 do
    local call = self.data.pipe[i]
    if call and call.waits and (call.role == 'renew') == renews then
      self:on_answer({ e = 'unanswered', t = call.waits.t, call = call.number,
        copies = call.copies - 1 }, self.last)
    end
  end
end

---A new call of this hold.
function Follower:on_sent(event, line)
  local purpose = self:purpose(event.script)
  self:give_up_refused(purpose == 'renew')
  if not sends[purpose] then
    return 'the model sends no ' .. event.script
  end
  local wrong = sends[purpose](self, event)
  if purpose ~= 'renew' then
    self.acted, self.last = self.last or 0, line
  end
  return wrong
end

function Follower:on_timer(event)
  if event.timer == 'renew' then
    sends.arm(self, event.t / 1000)
  end
end

---Its channel was asked for, and may not be heard: who sleeps looks by itself.
function Follower:on_listen(event)
  local wake = self.data.timers.wake
  if self.data.pc == 'sleep' and wake then
    self.data.timers.wake = math.min(wake, event.t / 1000 + taker.deaf_last_ms)
  end
end

---The hold goes to another name of this process.
---@param heir table follower that waits
function Follower:on_transfer(event, heir, line)
  local data = self.data
  heir:give_up_refused(false)
  if not self.leaving or data.pc ~= 'held' or data.level ~= 1 or data.lost then
    return ('the model hands nothing over in the state "%s"'):format(data.pc)
  elseif heir.data.pc ~= 'sleep' and heir.data.pc ~= 'idle' then
    return ('the model hands off to nobody in the state "%s"'):format(heir.data.pc)
  end
  local kept = heir.data
  heir.data = parts.copy(data)
  heir.data.pipe = {}
  local wrong = heir:send(event, function(c, role) role.act.handover(c) end)
  heir.before, heir.last = kept, line
  self.heir, self.data, self.ends_ms = heir, idle(self.role_name), data.deadline
  self.data.pc, self.data.level = 'transfer', 0
  return wrong
end

-- A grant or a refusal, on the way back to who waits.
local function settle_transfer(self, event, call)
  local first = event.reply and event.reply[1]
  self.giver.said = first == 1 and 'ok' or first ~= -1 and 'failed'
    or call.copies > 1 and 'unsure' or 'lost'
  if first == 1 then
    self:step(event.t / 1000, function(c, role) role.reply.transfer(c, event.reply, call) end)
  elseif first == -1 then -- as it was, and nobody has it who gave it
    self.data, self.poked = self.before, math.huge
  else
    self.data = idle(self.role_name)
    self.giver.owed = { [self.giver.owner] = true, [self.owner] = true }
    self.owed[self.owner] = true
  end
end

local function find_call(self, number)
  for i, call in ipairs(self.data.pipe) do
    if call.number == number then
      return table.remove(self.data.pipe, i)
    end
  end
end

---Is this an error with which no copy ran, after which the call goes out again?
function Follower.sends_again(reply)
  local text = type(reply) == 'table' and reply.error
  return text and (text:find('^NOSCRIPT') or text:find('^MOVED') or text:find('^ASK')
    or text == 'ERR Function not found') ~= nil
end

---One more copy of a call; those that the server refused to run do not count.
function Follower:on_copy(event)
  for _, call in ipairs(self.data.pipe) do
    if call.number == event.call then
      call.copies, call.sent = event.copy - (call.refused or 0), event.t / 1000
      call.waits = nil
    end
  end
end

function Follower:on_refused(event)
  for _, call in ipairs(self.data.pipe) do
    if call.number == event.call then
      call.refused, call.waits = (call.refused or 0) + 1, event
    end
  end
end

-- The library's own pauses are not the model's.
local function correct_sleep(self, now_ms, call, wait_ms)
  local pause_ms = self.recheck_ms * 3 / 4
  if not wait_ms or self.row.polls then
    pause_ms = 0
  elseif wait_ms >= 0 then
    pause_ms = math.min(pause_ms, wait_ms + 1)
  end
  local deaf_ms = self.deaf[self.channel]
  if deaf_ms and self.began_ms <= deaf_ms + NEWS_MS then
    pause_ms = math.min(pause_ms, taker.deaf_ms(self.deaf_looks) / 2)
    self.deaf_looks = self.deaf_looks + 1
  elseif not self.heard[self.channel] then
    pause_ms = math.min(pause_ms, taker.deaf_last_ms)
  end
  if call.role == 'wait' then
    return
  elseif self.kind == 'fair' and wait_ms then
    self.data.answered, pause_ms = call.sent, 0
  end
  self.data.timers.wake = now_ms + pause_ms
end

local function correct_retry(self, now_ms)
  local pause_ms = math.min(math.max(self:lease_ms() / RETRY_PART, RETRY_MIN_MS), RETRY_MAX_MS)
  if self.data.timers.renew then
    self.data.timers.renew = now_ms + pause_ms
  end
end

-- Nobody knows what came of it; a call of which no copy went out left nothing behind.
local function unanswered(self, event, call)
  local now_ms = event.t / 1000
  local ran = event.e == 'unanswered' and event.copies > 0 or call.copies > 1
  if ran and (call.role == 'try' or call.role == 'giveback' or call.role == 'beat') then
    self.owed[self.owner] = true
  end
  if call.role == 'giveback' then
    self.data.pc = 'idle'
    return
  elseif call.role == 'try' or call.role == 'beat' or call.role == 'wait' then
    self.data.pc, self.data.stray = 'sleep', self.data.stray or ran or nil
    correct_sleep(self, now_ms, call)
    if call.role == 'wait' then
      self.data.timers.wake = now_ms -- what was planned before is out of date
    end
    return
  end
  self:step(now_ms, function(c, role) role.unanswered[call.role](c, call) end, self.again)
  if call.role == 'renew' then
    correct_retry(self, now_ms)
  elseif call.role == 'release' and self.data.pc ~= 'held' then
    self.owed[self.owner] = ran or nil
    self.data.pipe = {}
  end
end

local replies = {}

function replies.giveback(self, _, call)
  self.data.pc = 'idle'
  self.owed[self.owner] = call.copies > 1 or nil
end

function replies.wait(self, event, call)
  if event.reply[1] ~= 1 then
    self.poked = math.huge
  end
  correct_sleep(self, event.t / 1000, call, event.reply[2])
end

function replies.try(self, event, call)
  local now_ms, waits = event.t / 1000, event.reply[1] == 0
  if call.copies > 1 then
    self.owed[self.owner] = true
  end
  if event.reply[1] < 0 then
    self.data.pc = 'idle'
    return
  end
  self:step(now_ms, function(c, role)
    c.listens[c:form(self.row.release, 'channel')] = true
    role.reply[call.role](c, event.reply, call)
  end)
  if waits then
    correct_sleep(self, now_ms, call, event.reply[2])
  elseif self.data.pc == 'giveback' then
    self.owed[self.owner] = true
    self.data.pipe = {}
  end
end
replies.beat = replies.try

---A reply, or that none is waited for any more.
function Follower:on_answer(event, line)
  local call = find_call(self, event.call)
  if not call then
    return -- of a hold that was released or given away meanwhile
  end
  if call.role ~= 'renew' then
    self.last = line
  end
  local failed = event.e == 'unanswered' or type(event.reply) ~= 'table' or event.reply.error
  self.ended_before = self.data.deadline or self.ended_before
  if not failed and not events.is_listed(self.server:header(call.script), event.reply) then
    return ('this is no reply of %s'):format(call.script)
  elseif call.role == 'transfer' then
    settle_transfer(self, { t = event.t, reply = not failed and event.reply or nil }, call)
  elseif failed then
    unanswered(self, event, call)
  elseif replies[call.role] then
    replies[call.role](self, event, call)
  else
    self:step(event.t / 1000, function(c, role)
      role.reply[call.role](c, event.reply, call)
    end, self.again)
    self.inherited = self.inherited and call.role ~= 'renew' and call.role ~= 'reenter'
    if call.role == 'release' and self.data.pc ~= 'held' then
      self.data.pipe = {}
    end
  end
end

function Follower:on_deadline(event)
  local inherits = self.kind == 'fair' and self.data.pc == 'sleep' and self.ticket
  if inherits and self.limits.renewals > 0 then
    self:step(event.t / 1000, function(c, role) role.inherit(c) end)
    self.inherited = true
  end
  local allowed = self.data.deadline
  if self.data.lost then
    return
  elseif not allowed then
    return ('a deadline, and the model holds nothing in the state "%s"'):format(self.data.pc)
  elseif event['until'] / 1000 > allowed + 1 then
    return ('believes until %.0f us, and the model until %.0f us'):format(event['until'],
      allowed * 1000)
  end
end

function Follower:on_lost(event)
  local by_server = event.reason == 'taken' or event.reason == 'broken'
  local ends_ms = math.min(self.data.deadline or 0, self.ended_before or math.huge)
  if not self.data.lost and (by_server or event.t / 1000 < ends_ms - 1) then
    return ('lost (%s), and the model holds it'):format(event.reason)
  end
  local data = self.data
  data.lost = by_server and 'taken' or 'ended'
  data.deadline, data.timers.renew, data.timers['end'] = nil, nil, nil
end

---@param now_ms number of its `begin`
function Follower:begin_release(event, now_ms)
  if self.data.pc ~= 'held' or self.data.level ~= event.left + 1 then
    return ('releases to level %d, and the model has level %s in the state "%s"'):format(
      event.left, tostring(self.data.level), self.data.pc)
  end
  self.leaving, self.said, self.left = now_ms, nil, event.left
end

-- There was no connection to send it on.
local function send_in_vain(self, event)
  self:step(self.leaving, function(c, role) role.act.leave(c) end)
  unanswered(self, { e = 'unanswered', t = event.t, copies = 0 }, table.remove(self.data.pipe))
end

---@return string|nil wrong
function Follower:end_release(event)
  if not self.leaving then
    return 'a release ended that had not begun'
  end
  self:give_up_refused(false)
  if self.said == nil and self.data.lost then
    self.said = 'lost'
    self.data.level = self.left
    self.data.pc = self.left == 0 and 'idle' or 'held'
  elseif self.said == nil and event.status == 'LK_OK' then
    return 'a release ended well without a call, and the model sends one'
  elseif self.said == nil then
    send_in_vain(self, event)
  end
  self.leaving = nil
  local ended_meanwhile = self.ends_ms and event.t / 1000 >= self.ends_ms
  if event.status == 'LK_OK' and self.said ~= 'ok' then
    return ('release ended well, and the model says %s'):format(self.said)
  elseif event.status == 'LK_LOST' and self.said ~= 'lost' and not ended_meanwhile
    and not self.data.lost then
    return ('release says that the hold was lost, and the model says %s'):format(self.said)
  end
  if event.status == 'LK_LOST' and self.left > 0 and not self.data.lost then
    self.data.lost, self.data.deadline, self.data.timers.renew = 'taken', nil, nil
  end
end

---@return string|nil wrong
function Follower:end_acquire(event)
  self:give_up_refused(false)
  local good = event.status == 'LK_OK'
  if self.again then
    local counted = self.data.level == (self.level_before or 0) + 1
    self.again = nil
    if good and not counted then
      return 'a further level was taken, and the model has none'
    elseif not good then
      self.data.level = self.level_before
    end
  elseif good and self.data.pc ~= 'held' then
    return ('acquire ended well, and the model is in the state "%s"'):format(self.data.pc)
  elseif not good and self.data.pc == 'held' then
    self.owed[self.owner] = true
  end
  self.ended = good
end

return Follower
