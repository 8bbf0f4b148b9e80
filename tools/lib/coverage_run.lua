-- SPDX-License-Identifier: Apache-2.0
-- A helper of busted: measures the scripts while the specs run them on the mock, prints the table,
-- and fails the run when anything was never reached.
local busted = require('busted')
local catalog = require('latchkey.script.catalog')
local Coverage = require('lib.coverage')
local runner = require('latchkey.mock.runner')

local coverage = Coverage.new(assert(catalog.read('scripts')))
local run_script, running = runner.run, nil

-- Compiled code calls no hooks.
jit.off()

function runner.run(world, script, ...)
  running = script.header and script.header.name
  local reply, err = run_script(world, script, ...)
  if running then
    coverage:outcome(running, reply, err)
    running = nil
  end
  return reply, err
end

debug.sethook(function(_, line)
  if running and debug.getinfo(2, 'S').source == '@user_script' then
    coverage:line(running, line)
  end
end, 'l')

-- Before the output handlers, so that they count the error; the table comes behind their summary.
busted.subscribe({ 'suite', 'end' }, function()
  debug.sethook()
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
