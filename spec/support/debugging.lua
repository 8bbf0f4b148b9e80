-- SPDX-License-Identifier: Apache-2.0
-- A debugger that is told beforehand what to do at each stop, and what it said.
local Debugger = require('latchkey.debugger')
local World = require('latchkey.mock.world')
local helper = require('helper')

local debugging = {}

---A script that is of no folder, as a target.
---@param source string
---@param options? { keys: string[], args: string[], before: table, strict: boolean }
function debugging.target(source, options)
  options = options or {}
  local world = World.new({ strict = options.strict or false })
  helper.fill(world, options.before or {})
  local keys, args = options.keys or {}, options.args or {}
  assert(world:add('own/script', source))
  local snapshot = world:snapshot()
  return { world = world, name = 'own/script', file = 'own/script.lua', source = source,
    keys = keys, args = args,
    reset = function()
      world:restore(snapshot)
    end,
    run = function()
      return world:eval('own/script', keys, args)
    end }
end

---@param target table
---@param orders (table|string|function)[] one for each stop and end: an order, its "go", or a
---  function of the debugger and the stop that gives one of both. After the last it quits
---@param options? table of Debugger.new, and `first`: the order of the first run
---@return table told { stops, ends, calls, debugger }; a stop's `at` is "LINE reason"
function debugging.play(target, orders, options)
  options = options or {}
  local told, view, turn = { stops = {}, ends = {}, calls = {}, said = {} }, {}, 0
  local function answer(about)
    turn = turn + 1
    local order = orders[turn]
    if type(order) == 'function' then
      order = order(told.debugger, about)
    end
    return type(order) == 'string' and { go = order } or order or { go = 'quit' }
  end
  function view.stopped(_, stop)
    told.stops[#told.stops + 1] = ('%d %s'):format(stop.line, stop.reason)
    return answer(stop)
  end
  function view.ended(_, outcome)
    told.ends[#told.ends + 1] = outcome
    return answer(outcome)
  end
  function view.called(_, call)
    told.calls[#told.calls + 1] = table.concat(call.words, ' ')
  end
  function view.said(_, ...)
    told.said[#told.said + 1] = { n = select('#', ...), ... }
  end
  told.debugger = Debugger.new(target, view, options)
  if options.prepare then
    options.prepare(told.debugger)
  end
  told.debugger:start(options.first or { go = 'step' })
  return told
end

return debugging
