-- SPDX-License-Identifier: Apache-2.0
-- Replays what clients wrote of themselves (docs/reference/trace.md) against the models that the
-- checker explores. This file finds out whose each event is; checker.follower, whether the model
-- allows it.
local Follower = require('latchkey.checker.trace.follower')
local Server = require('latchkey.checker.server')
local events = require('latchkey.checker.events')
local parts = require('latchkey.checker.parts')

local trace = {}

-- One client of the trace: `owners` has who lives under a name, `asks` who acquires or releases for
-- a caller of a lock, `undone` which names are released in the background.
local function new_client(event, server)
  return { server = server, recheck_ms = event.recheck_ms or 30000, owners = {}, asks = {},
    calls = {}, undone = {}, used = {}, waiting = {}, heard = {},
    deaf = {}, beats = {} }
end

local function id_of(event)
  return ('%s %s'):format(event.lock, event.caller or '')
end

local function field_of(client, event, name)
  for i, field in ipairs(client.server:header(event.script).argv) do
    if field.name == name then
      return event.args[i]
    end
  end
end

-- Whatever may have been left behind at the server has to be released in the background.
local function unpaid(client, follower)
  for _, owner in ipairs(parts.sorted_names(follower.owed)) do
    if not client.undone[owner] then
      return ('%s may be left at the server, and is not undone'):format(owner)
    end
  end
end

local function poke(client, line, chosen)
  for _, owner in ipairs(parts.sorted_names(client.waiting)) do
    local follower = client.waiting[owner]
    if chosen(follower) then
      follower.poked = line
    end
  end
end

local function forget(client, follower)
  client.waiting[follower.owner], client.owners[follower.owner] = nil, nil
end

local on = {}

local begin = {}

function begin.acquire(client, event)
  local follower = client.owners[event.owner]
  if follower then
    if follower.data.pc ~= 'held' or follower.caller ~= event.caller then
      return 'the name of another hold'
    end
    follower:begin_again(event)
  elseif client.used[event.owner] then
    return event.owner .. ' is no new name'
  else
    follower = Follower.new(event, client)
    if follower and not events.is_hold(event.owner) then
      return event.owner .. ' is no name of a hold'
    end
    client.used[event.owner] = true
    client.owners[event.owner], client.waiting[event.owner] = follower, follower
  end
  client.asks[id_of(event)] = follower
end

function begin.release(client, event)
  local follower = client.owners[event.owner]
  client.asks[id_of(event)] = follower
  return follower and follower:begin_release(event, event.t / 1000)
end

function on.begin(client, event)
  return begin[event.op](client, event)
end

function on.name(client, event)
  local follower = client.asks[id_of(event)]
  if not follower then
    return
  elseif not events.is_hold(event.owner) then
    return event.owner .. ' is no name of a hold'
  end
  local pc = follower.data.pc
  if pc == 'held' or pc == 'giveback' then
    follower.owed[follower.owner] = true
  end
  local wrong = unpaid(client, follower) or client.used[event.owner] and 'no new name'
  forget(client, follower)
  follower:rename(event.owner)
  client.used[event.owner] = true
  client.owners[event.owner], client.waiting[event.owner] = follower, follower
  return wrong
end

local function on_undo_sent(client, event, owner)
  local hold = field_of(client, event, 'hold')
  if not client.undone[owner][event.script] then
    return 'this was not to be undone'
  elseif hold and hold ~= '0' then
    return 'an undoing call that does not release all'
  end
end

-- The heartbeats of several who wait, in one call.
local function on_beats_sent(client, event)
  local known = client.beats[event.call]
  if known then
    known.sent = event.t / 1000
    return
  end
  local owners = {}
  for i = #client.server:header(event.script).argv, #event.args do
    local owner = event.args[i]
    if not client.used[owner] then
      return ('a heartbeat of %s, who never waited'):format(owner)
    end
    owners[#owners + 1] = owner
  end
  client.beats[event.call] = { sent = event.t / 1000, owners = owners }
end

-- Whoever is named in the answer looks by itself, and all do where there is none.
local function on_beats_replied(client, event, line)
  local beats, named = client.beats[event.call], {}
  local failed = type(event.reply) ~= 'table' or event.reply.error
  if Follower.sends_again(event.reply) then
    return
  end
  client.beats[event.call] = nil
  for i = 5, failed and 0 or #event.reply do
    named[event.reply[i]] = true
  end
  for place, owner in ipairs(beats.owners) do
    local follower = client.owners[owner]
    local waits = follower and follower.data.pc == 'sleep'
    if waits and (failed or named[place]) then
      follower.poked = line
    elseif waits then -- an answer to a call of its own since then says more
      follower.data.answered = math.max(follower.data.answered or 0, beats.sent)
    end
  end
end

function on.sent(client, event, line)
  local follower = client.calls[event.call]
  if event.script == 'fair/wait_renew_all' then
    return on_beats_sent(client, event)
  elseif event.copy > 1 then
    return follower and follower:on_copy(event)
  end
  local owner = field_of(client, event, 'owner')
  follower = client.owners[owner]
  local purpose = follower and follower:purpose(event.script)
  if owner and client.undone[owner] and (not follower or purpose == 'release'
    or purpose == 'leave') then
    return on_undo_sent(client, event, owner)
  elseif not purpose then
    local is_past = owner and client.used[owner] and Follower.knows(event.script)
    return is_past and ('%s of a name that is given up'):format(event.script) or nil
  elseif purpose == 'transfer' then
    local heir = client.owners[field_of(client, event, 'new_owner')]
    if not heir then
      return 'a hand-off to nobody'
    end
    client.calls[event.call], heir.giver = heir, follower
    return follower:on_transfer(event, heir, line)
  end
  client.calls[event.call] = follower
  return follower:on_sent(event, line)
end

function on.replied(client, event, line)
  if client.beats[event.call] then
    return on_beats_replied(client, event, line)
  end
  local follower = client.calls[event.call]
  if follower and Follower.sends_again(event.reply) then
    return follower:on_refused(event)
  end
  client.calls[event.call] = nil
  return follower and follower:on_answer(event, line)
end
on.unanswered = on.replied

-- Also a confirmation: what was said before it was not heard.
local function news(client, event, line)
  poke(client, line, function(follower)
    return follower:listens_to(event.channel)
  end)
end

-- If it is heard already, the next line says so.
function on.listen(client, event)
  client.heard[event.channel] = nil
  for _, owner in ipairs(parts.sorted_names(client.waiting)) do
    local follower = client.waiting[owner]
    if follower:listens_to(event.channel) then
      follower:on_listen(event)
    end
  end
end

function on.listening(client, event, line)
  client.heard[event.channel], client.deaf[event.channel] = true, nil
  news(client, event, line)
end

-- What is said from now on is missed: all look, and go on to do so while it lasts.
function on.deaf(client, event, line)
  client.heard[event.channel], client.deaf[event.channel] = nil, event.t / 1000
  news(client, event, line)
end

function on.message(client, event, line)
  local ticket = client.uuid and client.owners[('lk-%s:%s'):format(client.uuid, event.text)]
  if ticket and ticket.kind == 'fair' then
    ticket.ticket = true
  end
  news(client, event, line)
end

function on.deadline(client, event)
  local follower = client.owners[event.owner]
  return follower and follower:on_deadline(event)
end

function on.timer(client, event)
  local follower = event.owner and client.owners[event.owner]
  return follower and follower:on_timer(event)
end

function on.lost(client, event)
  local follower = client.owners[event.owner]
  return follower and follower:on_lost(event)
end

function on.undo(client, event)
  local follower = client.owners[event.owner]
  if follower and follower.ended and not follower.leaving then
    return 'undoes what its application holds'
  end
  client.undone[event.owner] = client.undone[event.owner] or {}
  client.undone[event.owner][event.script] = true
end

on['end'] = function(client, event, line)
  local follower = client.asks[id_of(event)]
  client.asks[id_of(event)] = nil
  if not follower then
    return
  elseif event.op == 'release' then
    local wrong = follower:end_release(event) or unpaid(client, follower)
    if event.status == 'LK_LOST' or event.status == 'LK_UNSURE' then -- it may be free
      poke(client, line, function(other)
        return other.lock == follower.lock
      end)
    end
    if follower.left == 0 then
      forget(client, follower)
    end
    return wrong
  end
  local was_hold = follower.ended
  local wrong = follower:end_acquire(event)
  if not was_hold then
    client.waiting[follower.owner] = nil
    poke(client, line, function(other)
      return other.lock == follower.lock
    end)
  end
  if not was_hold and event.status ~= 'LK_OK' then
    wrong = wrong or unpaid(client, follower)
    forget(client, follower)
  elseif was_hold then
    follower.ended = true
  else
    follower.owed = {}
  end
  return wrong
end

local function kind_of(client, event)
  local follower = event.lock and client.asks[id_of(event)]
    or event.call and client.calls[event.call] or event.owner and client.owners[event.owner]
  return follower and follower.kind
end

-- Why an event cannot be replayed, whatever the models say.
local function malformed(server, event, wrong)
  if event and event.e == 'sent' then
    local good, why = pcall(server.header, server, event.script)
    return not good and why or nil
  end
  return wrong
end

---@param lines fun(): string|nil
---@param scripts string
---@return table result { steps, kinds = { kind -> events of its holds },
---  finding = { line, message, malformed } }; of a malformed line no model was asked
function trace.check(lines, scripts)
  local server = Server.new({ scripts = scripts, pool = parts.pool(), memo = true })
  local clients, result, number = {}, { steps = 0, kinds = {} }, 0
  local function found(message, is_malformed)
    result.finding = { line = number, message = (message:gsub('%c', '?')),
      malformed = is_malformed }
    return result
  end
  for line in lines do
    number = number + 1
    local event, wrong = events.read(line)
    wrong = malformed(server, event, wrong)
    if wrong then
      return found(wrong, true)
    end
    local client = clients[event.client] or new_client(event, server)
    clients[event.client], client.uuid = client, event.client
    local before = kind_of(client, event)
    local message = on[event.e] and on[event.e](client, event, number)
    if message then
      return found(message)
    end
    local kind = before or kind_of(client, event) or 'other'
    result.kinds[kind] = (result.kinds[kind] or 0) + 1
    result.steps = result.steps + 1
  end
  return result
end

local function counts(kinds)
  local words = {}
  for _, kind in ipairs(parts.sorted_names(kinds)) do
    words[#words + 1] = ('%s %d'):format(kind, kinds[kind])
  end
  return table.concat(words, ', ')
end

---`latchkey check --trace FILE`.
---@return integer exit code
function trace.command(file, ctx, scripts)
  local handle, why = events.open(file)
  if not handle then
    return ctx:misuse('--trace ' .. why)
  end
  local result = trace.check(handle:lines(), scripts)
  handle:close()
  local finding = result.finding
  if finding and finding.malformed then
    return ctx:misuse(('--trace %s:%d: %s'):format(file, finding.line, finding.message))
  elseif not finding and result.steps == 0 then
    return ctx:misuse(('--trace %s has no steps'):format(file))
  end
  local said = finding
    and ('%s:%d: the model does not allow this: %s\n'):format(file, finding.line, finding.message)
    or ('%d steps, all of which the model allows (%s)\n'):format(result.steps,
      counts(result.kinds))
  ctx:result({ steps = result.steps, kinds = result.kinds, finding = finding }, said)
  return finding and 1 or 0
end

return trace
