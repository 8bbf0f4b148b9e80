-- SPDX-License-Identifier: Apache-2.0
-- Runs one target of targets.lua: first the kept inputs, then changed ones, each of which follows
-- from its number. The first finding ends the run.
local run = {}

-- Seconds of the processor that one input may take.
run.LIMIT_S = 5
-- Instructions between two looks at the clock.
local STEP = 1000000

local function traced(err)
  return debug.traceback(tostring(err), 2)
end

-- What is wrong with how a reader takes an input; nil: nothing.
function run.once(read, input, limit_s)
  local began, hung = os.clock(), false
  local function look()
    if os.clock() - began > limit_s then
      hung = true
      error('it takes too long', 0)
    end
  end
  debug.sethook(look, '', STEP)
  local good, why = xpcall(function() read(input) end, traced)
  debug.sethook()
  if hung or os.clock() - began > limit_s then -- some readers catch errors, or have a hook too
    return ('more than %g s: %s'):format(limit_s, tostring(why))
  end
  return not good and why or nil
end

---The input of this number.
---@param target table
---@param seeds string[]
---@param chance table of mutations.chance(number)
function run.input(target, seeds, chance)
  return target.change(chance, chance:one(seeds))
end

---@param target table { change, read }
---@param seeds string[] kept inputs
---@param about { first: integer, runs: integer|nil, seconds: number|nil, limit_s: number|nil,
---  clock: fun(): number, progress: fun(number: integer)|nil }
---@return integer runs
---@return { number: integer, input: string, why: string }|nil finding; of a kept input number 0
function run.all(target, seeds, about)
  local limit_s, done = about.limit_s or run.LIMIT_S, 0
  for _, input in ipairs(seeds) do
    local why = run.once(target.read, input, limit_s)
    done = done + 1
    if why then
      return done, { number = 0, input = input, why = why }
    end
  end
  local ends = about.seconds and about.clock() + about.seconds
  local number = about.first
  while (not about.runs or number < about.first + about.runs)
    and (not ends or about.clock() < ends) do
    if about.progress then
      about.progress(number)
    end
    local chance = require('lib.fuzz.mutations').chance(number)
    local input = run.input(target, seeds, chance)
    local why = run.once(target.read, input, limit_s)
    done = done + 1
    if why then
      return done, { number = number, input = input, why = why }
    end
    number = number + 1
  end
  return done
end

return run
