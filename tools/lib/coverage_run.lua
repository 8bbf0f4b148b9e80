-- SPDX-License-Identifier: Apache-2.0
-- A helper of busted: measures the scripts while the specs run them on the mock, prints the table,
-- and fails the run when anything was never reached.
local busted = require('busted')
local catalog = require('latchkey.script.catalog')
local Coverage = require('lib.coverage')
local runner = require('latchkey.mock.runner')

local coverage = Coverage.new(assert(catalog.read('scripts')))
local run_script, getinfo = runner.run, debug.getinfo

-- Is a function one of a script? To ask where it was written takes longer than anything else here.
local is_of_script = setmetatable({}, { __mode = 'k', __index = function(self, func)
  self[func] = getinfo(func, 'S').source == '@user_script'
  return rawget(self, func)
end })

-- Compiled code calls no hooks.
jit.off()

function runner.run(world, script, ...)
  local name = script.header and script.header.name
  if not name then
    return run_script(world, script, ...)
  end
  debug.sethook(function(_, line)
    if is_of_script[getinfo(2, 'f').func] then
      coverage:line(name, line)
    end
  end, 'l')
  local reply, err = run_script(world, script, ...)
  debug.sethook()
  coverage:outcome(name, reply, err)
  return reply, err
end

-- Before the output handlers, so that they count the error; the table comes behind their summary.
busted.subscribe({ 'suite', 'end' }, function()
  local report, is_complete = coverage:report()
  busted.subscribe({ 'exit' }, function()
    io.write('\n', report)
  end)
  if not is_complete then
    local message = 'the specs do not reach everything in the scripts'
    busted.publish({ 'error' }, { descriptor = 'coverage', name = 'coverage' }, nil, message,
      { message = message, short_src = 'scripts', currentline = 0, traceback = '' })
  end
  return nil, true
end, { priority = 1 })

-- What all files of specs use, once; behind what is changed here.
require('shared')
