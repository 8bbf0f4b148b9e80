-- SPDX-License-Identifier: Apache-2.0
-- A call that a client wrote down in a trace (docs/reference/trace.md), as a target: those before
-- it run first, each at its time. What other processes did is in no file of this one.
local path = require('pl.path')

local World = require('latchkey.mock.world')
local catalog = require('latchkey.script.catalog')
local events = require('latchkey.checker.events')

local recorded = {}

local function misuse(message)
  return { status = 'LK_INVALID', message = message,
    hint = 'latchkey debug --help lists the options' }
end

-- The calls of a trace up to a line; the last is the one of that line, or before it.
local function calls_of(file, most)
  local handle, why = events.open(file)
  if not handle then
    return nil, why
  end
  local calls, number = {}, 0
  for line in handle:lines() do
    number = number + 1
    local event, wrong = events.read(line)
    if not event then
      handle:close()
      return nil, ('%s:%d: %s'):format(file, number, wrong)
    elseif event.e == 'sent' then
      calls[#calls + 1] = event
    end
    if number == most then
      break
    end
  end
  handle:close()
  if number < most then
    return nil, ('%s has %d lines'):format(file, number)
  elseif #calls == 0 then
    return nil, ('no call was sent before %s:%d'):format(file, most)
  end
  return calls
end

local function run(world, call, from_us)
  local late_ms = math.floor((call.t - from_us) / 1000)
  local passed_ms = world.clock.ms - world.began_ms
  if late_ms > passed_ms then
    world:advance(late_ms - passed_ms)
  end
  return world:eval(call.script, call.keys, call.args)
end

---@param home string
---@param args { trace: string, dir: string|nil, no_strict: boolean|nil } FILE:LINE
---@return table|nil target
---@return table|nil failure
function recorded.of(home, args)
  local file, line = args.trace:match('^(.+):(%d+)$')
  if not file or tonumber(line) < 1 then
    return nil, misuse(('--trace %s is not FILE:LINE, with a line from 1 on'):format(args.trace))
  end
  local calls, why = calls_of(file, tonumber(line))
  if not calls then
    return nil, misuse('--trace ' .. why)
  end
  local folder = args.dir or path.join(home, 'scripts')
  local last = calls[#calls]
  local script_file = ('%s/%s.lua'):format(folder, last.script)
  local script, findings = catalog.read_file(script_file)
  if not script then
    return nil, { status = 'LK_NO_SCRIPT', message = ('%s: %s'):format(script_file,
      findings[1].message), hint = 'write --dir with the folder that the client used' }
  end
  local world = World.new({ scripts = folder, strict = not args.no_strict })
  world.began_ms = world.clock.ms
  for i = 1, #calls - 1 do
    run(world, calls[i], calls[1].t)
  end
  local snapshot = world:snapshot()
  return { world = world, name = last.script, file = script.path, source = script.source,
    keys = last.keys, args = last.args, header = script.header,
    reset = function()
      world:restore(snapshot)
      world:messages()
    end,
    run = function()
      return run(world, last, calls[1].t)
    end }
end

return recorded
