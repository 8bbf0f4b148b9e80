-- SPDX-License-Identifier: Apache-2.0
local tablex = require('pl.tablex')

local Points = require('latchkey.debugger.points')
local debugging = require('support.debugging')
local helper = require('helper')
local sorted = require('latchkey.sorted')

-- Lines are counted by the specs.
local COUNT = [[
local key = KEYS[1]
local function add(n)
  local old = redis.call('GET', key)
  local new = (old or 0) + n
  redis.call('SET', key, new)
  return new
end
local sum = 0
for i = 1, 3 do
  sum = sum + add(i)
end
return sum
]]

local function count(orders, options)
  return debugging.play(debugging.target(COUNT, { keys = { 'k' } }), orders, options)
end

local function at(line, condition)
  return function(debugger)
    debugger.points.lines[line] = { condition = condition }
  end
end

describe('the debugger', function()
  it('steps into functions, over them and out of them', function()
    local told = count({ 'next', 'next', 'next', 'step', 'next', 'out', 'next', 'next', 'out' })

    assert.same({ '1 start', '8 step over', '9 step over', '10 step over', '3 step over',
      '4 step over', '9 step over', '10 step over', '9 step over' }, told.stops)
    assert.equal(10, told.ends[1].reply)
    assert.same({ 'GET k', 'SET k 1', 'GET k', 'SET k 3', 'GET k', 'SET k 6' }, told.calls)
  end)

  it('stops at break points, and there only where their condition holds', function()
    assert.same({ '5 break point', '5 break point', '5 break point' },
      count({ 'continue', 'continue', 'continue' },
        { first = { go = 'continue' }, prepare = at(5) }).stops)
    assert.same({ '5 break point' }, count({ 'continue' },
      { first = { go = 'continue' }, prepare = at(5, 'n == 2 and new == 3') }).stops)
  end)

  it('stops where a condition fails, and says why', function()
    local why
    local told = count({ function(_, stop)
      why = stop.text
    end }, { first = { go = 'continue' }, prepare = at(5, 'nobody.at') })

    assert.same({ '5 break point' }, told.stops)
    assert.matches("the condition nobody.at fails: .*nonexistent global variable 'nobody'", why)
  end)

  it('runs to a line, and to the next command that writes, before it does', function()
    local seen = {}
    local told = count({ { go = 'line', line = 4 }, 'write', function(debugger)
      seen[1] = debugger.world:keys().k
      return 'write'
    end, function(debugger)
      seen[2] = debugger.world:keys().k.value
      return 'continue'
    end })

    assert.same({ '1 start', '4 line', '5 write', '5 write' }, told.stops)
    assert.same({ nil, '1' }, seen)
    assert.equal(10, told.ends[1].reply)
  end)

  it('stops when a watched key has changed', function()
    local told = count({ 'continue', 'continue', 'continue' }, {
      first = { go = 'continue' },
      prepare = function(debugger)
        debugger.points:watch('k', true)
      end })

    assert.same({ '6 watched key', '6 watched key', '6 watched key' }, told.stops)
  end)

  it('goes back, over functions that were called meanwhile', function()
    local told = count({ 'next', 'next', 'next', 'next', 'back', 'back', 'step', 'step', 'back',
      'back' })

    assert.same({ '1 start', '8 step over', '9 step over', '10 step over', '9 step over',
      '10 back', '9 back', '10 step over', '3 step over', '10 back', '9 back' }, told.stops)
  end)

  it('goes back from the end, and to the break point before', function()
    local told = count({ 'continue', 'continue', 'continue', 'continue', 'back', 'rewind', 'rewind',
      'rewind', 'rewind' }, { prepare = at(5) })

    assert.same({ '1 start', '5 break point', '5 break point', '5 break point', '12 back',
      '5 break point', '5 break point', '5 break point', '1 start' }, told.stops)
    assert.equal(1, #told.ends)
  end)

  it('shows the keyspace as it was at the line that it has gone back to', function()
    local values = {}
    count({ 'continue', 'continue', function(debugger)
      values[1] = debugger.world:keys().k.value
      return 'rewind'
    end, function(debugger)
      values[2] = debugger.world:keys().k
    end }, { prepare = at(5) })

    assert.same({ '1', nil }, values)
  end)

  it('lets variables be set, and sets them again when it comes there again', function()
    local function set_n(debugger, stop)
      assert(debugger:evaluate(stop.frames[1], 'n = 40'))
      debugger:meddle(function(frame)
        assert(debugger:evaluate(frame, 'n = 40'))
      end)
      return 'next'
    end
    local told = count({ 'continue', set_n, 'next', 'back', 'continue' },
      { prepare = at(3, 'n == 3') })
    assert.same({ '1 start', '3 break point', '4 step over', '5 step over', '4 back' }, told.stops)
    assert.equal(1 + 3 + 43, told.ends[1].reply)

    -- Gone back before it was done, or to where it was done, it is undone.
    told = count({ 'continue', set_n, 'back', 'continue', 'continue' },
      { prepare = at(3, 'n == 3') })
    assert.equal(10, told.ends[1].reply)
    told = count({ 'continue', set_n, 'back', function(debugger, stop)
      assert.equal(3, debugger:evaluate(stop.frames[1], 'n')[1])
      return 'next'
    end, 'next', 'back', function(debugger, stop)
      assert.equal(3, debugger:evaluate(stop.frames[1], 'n')[1])
    end }, { prepare = at(3, 'n == 3') })
    assert.same({ '1 start', '3 break point', '4 step over', '3 back', '4 step over',
      '5 step over', '4 back' }, told.stops)
  end)

  it('tells the variables of each function that is under way', function()
    local values = {}
    count({ 'continue', function(debugger, stop)
      for place, code in ipairs({ 'n', 'key', 'KEYS[1]', 'old' }) do
        values[place] = assert(debugger:evaluate(stop.frames[1], code))[1]
      end
      values[5] = assert(debugger:evaluate(stop.frames[2], 'sum'))[1]
      values[6] = stop.frames[1].name .. ' ' .. stop.frames[2].name
    end }, { prepare = at(4, 'n == 2') })

    assert.same({ 2, 'k', 'k', '1', 1, 'add (script)' }, values)
  end)

  it('runs what is typed outside the accounts of strict mode', function()
    local target = debugging.target("return redis.call('TIME')[1]", { strict = true })
    local told = debugging.play(target, { function(debugger, stop)
      local now = target.world.clock.ms
      assert(debugger:evaluate(stop.frames[1], "redis.call('TIME') and redis.call('TIME')"))
      assert.equal(now, target.world.clock.ms)
      return 'continue'
    end })

    assert.is_nil(told.ends[1].err)
  end)

  it('stops at the line that fails, once, and then says the error', function()
    local told = debugging.play(debugging.target('local a = 1\nlocal b = {}\nreturn a + b.c.d\n'),
      { 'continue', 'back', 'continue', 'quit' })

    assert.same({ '1 start', '3 error', '2 back' }, told.stops)
    assert.equal(3, told.ends[1].err.line)
  end)

  it('names the line that fails because of what was typed', function()
    local told = debugging.play(debugging.target('local t = { x = { y = 1 } }\nlocal a = 1\n'
      .. 'local b = t.x.y\nreturn b\n'), { 'next', function(debugger, stop)
      assert(debugger:evaluate(stop.frames[1], 't = {}'))
      debugger:meddle(function(frame)
        debugger:evaluate(frame, 't = {}')
      end)
      return 'continue'
    end, 'continue' })

    assert.same({ '1 start', '2 step over', '3 error' }, told.stops)
    assert.equal(3, told.ends[1].err.line)
  end)

  it('stops what is typed and has no end', function()
    local whys = {}
    local source = 'local f\nlocal a = 1\nf(3)\nreturn a\n'
    local told = debugging.play(debugging.target(source), { 'next',
      function(debugger, stop)
        assert(debugger:evaluate(stop.frames[1], 'f = function(n) for i = 1, n do a = i end end'))
        for place, code in ipairs({ 'while true do end', 'repeat until false',
          'while true do pcall(function() for i = 1, math.huge do end end) end',
          '(function() local function f() return f() end return f() end)()' }) do
          whys[place] = select(2, debugger:evaluate(stop.frames[1], code))
        end
        return 'continue'
      end })

    local why = 'stopped after 1000000 rounds or calls'
    assert.same({ why, why, why, why }, whys)
    assert.equal(3, told.ends[1].reply)
  end)

  it('shows what was thrown without its metatable', function()
    local whys = {}
    debugging.play(debugging.target('return 1\n'), { function(debugger, stop)
      for place, code in ipairs({
        "error(setmetatable({ a = 1 }, { __tostring = function() error('no') end }))",
        "error(setmetatable({}, { __index = function() error('no') end }))",
        "error({ err = setmetatable({}, { __tostring = function() error('no') end }) })",
        "error(redis.error_reply('LKARG no'))", 'error(nil)' }) do
        whys[place] = select(2, debugger:evaluate(stop.frames[1], code))
      end
    end })

    assert.same({ '{a = 1}', '{}', '{}', 'LKARG no', 'nil' }, whys)
  end)

  it('sees the later of two variables of one name', function()
    debugging.play(debugging.target('local a = 1\nlocal a = 2\nreturn a\n'), { 'next', 'next',
      function(debugger, stop)
        assert.equal(2, debugger:evaluate(stop.frames[1], 'a')[1])
        assert.same({ { name = 'a', value = 2 } }, require('latchkey.debugger.stack').locals(
          stop.frames[1]))
      end })
  end)

  it('leaves texts the methods of the script', function()
    local told = debugging.play(debugging.target("local ok = pcall(function()\n"
      .. "  return ('%s'):format(false)\nend)\nreturn ok and 1 or 0\n"), { 'step', 'step', 'step',
      'step' })

    assert.equal(0, told.ends[1].reply)
  end)

  it('stops in a function of one line each time that it is called', function()
    local told = debugging.play(debugging.target('local function f() return 1 end\n'
      .. 'local a = f() + f()\nreturn a\n'), { 'step', 'step', 'step', 'step' })

    assert.same({ '1 start', '2 step over', '1 step over', '1 step over', '3 step over' },
      told.stops)
  end)

  -- LuaJIT alone tells which lines of a script have code.
  if rawget(_G, 'jit') then
    it('knows at which lines it can stop', function()
      local points = Points.new({}, table.concat({ '#!lua', 'local a =', '  1', '', 'if a',
        '  and a > 0 then', '  a = 2', 'elseif a then', '  a = 3', 'else', '  a = 4', 'end',
        'local function f()', '  return 1', 'end', 'while f() < 1 do', '  f()', 'end', 'return a' },
        '\n'))

      assert.same({ 3, 6, 7, 8, 9, 11, 14, 16, 17, 19 }, sorted(points.stoppable))
      assert.same({ 6, 14, nil }, { points:nearest(4), points:nearest(12), points:nearest(20) })
    end)

    -- Where each text stops, with a break point at each of its lines that can have one.
    for source, stops in pairs({
      ["local value =\n  redis.call('GET', 'k')\nreturn value"] = { 2, 3 },
      ["return\n  redis.call('GET', 'k')"] = { 2 },
      ['local x\nlocal a\nlocal b\na = x\nreturn a'] = { 1, 4, 5 },
      ['local a = 1\nlocal b = a\n  + 1\nreturn b\n  and a'] = { 1, 3, 5 },
      ['local t = {}\nt.x =\n  1\nreturn t.x'] = { 1, 3, 4 },
      ['local n = 0\nfor _, v in\n  ipairs({ 1 }) do\n  n = v\nend\nreturn n'] =
        { 1, 3, 4, 3, 6 },
      ['local a = 1\nif a\n  and a > 0 then\n  a = 2\nend\nreturn a'] = { 1, 3, 4, 6 },
      ['pcall(function()\n  return 1\nend)\nreturn 2'] = { 1, 2, 4 },
      ['local ok = pcall(\n  function()\n    return 1\n  end\n)\nreturn ok'] = { 1, 3, 6 },
      ["local function f(g)\n  return g()\nend\nlocal a = f(function()\n  return 'a'\nend).len\n"
        .. 'return a and 1'] = { 4, 2, 5, 7 },
    }) do
      it('stops at lines that run, and at each: ' .. source:gsub('\n *', ' | '), function()
        local missed, seen = {}, {}
        local orders = setmetatable({}, { __index = function()
          return function(_, about)
            seen[#seen + 1] = about.line
            missed[about.line or 0] = nil
            return about.reason and 'continue' or 'quit'
          end
        end })

        local told = debugging.play(debugging.target(source), orders, {
          first = { go = 'continue' },
          prepare = function(debugger)
            missed = tablex.copy(debugger.points.stoppable)
            for line in pairs(missed) do
              debugger.points.lines[line] = {}
            end
          end })

        assert.is_nil(told.ends[1].err)
        assert.same(stops, seen)
        assert.same({}, missed)
      end)
    end
  end

  it('gets out of a script that catches every error', function()
    local source = "local n = 0\nwhile n < 3 do\n  pcall(function()\n    n = n + 1\n"
      .. "    error('x')\n  end)\nend\nreturn n\n"
    local told = debugging.play(debugging.target(source), { { go = 'line', line = 5 }, 'back',
      'restart', { go = 'line', line = 5 }, 'quit' })

    assert.same({ '1 start', '5 line', '4 back', '1 start', '5 line' }, told.stops)
  end)

  it('stops in a loop that may have no end', function()
    local told = debugging.play(debugging.target('local n = 0\nwhile true do\n  n = n + 1\nend\n'),
      { 'continue', 'quit' }, { max_lines = 1000 })
    assert.matches('timeout reached, infinite loop%?', told.stops[2])

    told = debugging.play(debugging.target('while true do end\n'), { 'continue', 'quit' },
      { max_lines = 1000 })
    assert.matches('timeout reached, infinite loop%?', told.stops[2])
  end)

  it('hears redis.breakpoint() and redis.debug()', function()
    local told = debugging.play(debugging.target("local is_there = redis.breakpoint()\n"
      .. "redis.debug('here', 7)\nreturn is_there and 1 or 0\n"), { 'continue' },
      { first = { go = 'continue' } })

    assert.same({ '2 redis.breakpoint() called' }, told.stops)
    assert.same({ { n = 2, 'here', 7 } }, told.said)
    assert.equal(1, told.ends[1].reply)
  end)

  it('stops inside functions of a library', function()
    local source = '#!lua name=own\nlocal function double(keys, args)\n  local n = args[1] * 2\n'
      .. '  return n\nend\nredis.register_function(\'double\', double)\n'
    local world = helper.world()
    assert(world.functions:load(source))
    local told = debugging.play({ world = world, name = 'double', source = source,
      reset = function() end,
      run = function()
        return world:command('FCALL', 'double', 0, 21)
      end }, { 'step', 'step' })

    assert.same({ '3 start', '4 step over' }, told.stops)
    assert.equal(42, told.ends[1].reply)
  end)

  it('leaves nothing behind in the process', function()
    local before = debug.gethook()
    count({ 'next', 'quit' })

    assert.equal(before, debug.gethook())
    assert.equal(string, getmetatable('').__index)
  end)

  it('fails itself where its view does, and not the script', function()
    assert.has_error(function()
      count({ 'next', function()
        error('a defect', 0)
      end })
    end, 'a defect')
  end)
end)
