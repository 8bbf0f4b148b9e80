-- SPDX-License-Identifier: Apache-2.0
-- Makes wrong versions of scripts and looks which of them the specs and the model checker catch.
local dir = require('pl.dir')
local path = require('pl.path')
local stringx = require('pl.stringx')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local coverage = require('latchkey.checker.coverage')
local mistakes = require('latchkey.checker.mistakes')
local mutants = require('latchkey.mutate.mutants')
local processes = require('latchkey.processes')
local digest = require('latchkey.digest')
local specs = require('latchkey.mutate.specs')
local temporary_folder = require('latchkey.temporary_folder')
local words = require('latchkey.checker.words')

local mutate = {}

-- How long the specs of a script may take as it is, and as a mutant: a busy machine is slower, but
-- not so much. A script that never ends is stopped by the mock long before.
local SPECS_S, MUTANT_SPECS_S = 120, 360
-- How long the checker may look at a mutant: so many times as long as at the scripts as they are.
local CHECKER_S, TIMES = 120, 10

---@class mutate.subject
---@field root string the folder of tools/, and of spec/ where the scripts are latchkey's
---@field scripts string their folder
---@field is_own boolean are they latchkey's?
---@field specs? string[] files or folders of specs, of somebody else's scripts
---@field models? string[] files of models, of somebody else's scripts
---@field equivalent? string the file of mutants that do no harm

---What `latchkey mutate` is about where nothing else is said.
---@param root string
---@return mutate.subject
function mutate.own(root)
  return { root = root, scripts = path.join(root, 'scripts'), is_own = true,
    equivalent = path.join(root, 'tools/latchkey/mutate/equivalent.tsv') }
end

---Mutants that do no harm, each with the reason: id -> reason.
---@param subject mutate.subject
---@return table<string, string> reasons
---@return string[] ids in the order of the file
---@return string|nil wrong the first line that is no row
function mutate.equivalent(subject)
  local reasons, ids, wrong = {}, {}, nil
  local text = subject.equivalent and assert(utils.readfile(subject.equivalent, true)) or ''
  for number, line in ipairs(stringx.splitlines(text)) do
    local id, _, reason = line:match('^([^\t#]+)\t([^\t]+)\t([^\t]+)$')
    if id then
      reasons[id], ids[#ids + 1] = reason, id
    elseif line:find('^[^#]') and line:find('%S') then
      wrong = wrong or ('%s:%d: a row is a mutant, what it changes and why that does no harm, a '
        .. 'tab apart'):format(subject.equivalent, number)
    end
  end
  return reasons, ids, wrong
end

---The mutants of all scripts, or of the named ones.
---@param subject mutate.subject
---@param names? table<string, boolean> scripts
---@return table[] mutants
function mutate.list(subject, names)
  local list = {}
  for _, mutant in ipairs(mutants.of_all(assert(catalog.read(subject.scripts)))) do
    if not names or names[mutant.script] then
      list[#list + 1] = mutant
    end
  end
  return list
end

---As many as asked for, always the same ones as long as the scripts stay as they are.
function mutate.sample(list, count)
  local ordered, order = {}, {}
  for i, mutant in ipairs(list) do
    ordered[i], order[mutant] = mutant, digest.sha1(mutant.id)
  end
  table.sort(ordered, function(a, b)
    return order[a] < order[b]
  end)
  return { unpack(ordered, 1, math.min(count, #ordered)) }
end

-- The models of the families that scripts are in, as far as the checker has them; or those that
-- were named.
local function models_of(subject, variants)
  local models, seen = {}, {}
  if not subject.is_own then
    return subject.models
  end
  for _, variant in ipairs(variants) do
    local family = variant.name:match('^[^/]+')
    if not seen[family] and words.family(family) then
      models[#models + 1] = family
    end
    seen[family] = true
  end
  return models
end

-- A contract is of the bytes that stand beside it now.
local function contract_of(script, source)
  local sha1 = digest.sha1(source)
  return (script.contract:gsub('\nsha1:(%s*)%x+', '\nsha1:%1' .. sha1, 1))
end

-- A copy of the scripts, in which the variants stand.
local function copy_scripts(subject, folder, variants)
  local texts = {}
  for _, variant in ipairs(variants) do
    texts[variant.name] = mutants.source_of(variant)
  end
  for _, script in ipairs(assert(catalog.read(subject.scripts))) do
    local stem, source = path.join(folder, script.name), texts[script.name] or script.source
    assert(dir.makepath(path.dirname(stem)))
    assert(utils.writefile(stem .. '.lua', source, true))
    if script.contract then
      assert(utils.writefile(stem .. '.contract', contract_of(script, source), true))
    end
  end
end

-- latchkey's own models are tried within their bounds, which takes seconds; somebody else's in all
-- of their default runs: there is no other look at them.
local function runs_of(subject, model)
  return subject.is_own and { {} } or require('latchkey.checker').runs(model)
end

-- Before a reason why it is not known whether something is caught.
local UNKNOWN = '?'

-- What a check of the model by itself would fail for.
local function look(subject, model, folder)
  local checker = require('latchkey.checker')
  local covered, unknown = {}, nil
  for _, run in ipairs(runs_of(subject, model)) do
    local options = tablex.copy(run)
    options.scripts = folder
    local good, verdict = pcall(checker.check, model, options)
    if not good then
      return mistakes.text(verdict) or error(verdict, 0)
    elseif verdict.findings[1] then
      return ('%s: %s'):format(verdict.findings[1].property, verdict.findings[1].message)
    end
    unknown = unknown or verdict.out_of_memory and UNKNOWN .. 'the memory did not suffice' or nil
    coverage.add(covered, verdict.covered)
  end
  return unknown or coverage.unmet(checker.model(model), covered)[1]
end

---What the models of the scripts' families find.
---@param subject mutate.subject
---@param variants table[] of a mutant: what stands in the place of scripts
---@return string|nil finding with UNKNOWN before it, why there may be one
local function check(subject, variants)
  local folder, remove = temporary_folder.make('latchkey-mutate')
  assert(folder, remove)
  local finding
  local ok, why = pcall(function()
    copy_scripts(subject, folder, variants)
    for _, model in ipairs(models_of(subject, variants)) do
      local found = look(subject, model, folder)
      if found and (not finding or finding:sub(1, 1) == UNKNOWN) then
        finding = found
      end
    end
  end)
  remove()
  assert(ok, why)
  return finding
end

-- Sets `by`, what caught it, on the mutants that are caught, and `unknown` on those that took too
-- long or too much. Where a check itself fails, nothing is known: that ends the run.
local function hunt(list, options, limit_s, what, run)
  local defect
  processes.each(list, { workers = options.workers, limit_s = limit_s }, run,
    function(mutant, result, broken, late)
      if broken then
        defect = defect or ('%s of %s: %s'):format(what, mutant.id, broken)
      elseif late then
        mutant.unknown = ('%s: it took longer than %.0f s'):format(what, limit_s)
      elseif result:sub(1, 1) == UNKNOWN then
        mutant.unknown = ('%s: %s'):format(what, result:sub(2))
      elseif result ~= '' then
        mutant.by = ('%s: %s'):format(what, result)
        options.tell(mutant)
      end
    end)
  if defect then
    error(defect, 0)
  end
end

local function has_specs(subject)
  return subject.is_own or #subject.specs > 0
end

-- The scripts as they are must pass, before and afterwards: else all that fails would count as
-- caught, also where somebody has been at work on the specs meanwhile.
local function check_originals(list, options)
  local originals, seen = {}, {}
  if not has_specs(options.subject) then
    return true
  end
  local scripts = assert(catalog.read(options.subject.scripts))
  for _, mutant in ipairs(list) do
    for _, variant in ipairs(mutant.variants) do
      if not seen[variant.name] then
        seen[variant.name] = true
        originals[#originals + 1] = { id = variant.name, name = variant.name,
          source = scripts[variant.name].source }
      end
    end
  end
  hunt(originals, { workers = options.workers, tell = function() end }, SPECS_S, 'specs',
    function(original)
      return specs.first_failure(options.subject, original.name, original.source)
    end)
  for _, original in ipairs(originals) do
    local why = original.by or original.unknown
    if why then
      return nil, ('%s fails as it is: %s'):format(original.name, why)
    end
  end
  return true
end

-- latchkey's own models have runs of their own; somebody else's must pass first, as the specs do.
local function check_models(options)
  local models = not options.subject.is_own and options.checker and options.subject.models or {}
  for _, model in ipairs(models) do
    local finding = check(options.subject, {})
    if finding then
      return nil, ('%s fails as it is: %s'):format(model, (finding:gsub('^%' .. UNKNOWN, '')))
    end
  end
  return true
end

-- The models may be about much, and the machine slow: what takes long may do so as a mutant.
local function timed_models(options)
  local began = processes.now_s()
  local good, why = check_models(options)
  local limit_s = math.max(CHECKER_S, math.ceil(TIMES * (processes.now_s() - began)))
  return good, why, options.checker_s or limit_s
end

local function alive(list, wanted)
  local left = {}
  for _, mutant in ipairs(list) do
    if not mutant.by and wanted(mutant) then
      left[#left + 1] = mutant
    end
  end
  return left
end

-- The specs of the first script that a mutant is in, and while they let it pass, of the next one.
local function hunt_by_specs(list, options)
  local place, left = 1, has_specs(options.subject) and list or {}
  while #left > 0 do
    hunt(left, options, MUTANT_SPECS_S, 'spec', function(mutant)
      local variant = mutant.variants[place]
      return specs.first_failure(options.subject, variant.name, mutants.source_of(variant))
    end)
    place = place + 1
    left = alive(left, function(mutant)
      return mutant.variants[place]
    end)
  end
end

---@class mutate.options
---@field subject mutate.subject
---@field workers integer
---@field checker boolean let the model checker look at what the specs let pass
---@field checker_s? number how long it may take; default: ten times as long as without any change
---@field tell fun(mutant: table) called for each mutant that is caught

---Looks which mutants are caught: each gets `fate`: killed, with `by`; equivalent, with `reason`;
---unknown, with `unknown`, why; alive.
---@param list table[] of mutate.list
---@param options mutate.options
---@return table[]|nil list
---@return string|nil why the specs fail without any change
function mutate.run(list, options)
  local subject = options.subject
  local reasons = mutate.equivalent(subject)
  specs.prepare(subject)
  local good, why, checker_s = timed_models(options)
  if good then
    good, why = check_originals(list, options)
  end
  if good then
    hunt_by_specs(list, options)
    good, why = check_originals(list, options)
  end
  if not good then
    return nil, why
  end
  local left = options.checker and alive(list, function(mutant)
    return not reasons[mutant.id] and #models_of(subject, mutant.variants) > 0
  end) or {}
  hunt(left, options, checker_s, 'checker', function(mutant)
    return check(subject, mutant.variants)
  end)
  for _, mutant in ipairs(list) do
    mutant.reason = not mutant.by and reasons[mutant.id] or nil
    mutant.fate = mutant.by and 'killed' or mutant.reason and 'equivalent'
      or mutant.unknown and 'unknown' or 'alive'
  end
  return list
end

return mutate
