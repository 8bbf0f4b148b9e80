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

---@param models string[]
---@param options checker.options that hold for all runs, and workers
---@param runs? table[] instead of those of the models
---@return table outcome { runs = verdicts, models = { name -> { missing, reached, unmet } } }
function matrix.run(models, options, runs)
  local jobs, shared = {}, merged(options, {})
  shared.workers = nil
  for _, model in ipairs(models) do
    for _, run in ipairs(runs or checker.runs(model)) do
      local whole = merged(run, shared)
      for _, part in ipairs(options.workers > 1 and halves(whole, model) or { whole }) do
        jobs[#jobs + 1] = { model = model, options = part, run = run }
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
    local entry = outcome.models[job.model] or { covered = {} }
    outcome.models[job.model] = entry
    coverage.add(entry.covered, verdict.covered)
  end
  for _, model in ipairs(models) do
    local entry, steps = outcome.models[model], checker.prepare(model, options)
    entry.missing, entry.reached = coverage.missing(steps.model, steps.server, entry.covered)
    entry.unmet = coverage.unmet(steps.model, entry.covered)
  end
  return outcome
end

return matrix
