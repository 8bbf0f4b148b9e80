-- SPDX-License-Identifier: Apache-2.0
-- Makes wrong versions of scripts and looks which of them the specs and the model checker catch.
local dir = require('pl.dir')
local path = require('pl.path')
local stdlib = require('posix.stdlib')
local utils = require('pl.utils')

local catalog = require('lib.catalog')
local mutants = require('mutate.mutants')
local pool = require('mutate.pool')
local sha1 = require('lib.sha1')
local specs = require('mutate.specs')

local mutate = {}

-- A script that never ends is stopped by the mock long before.
local SPECS_S, CHECKER_S = 120, 120

---Mutants that do no harm, each with the reason: id -> reason.
---@param root string
---@return table<string, string> reasons
---@return string[] ids in the order of the file
function mutate.equivalent(root)
  local reasons, ids = {}, {}
  for line in assert(utils.readfile(path.join(root, 'tools/mutate/equivalent.tsv'), true))
    :gmatch('[^\n]+') do
    local id, _, reason = line:match('^([^\t#]+)\t([^\t]+)\t([^\t]+)$')
    if id then
      reasons[id], ids[#ids + 1] = reason, id
    end
  end
  return reasons, ids
end

---The mutants of all scripts, or of the named ones.
---@param root string
---@param names? table<string, boolean> scripts
---@return table[] mutants
function mutate.list(root, names)
  local list = {}
  for _, mutant in ipairs(mutants.of_all(assert(catalog.read(path.join(root, 'scripts'))))) do
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
    ordered[i], order[mutant] = mutant, sha1.hex(mutant.id)
  end
  table.sort(ordered, function(a, b)
    return order[a] < order[b]
  end)
  return { unpack(ordered, 1, math.min(count, #ordered)) }
end

-- The models of the families that a mutant is in, as far as the checker has them.
local function models_of(mutant)
  local models, seen = {}, {}
  for _, variant in ipairs(mutant.variants) do
    local family = variant.name:match('^[^/]+')
    if not seen[family] and package.searchpath('checker.models.' .. family, package.path) then
      models[#models + 1] = family
    end
    seen[family] = true
  end
  return models
end

-- A copy of the scripts in which the mutant stands.
local function check(root, mutant)
  local checker = require('checker')
  local temporary = os.getenv('TMPDIR') or '/tmp'
  local folder = assert(stdlib.mkdtemp(temporary .. '/latchkey-mutate-XXXXXX'))
  local copy = path.join(folder, 'scripts')
  dir.clonetree(path.join(root, 'scripts'), copy, dir.copyfile)
  for _, variant in ipairs(mutant.variants) do
    utils.writefile(path.join(copy, variant.name .. '.lua'), variant.source, true)
  end
  local finding
  local ok, why = pcall(function()
    for _, model in ipairs(models_of(mutant)) do
      finding = finding or checker.check(model, { scripts = copy }).findings[1]
    end
  end)
  dir.rmtree(folder)
  assert(ok, why)
  return finding and ('%s: %s'):format(finding.property, finding.message)
end

-- Sets `by`, what caught it, on the mutants that are caught. A failure of the process is a catch,
-- too: a mutant may not end.
local function hunt(list, options, limit_s, what, run)
  pool.each(list, { workers = options.workers, limit_s = limit_s }, run,
    function(mutant, result, failure)
      if failure or result ~= '' then
        mutant.by = ('%s: %s'):format(what, failure or result)
        options.tell(mutant)
      end
    end)
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
  local place, left = 1, list
  while #left > 0 do
    hunt(left, options, SPECS_S, 'spec', function(mutant)
      local variant = mutant.variants[place]
      return specs.first_failure(options.root, variant.name, variant.source)
    end)
    place = place + 1
    left = alive(left, function(mutant)
      return mutant.variants[place]
    end)
  end
end

---@class mutate.options
---@field root string the folder of scripts/, spec/ and tools/
---@field workers integer
---@field checker boolean let the model checker look at what the specs let pass
---@field tell fun(mutant: table) called for each mutant that is caught

---Looks which mutants are caught: each gets `fate`: killed, with `by`; equivalent, with `reason`;
---alive.
---@param list table[] of mutate.list
---@param options mutate.options
---@return table[] list
function mutate.run(list, options)
  local reasons = mutate.equivalent(options.root)
  specs.prepare()
  hunt_by_specs(list, options)
  local left = options.checker and alive(list, function(mutant)
    return not reasons[mutant.id] and #models_of(mutant) > 0
  end) or {}
  hunt(left, options, CHECKER_S, 'checker', function(mutant)
    return check(options.root, mutant)
  end)
  for _, mutant in ipairs(list) do
    mutant.reason = not mutant.by and reasons[mutant.id] or nil
    mutant.fate = mutant.by and 'killed' or mutant.reason and 'equivalent' or 'alive'
  end
  return list
end

return mutate
