-- SPDX-License-Identifier: Apache-2.0
-- The runs that `latchkey check` makes when it is given no bounds: those of each model, in as many
-- processes as there are workers.
local checker = require('latchkey.checker')
local coverage = require('latchkey.checker.coverage')
local processes = require('latchkey.processes')

local matrix = {}

local function merged(run, options)
  local all = {}
  for name, value in pairs(run) do
    all[name] = value
  end
  for name, value in pairs(options) do
    all[name] = value
  end
  return all
end

-- The promises that a run tries, of those that are asked for; nil for all.
local function promises_of(run, asked)
  if not (run.only and asked) then
    return run.only or asked
  end
  local wanted, both = checker.wanted(asked), {}
  for _, id in ipairs(run.only) do
    both[#both + 1] = wanted(id) and id or nil
  end
  return both
end

-- A run as it is made with what somebody asks for, which adds to what it says of itself. Nil where
-- it would try no promise that is asked for; and where something must be found with its limits, and
-- it would be made with others.
local function made(run, model, options)
  local whole = merged(run, options)
  whole.only = promises_of(run, options.only)
  whole.limits = (run.limits or options.limits) and merged(run.limits or {}, options.limits or {})
  if whole.only and #whole.only == 0 then
    return nil
  end
  local limits = merged(checker.model(model).limits, run.limits or {})
  for name, value in pairs(run.expect and options.limits or {}) do
    if limits[name] ~= value then
      return nil
    end
  end
  return whole
end

-- Those of a model. Where none of them would do, one is made within the bounds of the model.
local function runs_of(model, options, runs)
  local list = {}
  for _, run in ipairs(runs or checker.runs(model)) do
    local whole = made(run, model, options)
    list[#list + 1] = whole and { run = run, options = whole }
  end
  return #list > 0 and list or { { run = {}, options = made({}, model, options) } }
end

-- A run with one fault is one run for each fault, so that parts of them cover all of it.
local function halves(run, model)
  local kinds = run.kinds or checker.default_kinds(model)
  if (run.faults or checker.model(model).bounds.faults) ~= 1 or #kinds < 4 then
    return { run }
  end
  local parts = { {}, {} }
  for i, kind in ipairs(kinds) do
    table.insert(parts[i % 2 + 1], kind)
  end
  return { merged(run, { kinds = parts[1] }), merged(run, { kinds = parts[2] }) }
end

-- JSON has no infinity.
local function portable(verdict)
  verdict.limits, verdict.kinds, verdict.choices = nil, nil, nil
  return verdict
end

-- Faults that may strike in a run by its options, and did in none of its states. What a run left
-- out because it found something, or for want of memory, is not known.
local function idle_kinds(verdict, model, options)
  local idle = {}
  local is_known = verdict.complete and #verdict.findings == 0 and verdict.bounds.faults > 0
  for _, kind in ipairs(is_known and (options.kinds or checker.default_kinds(model)) or {}) do
    if not verdict.struck[kind] then
      idle[#idle + 1] = kind
    end
  end
  return idle
end

-- Adds to an entry which faults struck in a run, and which might have.
local function add_faults(entry, verdict)
  for kind in pairs(verdict.struck) do
    entry.struck[kind] = true
  end
  for _, kind in ipairs(verdict.idle) do
    entry.asked[kind] = true
  end
end

local function never_struck(entry)
  local idle = {}
  for kind in pairs(entry.asked) do
    idle[#idle + 1] = not entry.struck[kind] and kind or nil
  end
  table.sort(idle)
  return idle
end

---@param models string[]
---@param options checker.options that hold for all runs, and workers
---@param runs? table[] instead of those of the models
---@return table outcome { runs = verdicts,
---  models = { name -> { missing, reached, unmet, idle } } }; `idle` of a run or a model are
---  the faults that might have struck there, and never could
function matrix.run(models, options, runs)
  local jobs, shared = {}, merged(options, {})
  shared.workers = nil
  for _, model in ipairs(models) do
    for _, each in ipairs(runs_of(model, shared, runs)) do
      local whole = each.options
      for _, part in ipairs(options.workers > 1 and halves(whole, model) or { whole }) do
        jobs[#jobs + 1] = { model = model, options = part, run = each.run }
      end
    end
  end
  local verdicts = processes.map(jobs, options.workers, function(job)
    return portable(checker.check(job.model, job.options))
  end)
  local outcome = { runs = {}, models = {} }
  for i, job in ipairs(jobs) do
    local verdict, run = verdicts[i], job.run
    verdict.options = job.options
    verdict.expected, verdict.says = run.expect, run.says
    if run.expect then
      local found = verdict.findings[1] and verdict.findings[1].property == run.expect
      verdict.as_expected = found or false
    end
    outcome.runs[i] = verdict
    local entry = outcome.models[job.model] or { covered = {}, struck = {}, asked = {} }
    outcome.models[job.model] = entry
    verdict.idle = idle_kinds(verdict, job.model, job.options)
    add_faults(entry, verdict)
    coverage.add(entry.covered, verdict.covered)
  end
  for _, model in ipairs(models) do
    local entry, steps = outcome.models[model], checker.prepare(model, options)
    entry.missing, entry.reached = coverage.missing(steps.model, steps.server, entry.covered)
    entry.unmet, entry.idle = coverage.unmet(steps.model, entry.covered), never_struck(entry)
  end
  return outcome
end

return matrix
