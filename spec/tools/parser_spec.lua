-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local lexer = require('latchkey.lua51.lexer')
local parser = require('latchkey.lua51.parser')

-- A tree as one line: (Tag:label child child).
local function show(node)
  local name = node.op or node.name or node.text
  local parts = { node.tag .. (name and ':' .. name or '') }
  for _, child in ipairs(node) do
    parts[#parts + 1] = show(child)
  end
  return #parts == 1 and parts[1] or '(' .. table.concat(parts, ' ') .. ')'
end

local function value_of(source)
  return show(assert(parser.parse('return ' .. source))[1][1])
end

local function statement_of(source)
  return show(assert(parser.parse(source))[1])
end

describe('parser', function()
  local expressions = {
    { '1 + 2 * 3', '(Operator:+ Number:1 (Operator:* Number:2 Number:3))' },
    { '1 - 2 - 3', '(Operator:- (Operator:- Number:1 Number:2) Number:3)' },
    { '1 .. 2 .. 3', '(Operator:.. Number:1 (Operator:.. Number:2 Number:3))' },
    { '2 ^ 3 ^ 4', '(Operator:^ Number:2 (Operator:^ Number:3 Number:4))' },
    { '-2 ^ 2', '(Unary:- (Operator:^ Number:2 Number:2))' },
    { '2 ^ -2', '(Operator:^ Number:2 (Unary:- Number:2))' },
    { 'not 1 == 2', '(Operator:== (Unary:not Number:1) Number:2)' },
    { '1 or 2 and 3 < 4', '(Operator:or Number:1 (Operator:and Number:2 (Operator:< Number:3 '
      .. 'Number:4)))' },
    { '1 + 2 .. 3', '(Operator:.. (Operator:+ Number:1 Number:2) Number:3)' },
    { '(1)', '(Paren Number:1)' },
    { '#a.b[1]', "(Unary:# (Index (Index Name:a String) Number:1))" },
    { "f(1)'s'{2}", "(Call (Call (Call Name:f Number:1) String:'s') (Table (Item Number:2)))" },
    { 'a:b(1, ...)', '(Method:b Name:a Number:1 Vararg)' },
    { '{1, a = nil, [true] = false; 2,}',
      '(Table (Item Number:1) (Pair String Nil) (Pair True False) (Item Number:2))' },
    { 'function(a, ...) end', '(Function Block)' },
  }
  for _, case in ipairs(expressions) do
    it('reads ' .. case[1], function()
      assert.equal(case[2], value_of(case[1]))
    end)
  end

  local statements = {
    { 'local a, b = 1', '(Local Number:1)' },
    { 'a, b.c = 1, 2', '(Assign Name:a (Index Name:b String) Number:1 Number:2)' },
    { 'local function f() end', '(LocalFunction (Function Block))' },
    { 'function a.b:c() end', '(Assign (Index (Index Name:a String) String) (Function Block))' },
    { 'if 1 then elseif 2 then else end', '(If Number:1 Block Number:2 Block Block)' },
    { 'while 1 do break end', '(While Number:1 (Block Break))' },
    { 'repeat local x until x', '(Repeat (Block Local) Name:x)' },
    { 'for i = 1, 2, 3 do end', '(For Number:1 Number:2 Number:3 Block)' },
    { 'for k, v in next, t do end', '(For Name:next Name:t Block)' },
    { 'do f() end', '(Block (Call Name:f))' },
    { 'return', 'Return' },
    { 'return;', 'Return' },
  }
  for _, case in ipairs(statements) do
    it('reads ' .. case[1], function()
      assert.equal(case[2], statement_of(case[1]))
    end)
  end

  it('finds the local that a name stands for', function()
    local block = parser.parse(table.concat({
      'local x = x',
      'local function f(x) return x, f end',
      'for x = x, 2 do g(x) end',
      'repeat local y until y',
      'return x, y',
    }, '\n'))

    local outer = block[1].vars[1]
    local fn, loop, again, last = block[2], block[3], block[4], block[5]
    assert.is_nil(block[1][1].var)
    assert.equal(fn[1].params[1], fn[1][1][1][1].var)
    assert.equal(fn.var, fn[1][1][1][2].var)
    assert.equal(outer, loop[1].var)
    assert.equal(loop.vars[1], loop[3][1][2].var)
    assert.equal(again[1][1].vars[1], again[2].var)
    assert.equal(outer, last[1].var)
    assert.is_nil(last[2].var)
    assert.equal(2, outer.uses)
  end)

  it('gives a method its self', function()
    local block = parser.parse('function a:b() return self end')

    assert.is_table(block[1][2][1][1][1].var)
  end)

  local wrong = {
    { 'return 1 2', 1, 'the end of the file expected, but there is "2"' },
    { '\nlocal 1', 2, 'a name expected' },
    { '#comment\nreturn 1', 1, 'a name expected, but there is "#"' },
    { 'f(1', 1, '")" expected, but there is the end of the file' },
    { 'if x\nend', 2, '"then" expected' },
    { 'for a, b = 1, 2 do end', 1, '"in" expected' },
    { 'for a = 1 do end', 1, '"," expected' },
    { 'for a = 1, 2, 3, 4 do end', 1, 'two or three values' },
    { 'x', 1, '"=" expected' },
    { 'x + 1', 1, '"=" expected' },
    { 'end', 1, 'the end of the file expected' },
    { 'while 1 do break x = 1 end', 1, '"end" expected' },
    { 'break', 1, 'a loop around "break" expected' },
    { 'while 1 do end break', 1, 'a loop around' },
    { 'for i = 1, 2 do end break', 1, 'a loop around' },
    { 'repeat until 1 break', 1, 'a loop around' },
    { 'while 1 do local function f() break end end', 1, 'a loop around' },
    { 'local function f() return ... end', 1, 'an expression expected' },
    { 'return {1 2}', 1, '"}" expected' },
    { "local 'x'", 1, 'a name expected' },
  }
  for _, case in ipairs(wrong) do
    it('refuses ' .. case[1]:gsub('\n', ' '), function()
      local block, problems = parser.parse(case[1])

      assert.is_nil(block)
      assert.equal('syntax', problems[1].rule)
      assert.equal(case[2], problems[1].line)
      assert.matches(case[3], problems[1].message, 1, true)
    end)
  end

  it('refuses what is too deep for it, as servers do', function()
    for _, source in ipairs({ ('if x then '):rep(20000) .. ('end '):rep(20000),
      'return ' .. ("'a' .. "):rep(20000) .. "'a'" }) do
      local block, problems = parser.parse(source)

      assert.is_nil(block)
      assert.equal('chunk has too many syntax levels', problems[1].message)
    end
  end)

  it('passes on what the lexer finds', function()
    local block, problems = parser.parse('x = 1LL')

    assert.is_nil(block)
    assert.equal('dialect', problems[1].rule)
  end)

  it('walks all nodes in source order, counting the functions around', function()
    local seen = {}

    parser.walk(parser.parse('local a = f(1, function() return 2 end)'), function(node, depth)
      seen[#seen + 1] = node.tag .. depth
    end)

    assert.equal('Block0 Local0 Call0 Name0 Number0 Function0 Block1 Return1 Number1',
      table.concat(seen, ' '))
  end)

  -- Tokens dropped, doubled and swapped at places that a fixed sequence chooses; the other opinion
  -- is that of Lua 5.1 itself, so LuaJIT does not run this.
  if not jit then
    it('agrees with the engine on what is Lua', function()
      local state, accepted, disagreed = 1, 0, {}
      local function below(n)
        state = (state * 16807) % 2147483647
        return state % n + 1
      end
      for _, file in ipairs(dir.getallfiles('tools/latchkey/lint', '*.lua')) do
        local tokens = lexer.tokens(utils.readfile(file))
        for _ = 1, 20 do
          local words = {}
          for i, token in ipairs(tokens) do
            words[i] = token.text
          end
          local place = below(#words)
          local changes = { '', words[place] .. ' ' .. words[place], words[below(#words)] }
          words[place] = changes[below(3)]
          local source = ' ' .. table.concat(words, ' ')
          local engine, own = loadstring(source), parser.parse(source)
          accepted = accepted + (own and 1 or 0)
          if (engine == nil) ~= (own == nil) then
            disagreed[#disagreed + 1] = source
          end
        end
      end

      assert.same({}, disagreed)
      assert.is_true(accepted > 10)
    end)
  end
end)
