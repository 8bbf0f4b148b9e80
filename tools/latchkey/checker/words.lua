-- SPDX-License-Identifier: Apache-2.0
-- The words in which a model of somebody's own scripts is written (docs/reference/model.md): what a
-- file that `latchkey check --model` reads sees as `model`.
local path = require('pl.path')

local families = require('latchkey.checker.families')
local holders = require('latchkey.checker.holders')
local mistakes = require('latchkey.checker.mistakes')
local naming = require('latchkey.checker.naming')
local parts = require('latchkey.checker.parts')
local ranges = require('latchkey.checker.ranges')
local ready = require('latchkey.checker.ready')
local roles = require('latchkey.checker.roles')
local sorted = require('latchkey.sorted')
local taker = require('latchkey.checker.roles.taker')
local wording = require('latchkey.checker.wording')

local words = {}

-- What replies come to, in the form that latchkey's own have.
local OUTCOMES = {
  takes = { 1 }, busy = { 0, -1 },
  keeps = { 1 }, frees = { 1 }, lost = { -1 },
}
local CALLS = {
  acquire = { 'takes', 'busy' },
  renew = { 'keeps', 'lost' },
  release = { 'frees', 'lost' },
}

local function fail(...)
  error({ model = (...):format(select(2, ...)) }, 0)
end

-- Where a model file calls one of the words.
local function line_of_model()
  local level, here = 3, debug.getinfo(1, 'S').source
  while debug.getinfo(level, 'S').source == here do
    level = level + 1
  end
  return debug.getinfo(level, 'l').currentline
end

local function reader(read, has_scores)
  return function(key, field)
    if type(key) ~= 'string' then
      fail('a reader of holders takes the name of a key, as the contract has it')
    end
    return { key = key, line = line_of_model(), has_scores = has_scores,
      read = function(keys, name)
        return read(keys, name, field)
      end }
  end
end

---Who holds: the value of a string.
words.string = reader(holders.of_string)
---The fields of a hash, each an owner with a count.
words.hash = reader(holders.of_hash)
local read_field = reader(function(keys, name, field)
  local record = keys[name]
  for i = 1, record and record.type == 'hash' and #record.value or 0, 2 do
    if record.value[i] == field then
      return { [record.value[i + 1]] = { left_ms = holders.left(record), mode = 'write' } }
    end
  end
  return {}
end)

---One field of a hash.
function words.field(key, field)
  if type(field) ~= 'string' then
    fail('model.field takes the names of a key and of a field: model.field("lock", "owner")')
  end
  return read_field(key, field)
end

---The first element of a list.
words.list = reader(holders.of_list)
---The members of a sorted set whose scores, ends of leases in milliseconds since 1970, are to come.
words.zset = reader(holders.of_zset, true)

-- The shapes of a call's replies with what they come to: shape -> outcome.
local function outcomes_of(name, call)
  local outcomes = {}
  for _, word in ipairs(CALLS[name]) do
    local shapes = type(call[word]) == 'table' and call[word] or { call[word] }
    if #shapes == 0 then
      fail('%s: "%s" says which reply means that, such as %s = "1"', name, word, word)
    end
    for _, shape in ipairs(shapes) do
      outcomes[tostring(shape)] = OUTCOMES[word]
    end
  end
  for word in pairs(call) do
    if word ~= 1 and word ~= CALLS[name][1] and word ~= CALLS[name][2] then
      fail('%s: there is no word "%s"; there are %s', name, tostring(word),
        table.concat(CALLS[name], ', '))
    end
  end
  return outcomes
end

-- What is longer ago counts as so long ago.
local LEAST_PAST_MS = 400
local LEASE_MS = 199
-- How far the fault clock-back sets the clock back.
local BACK_MS = 200

local LOCK = { acquire = true, renew = true, release = true, holders = true, waits = true,
  args = true, limits = true, summary = true }
-- What clients of a lock know by its name or by its type.
local OF_A_LOCK = { owner = true, lease = true, hold = true, ids = true, ticket = true }

-- The arguments that a value is given for, by their names.
local function values_of(args, known)
  local given = parts.copy(known)
  for name in pairs(args or {}) do
    given[name] = true
  end
  return given
end

-- What is said of scripts, to be compared with their contracts.
local function note(names, script, kind, name, where)
  names[#names + 1] = { script = script, kind = kind, name = tostring(name), where = where }
end

local function scripts_of(about)
  local verbs, known, said = {}, {}, {}
  for _, name in ipairs({ 'acquire', 'renew', 'release' }) do
    local call = about[name]
    if call and type(call[1]) ~= 'string' then
      fail('%s: name its script first, such as %s = { "acme/%s", ... }', name, name, name)
    elseif call and verbs[call[1]] then
      fail('"%s" and "%s" are both the script %s, whose replies would mean one thing; give one of '
        .. 'them a copy by another name', verbs[call[1]], name, call[1])
    elseif call then
      verbs[call[1]], known[call[1]] = name, outcomes_of(name, call)
      for _, shape in ipairs(parts.sorted_names(known[call[1]])) do
        note(said, call[1], 'reply', shape, name)
      end
    elseif name ~= 'renew' then
      fail('a lock needs "%s"', name)
    end
  end
  return verbs, known, said
end

-- A number in the place of "integer" is how long to wait.
local function translator(known)
  return function(script, shape, reply)
    local outcome = known[script] and known[script][shape]
    if outcome and outcome[1] == 0 and shape == 'integer' then
      return { 0, reply }
    end
    return outcome and { unpack(outcome) }
  end
end

-- Replies that have to come, or nothing was tried: script -> shapes, of which one suffices.
local function reaches_of(given)
  local wanted = {}
  for script, shapes in pairs(given or {}) do
    wanted[script] = {}
    for i, shape in ipairs(type(shapes) == 'table' and shapes or { shapes }) do
      wanted[script][i] = tostring(shape)
    end
  end
  return wanted
end

local TYPES_OF_A_LOCK = { acquire = 'table', renew = 'table', release = 'table', args = 'table',
  limits = 'table', summary = 'string' }

local function check_lock(about)
  wording.table(fail, 'model.lock', about)
  wording.types(fail, about, TYPES_OF_A_LOCK)
  for word in pairs(about) do
    if not LOCK[word] then
      fail('a lock has no word "%s"', tostring(word))
    end
  end
  ranges.check(fail, 'limits', about.limits)
end

local function check_holders(about)
  if type(about.holders) ~= 'table' or not about.holders.read then
    fail('"holders" says where the owner stands: model.string("lock"), model.hash("lock"), '
      .. 'model.list("lock"), model.zset("lock") or model.field("lock", "owner")')
  elseif about.waits and about.waits ~= 'message' and about.waits ~= 'polling' then
    fail('"waits" is "message" or "polling"')
  end
end

-- A lock that nobody ever takes, renews or releases would keep its promises.
local function lock_reaches(about)
  local reached = {}
  for name, word in pairs({ acquire = 'takes', renew = 'keeps', release = 'frees' }) do
    if about[name] then
      reached[about[name][1]] = about[name][word]
    end
  end
  return reaches_of(reached)
end

local function lock_limits(about)
  local given = about.limits or {}
  local lease = given.lease or LEASE_MS
  local third = given.third or math.ceil(lease / 2)
  return { lease = lease, third = third, drift = 5, recheck = 3 * third, levels = 1,
    renewals = about.renew and math.huge or 0, back = BACK_MS }
end

-- Two rounds; and one that also looks at the last millisecond of a lease. A key is there at its
-- end; of a score that is left open, and the millisecond before it is the last.
local function lock_runs(about)
  local edges = { edges = true, renewals = about.renew and 1 or 0 }
  if about.holders.has_scores and not (about.limits or {}).lease then
    edges.lease = LEASE_MS + 1
  end
  return { { clients = 2, rounds = 2 }, { clients = 2, rounds = 1, limits = edges } }
end

---A lock of one holder: three scripts, or two where nobody renews.
---@param about { acquire, renew?, release, holders, waits?, args?, limits?, summary? }
---@return table model
function words.lock(about)
  check_lock(about)
  local verbs, known, said = scripts_of(about)
  check_holders(about)
  local limits = lock_limits(about)
  local renew = about.renew and about.renew[1]
  table.insert(said, 1, { script = about.acquire[1], kind = 'key', name = about.holders.key,
    where = 'holders', line = about.holders.line })
  if about.waits == 'message' then
    note(said, about.release[1], 'channel', 'waits', 'waits')
  end
  local given = values_of(about.args, OF_A_LOCK)
  local scripts = parts.sorted_names(verbs)
  for _, script in ipairs(scripts) do
    said[#said + 1] = { script = script, kind = 'values', name = script, where = verbs[script],
      given = given, values = about.args or {}, lease = limits.lease, fixed = true }
  end
  for _, name in ipairs(parts.sorted_names(about.args or {})) do
    said[#said + 1] = { script = scripts[1], kind = 'somewhere', name = name, where = 'args',
      scripts = scripts }
  end
  return {
    summary = about.summary or 'a lock of one holder', foreign = true,
    roles = { taker = taker.role({ acquire = about.acquire[1], renew = renew,
      release = about.release[1], polls = about.waits ~= 'message', extra = about.args,
      foreign = true }) },
    clients = function(n)
      return ('taker '):rep(n)
    end,
    limits = limits,
    bounds = { clients = 2, rounds = 1, faults = 1 },
    runs = lock_runs(about),
    key = { about.acquire[1], about.holders.key },
    holders = about.holders.read, verbs = verbs, translate = translator(known),
    event = naming.of(function()
      return about.args or {}
    end),
    names = said, reaches = lock_reaches(about),
    past_ms = math.max(2 * limits.lease, LEAST_PAST_MS),
  }
end

-- What a promise sees of a call, and may change: a copy. Clients that are taken for one another
-- change their names in notes as well, so they are called there as in the names of owners.
local function call_of(e)
  local args = parts.copy(e.args)
  args.owner = args.owner or e.owner
  args.lease = args.lease or e.lease
  return { script = e.script, client = 'lk-' .. e.letter, shape = e.outcome,
    reply = parts.copy(e.reply[2]), args = args, now = parts.START_MS }
end

local CLIENTS = { steps = true, first = true, promises = true, keys = true, faults = true,
  bounds = true, limits = true, past_ms = true, reaches = true, runs = true,
  summary = true }
local OF_A_CLIENT = { owner = true, lease = true }

-- The shapes that a script's replies may have for the client, and the scripts.
local function shapes_of(steps, lease)
  local verbs, known, said = {}, {}, {}
  for _, name in ipairs(parts.sorted_names(steps)) do
    local step, where = steps[name], ('the step "%s"'):format(name)
    for _, argument in ipairs(parts.sorted_names(step.args or {})) do
      note(said, step.call, 'argument', argument, where)
    end
    note(said, step.call, 'values', step.call, where)
    said[#said].given, said[#said].values = values_of(step.args, OF_A_CLIENT), step.args or {}
    said[#said].lease = lease
    verbs[step.call] = name
    known[step.call] = known[step.call] or {}
    for shape in pairs(step.on) do
      known[step.call][tostring(shape)] = true
    end
    local on = {}
    for shape, target in pairs(step.on) do
      on[tostring(shape)] = target
    end
    step.on = on
    for _, shape in ipairs(parts.sorted_names(on)) do
      note(said, step.call, 'reply', shape, where)
    end
  end
  return verbs, known, said
end

-- P1, P2 and so on, as many as there are.
local function numbered(promises)
  local ids = {}
  for _ in pairs(promises) do
    ids[#ids + 1] = 'P' .. #ids + 1
  end
  return ids
end

local function promises_of(promises)
  local titles = sorted(promises)
  return function(e, ghost, report)
    ghost.notes = ghost.notes or {}
    for i, title in ipairs(titles) do
      ghost.notes[title] = ghost.notes[title] or {}
      local notes = ghost.notes[title]
      local kept, why = mistakes.call_noting(('the promise "%s"'):format(title), notes,
        promises[title], call_of(e), notes, parts.copy(e.after.data))
      if not kept then
        report('P' .. i, title .. (why and ': ' .. why or ''))
      end
    end
  end
end

-- The longest duration that is written in the steps: of arguments of the type ms, and of pauses.
local function longest_of(steps, least_ms, header_of)
  local longest = least_ms
  for _, step in pairs(steps) do
    for _, argument in ipairs(header_of(step.call).argv) do
      local value = argument.type == 'ms' and (step.args or {})[argument.name]
      longest = math.max(longest, tonumber(value) or 0)
    end
    for _, target in pairs(step.on) do
      longest = math.max(longest, type(target) == 'table' and target.wait or 0)
    end
  end
  return math.min(longest, ranges.MOST_PAST_MS / 2)
end

-- The default runs: also directly before a lease or a window ends, and more than once, as a window
-- follows another.
local function runs_of(about)
  local runs = {}
  for i, run in ipairs(about.runs or { {}, { rounds = 2, faults = 0 } }) do
    if about.runs or i == 1 or (about.bounds or {}).rounds == 1 then
      local limits = parts.copy(run.limits or {})
      limits.edges = true
      runs[i] = { clients = run.clients, rounds = run.rounds, faults = run.faults, limits = limits }
    end
  end
  return runs
end

local TYPES_OF_CLIENTS = { steps = 'table', first = 'string', promises = 'table', keys = 'table',
  faults = 'table', bounds = 'table', limits = 'table', past_ms = 'number', reaches = 'table',
  runs = 'table', summary = 'string' }

local function check_clients(about)
  wording.table(fail, 'model.clients', about)
  wording.types(fail, about, TYPES_OF_CLIENTS)
  for word in pairs(about) do
    if not CLIENTS[word] then
      fail('clients have no word "%s"', tostring(word))
    end
  end
  if type(about.steps) ~= 'table' or not about.steps[about.first or false] then
    fail('"steps" has the steps by name, and "first" names the one that a round begins with')
  elseif type(about.promises) ~= 'table' or not next(about.promises) then
    fail('"promises" has at least one function, by what it promises')
  end
  for title, promise in pairs(about.promises) do
    if type(title) ~= 'string' or type(promise) ~= 'function' then
      fail('"promises" has functions by what they promise: ["no job is lost"] = function(call) ...')
    end
  end
  wording.steps(fail, about.steps)
  wording.keys(fail, about.keys)
  wording.runs(fail, about.runs)
  wording.reaches(fail, about.reaches)
  ranges.check(fail, 'bounds', about.bounds)
  ranges.check(fail, 'limits', about.limits)
  ranges.check(fail, 'clients', { past_ms = about.past_ms })
  ranges.check_faults(fail, about.faults)
end

---Clients that do whatever their steps say, and promises about what comes of it.
---@param about { steps, first, promises, keys?, faults?, bounds?, limits?, past_ms?, reaches?,
---  runs?, summary? }
---@return table model
function words.clients(about)
  check_clients(about)
  local bounds, limits = about.bounds or {}, about.limits or {}
  local lease, reached = limits.lease or LEASE_MS, reaches_of(about.reaches)
  local verbs, known, said = shapes_of(about.steps, lease)
  for _, script in ipairs(parts.sorted_names(reached)) do
    if not verbs[script] then
      fail('reaches: no step calls "%s"', tostring(script))
    end
    for _, shape in ipairs(reached[script]) do
      note(said, script, 'reply', shape, 'reaches')
    end
  end
  return {
    summary = about.summary or 'clients by steps', foreign = true,
    roles = { client = roles.of_steps(about.steps, about.first) },
    clients = function(n)
      return ('client '):rep(n)
    end,
    keys = about.keys and function()
      return wording.keyspace(about.keys)
    end,
    limits = { lease = lease, third = limits.third or 100, drift = 5, recheck = 300,
      back = BACK_MS },
    bounds = { clients = bounds.clients or 2, rounds = bounds.rounds or 2,
      faults = bounds.faults or 1 },
    runs = runs_of(about),
    past_ms = about.past_ms or function(header_of)
      return math.max(2 * longest_of(about.steps, lease, header_of), LEAST_PAST_MS)
    end,
    faults = about.faults or { 'crash', 'pause', 'slow', 'silence', 'clock' },
    verbs = verbs,
    translate = function(script, shape, reply)
      return known[script][shape] and { shape, reply } or nil
    end,
    event = naming.of(naming.given_in(about.steps)), observe = promises_of(about.promises),
    names = said, reaches = reached,
    judges = numbered(about.promises),
    quiet = function() end,
  }
end

for name, make in pairs(ready) do
  words[name] = function(about)
    wording.table(fail, 'model.' .. name, about)
    return words.clients(make(about, fail))
  end
end

for name, word in pairs(families.words) do
  words[name] = word
end

local SEEN = { 'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'select', 'string', 'table',
  'tonumber', 'tostring', 'type', 'unpack' }

-- A file sees the words and the plain language, and nothing else of the checker. One of somebody's
-- own may have mistakes such as a loop without an end.
local function read(file, is_own)
  local chunk, why = loadfile(file)
  if not chunk then
    return nil, why
  end
  local env = { model = words }
  for _, name in ipairs(SEEN) do
    env[name] = _G[name]
  end
  setfenv(chunk, env)
  local good, model
  if is_own then
    good, model = mistakes.pcall(mistakes.interpreted(chunk))
  else
    good, model = pcall(chunk)
  end
  if not good then
    return nil, type(model) == 'table' and ('%s: %s'):format(file, model.model) or model
  elseif type(model) ~= 'table' then
    return nil, file .. ': a model file returns a model, such as "return model.lock { ... }"'
  end
  local wrong = families.wrong(model) or not model.roles and 'a model file returns a model, such '
    .. 'as "return model.lock { ... }"'
  if wrong then
    return nil, ('%s: %s'):format(file, wrong)
  end
  model.name = path.splitext(path.basename(file))
  if is_own then
    mistakes.limit(model)
  end
  return model
end

---The model that a file describes.
---@param file string
---@return table|nil model
---@return string|nil why
local function load(file)
  local model, why = read(file, true)
  if model then
    model.file = file
  end
  return model, why
end

local HERE = debug.getinfo(1, 'S').source:match('^@(.*)/[^/]*$')
local shipped = {}

---The model of one of latchkey's own families, which is a file like any other.
---@param name string
---@return table|nil model
---@return string|nil why
local function family(name)
  if not shipped[name] then
    local model, why = read(('%s/models/%s.lua'):format(HERE, name))
    if not model then
      return nil, why
    end
    shipped[name] = model
  end
  return shipped[name]
end

return { load = load, family = family, words = words }
