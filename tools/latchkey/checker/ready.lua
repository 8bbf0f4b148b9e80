-- SPDX-License-Identifier: Apache-2.0
-- Ready-made models of what teams have beside locks: limiters, permits, queues. Each is
-- `model.clients` with steps and promises that need not be written again.
local faults = require('latchkey.checker.faults')

local ready = {}

-- What may stand in a table, and what must; a word that is neither is a mistake in writing.
local function check_words(fail, what, about, wanted, optional)
  for _, word in ipairs(wanted) do
    if about[word] == nil then
      fail('a %s needs "%s"', what, word)
    end
  end
  for word in pairs(about) do
    local known = optional[word]
    for _, other in ipairs(wanted) do
      known = known or word == other
    end
    if not known then
      fail('a %s has no word "%s"', what, tostring(word))
    end
  end
end

local COMMON = { bounds = true, faults = true, keys = true, limits = true, past_ms = true,
  summary = true }

local function with(common, more)
  local all = {}
  for _, list in ipairs({ common, more }) do
    for name, value in pairs(list) do
      all[name] = value
    end
  end
  return all
end

-- A call of two outcomes: the script first, then which shapes mean what, and its arguments.
local function check_call(fail, what, name, call, outcomes)
  if type(call) ~= 'table' or type(call[1]) ~= 'string' then
    fail('%s: name its script first, such as %s = { "acme/%s", ... }', name, name, name)
  end
  for _, word in ipairs(outcomes) do
    if call[word] == nil then
      fail('%s: "%s" says which reply means that, such as %s = 1', name, word, word)
    end
  end
  check_words(fail, what, call, { 1, unpack(outcomes) }, { args = true })
end

-- What follows from each shape: targets by outcome -> targets by shape.
local function on(call, targets)
  local following = {}
  for outcome, target in pairs(targets) do
    local shapes = type(call[outcome]) == 'table' and call[outcome] or { call[outcome] }
    for _, shape in ipairs(shapes) do
      following[tostring(shape)] = target
    end
  end
  return following
end

-- Does a call of this script have this outcome?
local function means(call, about, outcome)
  if call.script ~= about[1] then
    return false
  end
  return on(about, { [outcome] = true })[call.shape] or false
end

local function finished(about, made)
  for word in pairs(COMMON) do
    made[word] = made[word] == nil and about[word] or made[word]
  end
  return made
end

local function check_count(fail, what, about, word, least, most)
  local value = about[word]
  if type(value) ~= 'number' or value % 1 ~= 0 or value < least or value > most then
    fail('a %s: "%s" is a whole number from %d to %d', what, word, least, most)
  end
end

local LEAST_MS, MOST_MS, MOST_TAKES = 4, 1e8, 100
-- So many at once; one that takes often stands for further ones.
local TAKERS = 3

-- Clients begin something as often as this, so that the end of a duration is one of the times.
local function part_of(ms)
  for parts = 2, 5 do
    if ms % parts == 0 then
      return ms / parts
    end
  end
  return math.floor(ms / 2)
end

-- How often clients begin something, and how long what they did counts. Where other durations are
-- parts of that as well, fewer moments come together in one state.
local function time_of(about, ms, made)
  made.limits = about.limits or { third = part_of(ms), lease = ms }
  made.past_ms = about.past_ms
  return made
end

-- The moments of a list that are not longer ago than that, and now.
local function recent(list, now, ms)
  local kept = { now }
  for _, at in ipairs(list or {}) do
    if at > now - ms then
      kept[#kept + 1] = at
    end
  end
  return kept
end

-- What is as long ago as the window may count or not.
local function refusals_promise(about)
  return function(call, notes)
    local takes = means(call, about.take, 'takes')
    if takes then
      notes.at = { unpack(recent(notes.at, call.now, about.window_ms + 1), 1, about.most) }
    end
    local there = #recent(notes.at, call.now, about.window_ms + 1) - 1
    return takes or there >= about.most, ('%d of %d are taken'):format(there, about.most)
  end
end

---At most so many in any window of time, and none fewer unless `may_refuse` says so.
---@param about { take, most, window_ms, again_ms?, may_refuse?, bounds?, faults?, keys?, limits?,
---  past_ms?, summary? }
---@return table clients as `model.clients` takes them
function ready.limiter(about, fail)
  check_words(fail, 'limiter', about, { 'take', 'most', 'window_ms' },
    with(COMMON, { again_ms = true, may_refuse = true }))
  check_call(fail, 'limiter', 'take', about.take, { 'takes', 'refuses' })
  check_count(fail, 'limiter', about, 'most', 1, MOST_TAKES)
  check_count(fail, 'limiter', about, 'window_ms', LEAST_MS, MOST_MS)
  -- One that takes many does so when a window begins or ends, and not also in the middle of it:
  -- there are too many ways to spread them.
  local often = { clients = 1, rounds = about.most + 2, faults = 0,
    limits = { third = about.window_ms } }
  local title = ('at most %d in any %d ms'):format(about.most, about.window_ms)
  local function promise(call, notes)
    if not means(call, about.take, 'takes') then
      return true
    end
    notes.at = recent(notes.at, call.now, about.window_ms)
    return #notes.at <= about.most, #notes.at .. ' of them'
  end
  return finished(about, time_of(about, about.window_ms, {
    first = 'take', summary = about.summary or 'a limiter',
    steps = { take = { call = about.take[1], args = about.take.args,
      on = on(about.take, { takes = 'done',
        refuses = { wait = about.again_ms or part_of(about.window_ms), next = 'take' } }) } },
    promises = { [title] = promise,
      [('who is refused found %d in the window'):format(about.most)] = not about.may_refuse
        and refusals_promise(about) or nil },
    reaches = { [about.take[1]] = about.take.takes },
    bounds = about.bounds
      or { clients = math.min(about.most + 1, TAKERS), rounds = 1, faults = 1 },
    runs = not about.bounds and { {}, unpack(about.most < TAKERS
      and { { rounds = 2, faults = 0 }, often } or { often }) } or nil,
  }))
end

-- Holders by what the scripts answered: owner -> the end of its lease.
local function count(notes, is_live)
  local found = 0
  for _, ends in pairs(notes) do
    found = found + (is_live(ends) and 1 or 0)
  end
  return found
end

-- The title of a promise, and the promise, for permits.
local function permits_promises(about)
  local function follow(call, notes)
    local owner = call.args.owner
    if means(call, about.acquire, 'takes') then
      notes[owner] = call.now + about.lease_ms
    elseif means(call, about.release, 'frees') then
      notes[owner] = nil
    end
  end
  return {
    [('at most %d at once'):format(about.most)] = function(call, notes)
      follow(call, notes)
      local held = count(notes, function(ends)
        return ends > call.now
      end)
      return held <= about.most, held .. ' of them'
    end,
    ['who is refused found none free'] = function(call, notes)
      follow(call, notes)
      local held = count(notes, function(ends)
        return ends >= call.now
      end)
      return not means(call, about.acquire, 'busy') or held >= about.most,
        ('%d of %d are held'):format(held, about.most)
    end,
    ['who holds one can give it back'] = function(call, notes)
      local ends = notes[call.args.owner]
      local is_lost = means(call, about.release, 'lost') and ends and ends > call.now
      follow(call, notes)
      return not is_lost, call.args.owner
    end,
  }
end

---Permits: so many holders at once, each for a lease.
---@param about { acquire, release, most, lease_ms, works_ms?, again_ms?, bounds?, faults?, keys?,
---  summary? }
---@return table clients as `model.clients` takes them
function ready.counted(about, fail)
  check_words(fail, 'counted lock', about, { 'acquire', 'release', 'most', 'lease_ms' },
    with(COMMON, { works_ms = true, again_ms = true }))
  -- One more client than permits finds one too many.
  check_count(fail, 'counted lock', about, 'most', 1, faults.most_clients - 1)
  check_count(fail, 'counted lock', about, 'lease_ms', LEAST_MS, MOST_MS)
  check_call(fail, 'counted lock', 'acquire', about.acquire, { 'takes', 'busy' })
  check_call(fail, 'counted lock', 'release', about.release, { 'frees', 'lost' })
  local part_ms = part_of(about.lease_ms)
  return finished(about, time_of(about, about.lease_ms, {
    first = 'acquire', summary = about.summary or 'permits',
    steps = {
      acquire = { call = about.acquire[1], args = about.acquire.args,
        on = on(about.acquire, {
          takes = { wait = about.works_ms or math.floor(part_ms / 2), next = 'release' },
          busy = { wait = about.again_ms or part_ms, next = 'acquire' } }) },
      release = { call = about.release[1], args = about.release.args,
        on = on(about.release, { frees = 'done', lost = 'done' }) },
    },
    promises = permits_promises(about),
    reaches = { [about.acquire[1]] = about.acquire.takes,
      [about.release[1]] = about.release.frees },
    bounds = about.bounds or { clients = about.most + 1, rounds = 1, faults = 1 },
  }))
end

-- The jobs that a key has: elements of a list, members of a sorted set, fields of a hash.
local function add_jobs(there, record)
  local value = record and record.value or {}
  local step = record and record.type == 'hash' and 2 or 1
  for i = 1, #value, step do
    there[record.type == 'zset' and value[i][1] or value[i]] = true
  end
end

-- A worker whose lease has ended may be told that its job is done, though somebody else has it.
local function given_again(about)
  return function(call, notes)
    notes.held, notes.done = notes.held or {}, notes.done or {}
    local job = call.args[about.job]
    if means(call, about.take, 'gives') then
      notes.held[call.reply] = { client = call.client, ends = call.now + about.lease_ms }
      return not notes.done[call.reply], call.reply
    elseif means(call, about.done, 'ends') then
      local held = notes.held[job]
      notes.held[job] = nil
      if held and held.client == call.client and held.ends > call.now then
        notes.done[job] = true
      end
    end
    return true
  end
end

-- A job whose lease ends now may be given or not.
local function found_none(about)
  return function(call, notes)
    notes.done, notes.ends = notes.done or {}, notes.ends or {}
    if means(call, about.done, 'ends') then
      notes.done[call.args[about.job]] = true
    elseif means(call, about.take, 'gives') then
      notes.ends[call.reply] = call.now + about.lease_ms
    elseif means(call, about.take, 'empty') then
      for _, job in ipairs(about.jobs) do
        if not notes.done[job] and (notes.ends[job] or 0) < call.now then
          return false, job
        end
      end
    end
    return true
  end
end

local function queue_promises(about)
  return {
    ['no job that is done is given again'] = given_again(about),
    ['who is given none found none'] = not about.may_refuse and found_none(about) or nil,
    ['no job is held twice'] = function(call, notes)
      if means(call, about.done, 'ends') then
        notes[call.args[about.job]] = nil
      elseif not means(call, about.take, 'gives') then
        return true
      else
        local ends = notes[call.reply]
        notes[call.reply] = call.now + about.lease_ms
        return not ends or ends <= call.now, call.reply
      end
      return true
    end,
    ['no job is lost'] = function(call, notes, keys)
      local there = {}
      add_jobs(there, keys[about.waiting])
      add_jobs(there, keys[about.taken])
      if means(call, about.done, 'ends') then
        notes[call.args[about.job]] = true
      end
      for _, job in ipairs(about.jobs) do
        if not there[job] and not notes[job] then
          return false, job
        end
      end
      return true
    end,
  }
end

---Jobs that are taken for a lease, and come back where nobody says that they are done.
---@param about { take, done, job, jobs, waiting, taken, lease_ms, works_ms?, may_refuse?, bounds?,
---  faults?, keys?, summary? }
---@return table clients as `model.clients` takes them
function ready.queue(about, fail)
  check_words(fail, 'queue', about,
    { 'take', 'done', 'job', 'jobs', 'waiting', 'taken', 'lease_ms' },
    with(COMMON, { works_ms = true, may_refuse = true }))
  check_count(fail, 'queue', about, 'lease_ms', LEAST_MS, MOST_MS)
  check_call(fail, 'queue', 'take', about.take, { 'gives', 'empty' })
  check_call(fail, 'queue', 'done', about.done, { 'ends', 'lost' })
  for _, job in ipairs(type(about.jobs) == 'table' and about.jobs or { about.jobs }) do
    if type(about.jobs) ~= 'table' or type(job) ~= 'string' then
      fail('a queue: "jobs" is a list of texts: { "one", "two" }')
    end
  end
  local function work(mine, job)
    mine.job = job
    return { wait = about.works_ms or part_of(about.lease_ms), next = 'finish' }
  end
  local args = with(about.done.args or {}, { [about.job] = function(mine)
    return mine.job
  end })
  return finished(about, time_of(about, about.lease_ms, {
    first = 'take', summary = about.summary or 'a queue with leases',
    keys = about.keys or { [about.waiting] = { type = 'list', value = about.jobs } },
    steps = {
      take = { call = about.take[1], args = about.take.args,
        on = on(about.take, { gives = work, empty = 'done' }) },
      finish = { call = about.done[1], args = args,
        on = on(about.done, { ends = 'done', lost = 'done' }) },
    },
    promises = queue_promises(about),
    reaches = { [about.take[1]] = about.take.gives, [about.done[1]] = about.done.ends },
  }))
end

return ready
