-- SPDX-License-Identifier: Apache-2.0
-- Every script of the project in the debugger, from its first line to its end and back: it does
-- there what it does without one.
local Points = require('latchkey.debugger.points')
local catalog = require('latchkey.script.catalog')
local code_lines = require('latchkey.lua51.code_lines')

local cases = require('support.cases')
local debugging = require('support.debugging')
local helper = require('helper')

local STATES = { ['a free lock'] = cases.FREE, ['a lock that the caller holds'] = cases.HELD,
  ['a key of another type'] = cases.WRONG }

local function target_of(script, state)
  local world = helper.world()
  cases.fill(world, script.header, state)
  local keys, args = cases.call(script.header)
  local snapshot = world:snapshot()
  return { world = world, name = script.name, file = script.path, source = script.source,
    keys = keys, args = args, header = script.header,
    reset = function()
      world:restore(snapshot)
    end,
    run = function()
      return world:eval(script.name, keys, args)
    end }
end

local function line_of(stop)
  return tonumber(stop:match('^%d+'))
end

-- A script that fails stops once more at the line that failed.
local function without_error(stops)
  local list = {}
  for _, stop in ipairs(stops) do
    if not stop:find('error', 1, true) then
      list[#list + 1] = line_of(stop)
    end
  end
  return list
end

local function always(go)
  return setmetatable({}, { __index = function()
    return go
  end })
end

-- An order for every stop; at the end of the script it is over.
local function to_the_end(go)
  return always(function(_, about)
    return about.reason and go or 'quit'
  end)
end

local scripts = assert(catalog.read(helper.scripts))

-- LuaJIT alone tells which lines of a script have code.
if rawget(_G, 'jit') then
  it('stops at no line of a script that has no code', function()
    for _, script in ipairs(scripts) do
      local has_code = code_lines(script.source)
      for line in pairs(Points.new({}, script.source).stoppable) do
        assert.is_true(has_code[line], ('%s:%d'):format(script.path, line))
      end
    end
  end)
end

for _, script in ipairs(scripts) do
  describe(script.name .. ' in the debugger', function()
    for what, state in pairs(STATES) do
      it('steps to its end and does what it does without: ' .. what, function()
        local target = target_of(script, state)
        target.reset()
        local reply, err = target.run()
        local left, messages = target.world:dump(), target.world:messages()

        local told = debugging.play(target, to_the_end('step'))

        assert.equal(1, #told.ends)
        assert.same(reply, told.ends[1].reply)
        assert.same(err, told.ends[1].err)
        assert.same(left, target.world:dump())
        assert.same(messages, target.world:messages())
        assert.is_true(#told.stops >= 3)
      end)
    end

    it('stops at each of its lines, if asked to, and goes back over them', function()
      local is_run, backwards = {}, {}
      local target = target_of(script, cases.HELD)
      local forwards = without_error(debugging.play(target, to_the_end('step')).stops)
      local told = debugging.play(target, always(function(debugger, about)
        if not about.reason then
          return { go = 'goto', step = about.step }
        elseif about.reason ~= 'back' then
          return 'continue'
        end
        table.insert(backwards, 1, about.line)
        return about.step == 1 and 'quit' or { go = 'goto', step = debugger.step - 1 }
      end), {
        first = { go = 'continue' },
        prepare = function(debugger)
          for line in pairs(debugger.points.stoppable) do
            debugger.points.lines[line] = {}
          end
          for _, line in ipairs(forwards) do
            is_run[line] = debugger.points.stoppable[line]
          end
        end })

      for _, stop in ipairs(told.stops) do
        is_run[line_of(stop)] = stop:find('back', 1, true) and is_run[line_of(stop)] or nil
      end
      assert.same({}, is_run)
      assert.same(forwards, backwards)
    end)
  end)
end
