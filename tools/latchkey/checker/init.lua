-- SPDX-License-Identifier: Apache-2.0
-- The model checker: runs the script files on the mock in every order that clients, time and faults
-- can bring about, within bounds. docs/explanation/checker.md says how it is meant.
local Server = require('latchkey.checker.server')
local Steps = require('latchkey.checker.steps')
local agreement = require('latchkey.checker.agreement')
local catalog = require('latchkey.script.catalog')
local coverage = require('latchkey.checker.coverage')
local explorer = require('latchkey.checker.explorer')
local faults = require('latchkey.checker.faults')
local parts = require('latchkey.checker.parts')
local replay = require('latchkey.checker.replay')
local tried = require('latchkey.checker.tried')
local words = require('latchkey.checker.words')

local checker = {}

local MEMORY_MB = 1024
local SAMPLE_STEPS = 40

---@class checker.options
---@field scripts? string folder of the scripts; default "scripts"
---@field beside? string another folder of scripts, which every second client uses
---@field clients? integer
---@field rounds? integer how often each client takes the lock
---@field faults? integer how many strike in one run
---@field kinds? string[] which faults; default: all under which the promises hold
---@field only? string[] which properties; default: all
---@field limits? table lease, drift, recheck and the like, where they differ from the model's
---@field memo? boolean remember what scripts did; default true
---@field symmetric? boolean take interchangeable clients as one; default true
---@field reduce? boolean leave out orders that lead nowhere else; default true
---@field stop_at_first? boolean default true
---@field go_on? boolean a script that fails does not end the search; default false
---@field memory_mb? integer default 1024

local function merged(defaults, given)
  local all = {}
  for _, from in ipairs({ defaults, given or {} }) do
    for name, value in pairs(from) do
      all[name] = value
    end
  end
  return all
end

local function set_of(list)
  local set = {}
  for _, name in ipairs(list) do
    set[name] = true
  end
  return set
end

---@param only string[]|nil
---@return fun(property: string): boolean is it one of those?
function checker.wanted(only)
  local set = only and set_of(only)
  return function(property)
    return not set or set[property] or false
  end
end

local own_models = {}

---@param model string|table a family of tools/latchkey/checker/models, the file of a model of
---  somebody's own, or a model
---@return table
function checker.model(model)
  if type(model) == 'table' then
    return model
  elseif not model:find('%.lua$') then
    return assert(words.family(model))
  end
  own_models[model] = own_models[model] or assert(words.load(model))
  return own_models[model]
end

---Why the scripts of a model cannot be checked, if they cannot.
---@param folder string
---@return string|nil why such as a script that is missing, or whose header is none
function checker.unreadable(model, folder)
  local headers = {}
  model = checker.model(model)
  for _, script in ipairs(coverage.scripts(model)) do
    local file, findings = catalog.read_file(('%s/%s.lua'):format(folder, script))
    if not file then
      local finding = findings[1]
      local place = finding.line > 0 and ('%s:%d: '):format(finding.file, finding.line) or ''
      return place .. finding.message
    end
    headers[script] = file.header
  end
  return agreement.wrong(model, function(script)
    return headers[script]
  end)
end

---The promises of a list that nothing in the model tries, so that they would hold for nothing.
---@param options checker.options
---@return table[] untried { id, why }
function checker.untried(model, options)
  local steps, untried = checker.prepare(model, options), {}
  local set = tried.of(steps.model, steps.limits, steps.server)
  for _, id in ipairs(options.only or {}) do
    if not set[id] then
      untried[#untried + 1] = { id = id, why = tried.why(id) }
    end
  end
  return untried
end

---The faults that strike unless others are asked for: all under which the model's promises hold.
---@return string[]
function checker.default_kinds(model)
  return checker.model(model).faults or faults.default
end

---What a check runs with, for those who replay.
---@param options checker.options
function checker.prepare(model, options)
  model = checker.model(model)
  local bounds = merged(model.bounds, { clients = options.clients, rounds = options.rounds,
    faults = options.faults })
  local limits = merged(merged(model.limits, { rounds = bounds.rounds }), options.limits)
  local pool = parts.pool()
  local server = Server.new({ scripts = options.scripts or 'scripts', pool = pool,
    beside = options.beside, memo = options.memo ~= false, translate = model.translate,
    symmetric = options.symmetric ~= false, each_hour = options.reduce == false })
  local past_ms = model.past_ms
  local function header_of(script)
    return server:header(script)
  end
  pool.past_ms = type(past_ms) == 'function' and past_ms(header_of) or past_ms or pool.past_ms
  limits.owner_bytes = model.foreign
    and agreement.owner_bytes(parts.sorted_names(model.verbs), header_of) or nil
  return Steps.new({ model = model, bounds = bounds, limits = limits, pool = pool, server = server,
    kinds = set_of(options.kinds or checker.default_kinds(model)),
    reduce = options.reduce ~= false, wanted = checker.wanted(options.only) })
end

---Explores a model.
---@param model string|table
---@param options? checker.options
---@return table verdict { ok, complete, findings = { { property, message, script, line, trail } },
---  states, transitions, choices, executed, remembered, bounds, covered, struck, seconds }
function checker.check(model, options)
  options = options or {}
  local steps = checker.prepare(model, options)
  local started = os.clock()
  local probed = coverage.probe(steps)
  local outcome = explorer.run(steps, {
    symmetric = options.symmetric ~= false,
    stop_at_first = options.stop_at_first ~= false, go_on = options.go_on,
    memory_kb = (options.memory_mb or MEMORY_MB) * 1024,
    wanted = steps.wanted,
  })
  for i, finding in ipairs(probed) do
    if steps.wanted('G10') then
      table.insert(outcome.findings, i, finding)
    end
  end
  return {
    model = steps.model.file or steps.model.name, ok = #outcome.findings == 0 and outcome.complete,
    complete = outcome.complete, out_of_memory = outcome.out_of_memory,
    findings = outcome.findings, states = outcome.states, transitions = outcome.transitions,
    choices = outcome.choices,
    executed = steps.server.executed, remembered = steps.server.remembered,
    bounds = steps.bounds, kinds = steps.kinds, limits = options.limits,
    covered = steps.server.covered, struck = steps.struck,
    seconds = os.clock() - started,
  }
end

---Runs the steps that a replay names.
---@param text string
---@return table|nil finding nil if all is well to the end
function checker.replay(model, text, options)
  local run, why = checker.run(model, text, options)
  if not run then
    error(why, 2)
  end
  return run.finding
end

---The same with all that happened, for story.lua.
---@return table|nil run
---@return string|nil why a word of the text cannot be there
---@return table steps
function checker.run(model, text, options)
  options = merged(options, { reduce = false, memo = false })
  local steps = checker.prepare(model, options)
  local run, why = replay.run(steps, text, steps.wanted)
  return run, why, steps
end

---A run in which nothing goes wrong.
---@return table run
---@return table steps
function checker.sample(model, options)
  local steps = checker.prepare(model, merged(options, { reduce = false, memo = false,
    faults = 0 }))
  return replay.sample(steps, SAMPLE_STEPS), steps
end

---The runs of a model's default matrix, as options of `check`.
---@return table[]
function checker.runs(model)
  model = checker.model(model)
  return model.runs or { {} }
end

checker.faults = faults.kinds

checker.families = { 'mutex', 'lock', 'fenced', 'fair', 'rw', 'semaphore', 'permit', 'countdown',
  'guard', 'batch', 'period' }

return checker
