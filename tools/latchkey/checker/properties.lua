-- SPDX-License-Identifier: Apache-2.0
-- The promises G1 to G13, as far as they can be seen: at the run of a script, in a state, and where
-- time is about to pass. A ghost is what an onlooker knows: who was granted what, until when.
local Server = require('latchkey.checker.server')
local Strict = require('latchkey.mock.strict')
local holders = require('latchkey.checker.holders')
local parts = require('latchkey.checker.parts')

local properties = {}

properties.names = {
  G1 = 'one live owner at a time, on the server\'s time',
  G2 = 'two clients never believe at once',
  G3 = 'fencing tokens rise, and the fence admits no older one',
  G4 = 'only the owner renews or releases; a lost lock is reported',
  G5 = 'the owner\'s release frees the lock exactly when its count reaches zero',
  G6 = 'no lost wake-up',
  G7 = 'grants follow arrival',
  G8 = 'nothing is left behind',
  G9 = 'a call repeated leaves the state of one',
  G10 = 'no script fails, touches undeclared keys or answers what its header does not list',
  G11 = 'permits are conserved',
  G12 = 'clients of other kinds are not misled',
  G13 = 'what is marked as done is not due again in its period',
  R1 = 'a hold that is renewed in time is not lost while nothing fails',
  R2 = 'a script does the same at another time of day, and for clients of other names',
}

function properties.new_ghost()
  return { grants = {}, broken = {} }
end

local function excludes(a, b)
  return a == 'write' or b == 'write'
end

-- A grant goes on until it `ends`; one that waits for replicas `counts` only when they have it.
-- The `partner` of a grant is another of the same caller, beside which it was made.
---@param at_score boolean|nil the millisecond at which it ends may be the first without it
local function check_alone(owner, mode, ghost, report, partner, at_score)
  local least_ms = parts.START_MS + (at_score and 1 or 0)
  for _, other in ipairs(parts.sorted_names(ghost.grants)) do
    local grant = ghost.grants[other]
    local is_own = other == owner or other == partner or grant.partner == owner
    if not is_own and (grant.counts or grant.ends) >= least_ms
      and excludes(grant.mode, mode) then
      report('G1', ('%s was granted the lock while %s holds it'):format(owner, other))
    end
  end
end

local function lease_of(e)
  return e.lease or e.limits.lease
end

local function check_granted(e, ghost, report, passed_to, passed_ms)
  local owner, now = passed_to or e.new_owner or e.owner, parts.START_MS
  local lease = passed_ms or lease_of(e)
  local grant = ghost.grants[owner]
  local partner = e.partner or grant and grant.partner
  local counts_later = (e.limits.min_replicas or 0) > 0
  if not counts_later then
    check_alone(owner, e.mode, ghost, report, partner, e.ends_at_score)
  end
  local held = e.after_holders[owner]
  if not held then
    report('G1', ('%s was told that it holds the lock, but it is not recorded; recorded: %s')
      :format(owner, table.concat(parts.sorted_names(e.after_holders), ', '):gsub('^$', 'nobody')))
  elseif held.left_ms < lease then
    report('G1', ('%s was granted %d ms, but its hold ends in %d'):format(owner, lease,
      held.left_ms))
  elseif not passed_to and e.hold and held.level and held.level ~= e.hold then
    report('G5', ('%s asked for a count of %d and has %d'):format(owner, e.hold, held.level))
  end
  ghost.grants[owner] = { ends = math.max(grant and grant.ends or 0, now + lease),
    mode = e.mode, partner = partner,
    counts = counts_later and (grant and grant.counts or 0) or nil }
end

local on = {}

function on.acquire(e, ghost, report)
  if e.outcome == 1 then
    check_granted(e, ghost, report)
  elseif e.outcome == 0 then
    local left_ms = e.has_last_ms and 0 or -2
    for _, other in ipairs(parts.sorted_names(e.after_holders)) do
      left_ms = math.max(left_ms, e.after_holders[other].left_ms)
    end
    if left_ms == -2 and not e.may_wait then
      report('G6', ('%s was refused, but nobody holds the lock'):format(e.owner))
    elseif e.after_holders[e.owner] and not e.before_holders[e.owner] then
      report('G6', ('%s was refused, but holds the lock'):format(e.owner))
    elseif e.reply[2] > left_ms and not e.may_wait then
      report('G6', ('%s was told to wait %d ms, but the lock is free in %d'):format(e.owner,
        e.reply[2], left_ms))
    end
  elseif ghost.grants[e.owner] and e.after_holders[e.owner] then
    report('G5', ('%s was told that it lost the lock, but it holds it'):format(e.owner))
  end
end

function on.renew(e, ghost, report)
  local grant = ghost.grants[e.owner]
  if e.outcome == 1 and not grant then
    report('G4', ('%s renewed what it does not hold'):format(e.owner))
  elseif e.outcome == 1 then
    check_granted(e, ghost, report)
  elseif grant and e.before_holders[e.owner] then
    report('G4', ('%s holds the lock, but its renewal was refused'):format(e.owner))
  end
end

function on.release(e, ghost, report)
  local grant, held = ghost.grants[e.owner], e.after_holders[e.owner]
  if e.outcome == 1 and not grant then
    report('G4', ('%s released what it does not hold, and was told that it did'):format(e.owner))
  elseif e.outcome == -1 and e.before_holders[e.owner] then
    report('G5', ('%s holds the lock, but was told that it does not'):format(e.owner))
  end
  if e.outcome == 1 and e.hold > 0 and not (held and held.level == e.hold) then
    report('G5', ('%s keeps %d levels, but the lock says %s'):format(e.owner, e.hold,
      held and held.level or 'nothing'))
  elseif e.hold == 0 and held then
    report('G5', ('%s released its last hold count, and still holds the lock'):format(e.owner))
  end
  if e.hold == 0 then
    ghost.grants[e.owner] = nil
  elseif e.outcome == 1 and grant then
    grant.ends = math.max(grant.ends, parts.START_MS + e.lease)
  end
end

-- A waiter that gives up; a lock that it was granted meanwhile goes with it.
function on.leave(e, ghost, report)
  ghost.grants[e.owner] = nil
  if e.after_holders[e.owner] then
    report('G5', ('%s has left, and holds the lock'):format(e.owner))
  end
end

function on.transfer(e, ghost, report)
  if e.outcome ~= 1 then
    return
  elseif not (ghost.grants[e.owner] or ghost.grants[e.new_owner]) then
    report('G4', ('%s handed off what it does not hold'):format(e.owner))
  end
  ghost.grants[e.owner] = nil
  check_granted(e, ghost, report)
  if e.after_holders[e.owner] then
    report('G5', ('%s handed the lock off, and still holds it'):format(e.owner))
  end
end

on['break'] = function(e, ghost, report)
  if e.outcome == 1 then
    ghost.grants[e.owner] = nil
    ghost.broken[e.owner] = true
    if e.after_holders[e.owner] then
      report('G5', ('%s was broken, and still holds the lock'):format(e.owner))
    end
  end
end

-- Nobody else's hold goes or gets shorter, and the caller's own does not get shorter while it
-- lasts.
local function check_others(e, ghost, report)
  for _, other in ipairs(parts.sorted_names(e.before_holders)) do
    local before, after = e.before_holders[other], e.after_holders[other]
    local is_own = other == e.owner or other == e.new_owner
    if ghost.grants[other] and not is_own and not after then
      report('G4', ('%s of %s took the lock away from %s'):format(e.script, e.owner or '?', other))
    elseif ghost.grants[other] and after and after.left_ms < before.left_ms
      and not (e.verb == 'break' and is_own) then
      report('G4', ('%s of %s made the lease of %s shorter'):format(e.script, e.owner or '?',
        other))
    end
  end
end

local function is_meant(key)
  return key.marks.shared or key.marks.permanent or key.form.kind == 'slot'
end

-- Is it a name that the script forms, and by no form that has no end?
local function is_derived(e, name)
  local found = false
  for i, pattern in ipairs(Strict.derived_patterns(e.header, e.keys)) do
    if name:find(pattern) and is_meant(e.header.derived[i]) then
      return false
    end
    found = found or name:find(pattern) ~= nil
  end
  return found
end

-- A key without a lease is for ever; headers say which may be.
local function check_leftovers(e, report)
  for _, name in ipairs(parts.sorted_names(e.after.data)) do
    local record = e.after.data[name]
    if not record.expires_at and not Server.same_record(record, e.before.data[name]) then
      for i, key in ipairs(e.header.keys) do
        if e.keys[i] == name and not is_meant(key) then
          report('G8', ('%s has no end'):format(name))
        end
      end
      if is_derived(e, name) then
        report('G8', ('%s has no end'):format(name))
      end
    elseif record.expires_at and holders.left(record) > e.longest then
      report('G8', ('%s ends in %d ms, later than anything asked for'):format(name,
        holders.left(record)))
    end
  end
end

local function check_repeated(model, e, report)
  local again = e.again
  if not again then
    return
  elseif again.err then
    report('G9', ('%s fails when it runs twice: %s'):format(e.script, again.err.message))
  elseif again.after ~= e.after
    and not (model.equal and model.equal(e.after.data, again.after.data)) then
    report('G9', ('%s of %s leaves another state when it runs twice'):format(e.script,
      e.owner or e.letter))
  elseif (e.header.repeat_ == 'seq' or e.verb == 'acquire' or e.verb == 'renew')
    and parts.text(again.reply) ~= parts.text(e.reply) then
    report('G9', ('%s of %s is answered otherwise when it runs twice'):format(e.script,
      e.owner or e.letter))
  end
end

local function forget_ended(ghost)
  for _, owner in ipairs(parts.sorted_names(ghost.grants)) do
    if ghost.grants[owner].ends < parts.START_MS then
      ghost.grants[owner] = nil
    end
  end
end

-- Who holds the lock now without having asked in this call was passed it, if the family does that.
local function check_passed(model, e, ghost, report)
  for _, owner in ipairs(parts.sorted_names(e.after_holders)) do
    if not e.before_holders[owner] and owner ~= e.owner and owner ~= e.new_owner then
      local passed_ms = model.passes_on and model.passes_on(owner, ghost)
      if passed_ms then
        check_granted(e, ghost, report, owner, passed_ms)
      else
        report('G1', ('%s holds the lock, but did not ask'):format(owner))
      end
    end
  end
end

---Replicas have a hold, and its owner is told.
---@param ends number until when it counts
---@param is_there boolean the server has it
function properties.counted(owner, ends, is_there, ghost, report)
  local grant = ghost.grants[owner]
  if ends <= parts.START_MS then
    return
  elseif not is_there and not ghost.broken[owner] then
    report('G1', ('%s was told that replicas have its hold, but there is none'):format(owner))
  elseif grant then
    check_alone(owner, grant.mode, ghost, report, grant.partner)
    grant.counts = math.max(grant.counts, ends)
  end
end

---What a call of a known verb made of the holds of one lock.
function properties.judged(model, e, ghost, report)
  forget_ended(ghost)
  check_others(e, ghost, report)
  if on[e.verb] then
    on[e.verb](e, ghost, report)
    check_passed(model, e, ghost, report)
  end
  local was_held, is_held = next(e.before_holders), next(e.after_holders)
  if is_held then
    ghost.freed = nil
  elseif was_held then
    ghost.freed = true
  end
end

---A script has run.
---@param model table
---@param e table the event
---@param ghost table a copy that may be changed
---@param report fun(property: string, message: string)
function properties.executed(model, e, ghost, report)
  check_leftovers(e, report)
  check_repeated(model, e, report)
  if e.verb and on[e.verb] and model.holders then
    properties.judged(model, e, ghost, report)
  else
    forget_ended(ghost)
  end
  if model.observe then
    model.observe(e, ghost, report)
  end
end

---What a client told its application.
function properties.said(said, report)
  for _, word in ipairs(said) do
    if word.what == 'release' and word.status == 'ok' and word.outcome ~= 1 then
      report('G4', 'a release was called a success though the server did not say so')
    end
    if word.property then
      report(word.property, word.message)
    end
  end
end

---Two who believe at once.
---@param believers table array of { mode, owner }
function properties.believed(believers, ghost, report)
  for i = 1, #believers do
    for j = i + 1, #believers do
      local a, b = believers[i], believers[j]
      if excludes(a.mode, b.mode) and not ghost.broken[a.owner] and not ghost.broken[b.owner] then
        report('G2', ('%s and %s both believe that they hold the lock'):format(a.owner, b.owner))
      end
    end
  end
end

---Time is about to pass: whoever sleeps has been told what it waits for, or looks soon.
function properties.quiet(model, sleepers, keyspace, ghost, name, report)
  local free
  if model.free then
    free = model.free(keyspace.data, name, ghost)
  else
    free = next((model.holders(keyspace.data, name))) == nil
  end
  for _, sleeper in ipairs(sleepers) do
    local data = sleeper.data
    local wake = data.timers.wake
    if not wake or wake - parts.START_MS > model.limits.recheck then
      report('G6', ('%s sleeps past its recheck'):format(sleeper.letter))
    elseif free and ghost.freed and not data.missed then
      report('G6', ('the lock is free, %s waits for it, and nobody told it'):format(sleeper.letter))
    end
  end
end

return properties
