-- SPDX-License-Identifier: Apache-2.0
local lexer = require('latchkey.lua51.lexer')

local function texts(source)
  local list = {}
  for i, token in ipairs(lexer.tokens(source)) do
    list[i] = token.text
  end
  list[#list] = nil
  return list
end

describe('lexer', function()
  it('cuts operators as long as they can be', function()
    assert.same({ 'a', '..', 'b', '...', '==', '=', '<=', '<', '~=', '#', '^' },
      texts('a..b ... == = <= < ~= # ^'))
  end)

  it('tells names from keywords', function()
    local tokens = lexer.tokens('local ending = nil')

    assert.same({ 'keyword', 'name', 'operator', 'keyword', 'end' }, {
      tokens[1].kind, tokens[2].kind, tokens[3].kind, tokens[4].kind, tokens[5].kind })
  end)

  it('knows the line of a token, behind comments and strings of many lines', function()
    local tokens = lexer.tokens('#!lua\n--[[ a\nb ]] x -- c\n--[==[\n]]\n]==]\n'
      .. 'y = [[\n1\n]] z "a\\\nb" w')

    local lines = {}
    for _, token in ipairs(tokens) do
      lines[token.text] = token.line
    end
    assert.same({ 3, 7, 9, 10 }, { lines.x, lines.y, lines.z, lines.w })
  end)

  it('reads the values of strings', function()
    local cases = {
      ["'a\\n\\65\\066b\\'\\\"\\\\'"] = 'a\nABb\'"\\',
      ['"it\'s"'] = "it's",
      ["'a\\\nb'"] = 'a\nb',
      ['[[a\\n]]'] = 'a\\n',
      ['[==[a]]b]==]'] = 'a]]b',
    }
    for source, value in pairs(cases) do
      local tokens, problems = lexer.tokens(source)

      assert.equal(value, tokens[1].value)
      assert.equal(source, tokens[1].text)
      assert.same({}, problems)
    end
  end)

  it('reads numbers of every form', function()
    for _, source in ipairs({ '0', '12', '0x1F', '1.5', '.5', '5.', '1e3', '1E-3', '.5e+3' }) do
      local tokens, problems = lexer.tokens(source .. ' x')

      assert.equal(tonumber(source), tokens[1].value)
      assert.equal('x', tokens[2].text)
      assert.same({}, problems)
    end
  end)

  it('ends a number where Lua 5.1 ends it', function()
    assert.same({ '1e3', '..', '"x"' }, texts('1e3.."x"'))
    assert.same({ '0x10', '..', 'a', '1e-3', '.', 'b' }, texts('0x10..a 1e-3.b'))
    assert.same({ '0xE', '+', '1', '3..x' }, texts('0xE+1 3..x'))
  end)

  it('reads the end of a line in a string in both forms', function()
    assert.equal('a\nb\nc', lexer.tokens("'a\\\r\nb\\\rc'")[1].value)
  end)

  it('ends a comment where the server ends it, at a carriage return too', function()
    assert.same({ 'x', '=', '1' }, texts('-- a\rx = 1'))
  end)

  local wrong = {
    { 'x = "a\r"', 1, 'syntax', 'does not end on its line' },
    { 'x = 1\ny = 5LL', 2, 'dialect', '5LL is no number' },
    { 'x = 0b1', 1, 'dialect', '0b1 is no number' },
    { 'x = 0x1p4', 1, 'dialect', '0x1p4 is no number' },
    { 'x = 1i', 1, 'dialect', '1i is no number' },
    { "x = '\\x41'", 1, 'dialect', 'no escape "\\x"' },
    { "x = 'a\\z\n b'", 1, 'dialect', 'no escape "\\z"' },
    { "x = '\\u{41}'", 1, 'dialect', 'no escape "\\u"' },
    { "x = '\\300'", 1, 'syntax', 'the escape "\\300" is no byte' },
    { '\n::top::', 2, 'dialect', 'no labels' },
    { 'goto top', 1, 'dialect', 'no goto' },
    { 'x = \195\188', 1, 'syntax', 'unexpected character' },
    { 'x = a & b', 1, 'syntax', 'unexpected character' },
    { 'x = "a\n', 1, 'syntax', 'does not end on its line' },
    { "x = 'a\\", 1, 'syntax', 'does not end on its line' },
    { '\nx = [[a', 2, 'syntax', 'never closed' },
    { '\n--[=[ a ]]', 2, 'syntax', 'never closed' },
  }
  for _, case in ipairs(wrong) do
    it(('finds what is no Lua 5.1 in %q'):format(case[1]), function()
      local _, problems = lexer.tokens(case[1])

      assert.equal(case[2], problems[1].line)
      assert.equal(case[3], problems[1].rule)
      assert.matches(case[4], problems[1].message, 1, true)
    end)
  end
end)
