-- SPDX-License-Identifier: Apache-2.0
-- The lock ends after the work, never before: every way to end an exec, with every kind of job.
-- LK_TEST_ROUNDS=20 does all of it so often; LK_TEST_ONLY=TEXT only cases whose names hold that.
local unistd = require('posix.unistd')

local job_cases = require('cli.job_cases')
local program = require('cli.program')

local ROUNDS = tonumber(os.getenv('LK_TEST_ROUNDS') or 1)
local AT_A_TIME = tonumber(os.getenv('LK_TEST_PARALLEL') or 25)
local ONLY = os.getenv('LK_TEST_ONLY') or ''

describe('latchkey exec holds its lock for all of its job', function()
  local names, results = {}, {}

  local function each(visit)
    for _, way in ipairs(job_cases.WAYS) do
      for _, job in ipairs(job_cases.JOBS) do
        local name = ('through %s: %s'):format(way.name, job.name)
        if name:find(ONLY, 1, true) and (not job.root or unistd.geteuid() == 0) then
          visit(name, way, job)
        end
      end
    end
  end

  setup(function()
    local server, functions = program.server(), {}
    for _ = 1, ROUNDS do
      each(function(name, way, job)
        table.insert(names, name)
        table.insert(functions, job_cases.case(server, way, job))
      end)
    end
    for i, result in ipairs(job_cases.run_all(functions, AT_A_TIME)) do
      results[names[i]] = results[names[i]] or {}
      table.insert(results[names[i]], result)
    end
  end)

  teardown(program.clean)

  each(function(name)
    it(name, function()
      local failed = {}
      assert.equal(ROUNDS, #results[name])
      for _, result in ipairs(results[name]) do
        table.insert(failed, not result.good and result.err or nil)
      end
      assert.same({}, failed)
    end)
  end)
end)
