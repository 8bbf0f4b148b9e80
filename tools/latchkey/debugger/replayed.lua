-- SPDX-License-Identifier: Apache-2.0
-- The call of a checker's run in which its story went wrong, as a target.
local parts = require('latchkey.checker.parts')
local replay = require('latchkey.checker.replay')
local utils = require('pl.utils')

local replayed = {}

---@param steps table of checker.run
---@param run table
---@return table|nil target nil: no script ran in it
---@return table order of the first run: to the line that is to blame, or the first one
function replayed.of(steps, run)
  local last = replay.last_call(run)
  if not last then
    return nil, {}
  end
  local server, call = steps.server, last.call
  local world, keys, args = server:world_of(call), server:words_of(call, last.letter)
  local keyspace = last.step.before[steps.KEYS].data
  local file = ('%s/%s.lua'):format(server:folder(call), call.script)
  local blame = run.finding and replay.blame(steps, run)
  return {
    world = world, name = call.script, file = file, source = assert(utils.readfile(file, true)),
    keys = keys, args = args, header = server:header(call.script, call.beside),
    reset = function()
      world:replace(parts.shallow(keyspace))
      world:messages()
    end,
    run = function()
      return world:eval(call.script, keys, args)
    end,
  }, blame and { go = 'blame', line = blame.line,
    reason = ('%s violated'):format(run.finding.property) } or { go = 'step' }
end

return replayed
