-- SPDX-License-Identifier: Apache-2.0
local words = require('lib.words')

local function rules_of(findings)
  local list = {}
  for i, finding in ipairs(findings) do
    list[i] = finding.rule
  end
  return list
end

local function page(text, file)
  return rules_of(words.page(file or 'docs/howto/a.md', text))
end

local function source(text, file)
  return rules_of(words.source(file or 'c/src/a.c', text))
end

-- N words, the last with a full stop.
local function sentence(count)
  return ('word '):rep(count - 1) .. 'word.'
end

describe('the lint of words', function()
  it('wants a title for each column of a table', function()
    assert.same({ 'header' }, page('| a | |\n|---|---|\n| 1 | |\n'))
    assert.same({}, page('| a | b |\n|---|---|\n| 1 | |\n'))
  end)

  it('wants cells that say what they mean, in few words', function()
    assert.same({ 'cell' }, page('| a | b |\n|---|---|\n| 1 | the same |\n'))
    assert.same({ 'cell' }, page('| a |\n|---|\n| ' .. sentence(words.CELL_MAX + 1) .. ' |\n'))
    assert.same({}, page('| a |\n|---|\n| ' .. sentence(words.CELL_MAX) .. ' |\n'))
  end)

  it('wants a link in the block of an absolute, and counts each of them', function()
    assert.same({ 'absolute' }, page('It is never lost.\n'))
    assert.same({ 'absolute', 'absolute' }, page('Nobody waits, whatever\ncomes.\n'))
    assert.same({ 'absolute' }, page('| a |\n|---|\n| always |\n'))
    assert.same({ 'absolute' }, page('It is [never](a.md) lost.\n\n- It is always there.\n'))
    assert.same({}, page('It is [never](a.md)\nlost.\n\nNevertheless, `never` is a word.\n'))
    assert.same({}, page('# Never\n\n```sh\necho never\n```\n'))
  end)

  it('wants at most so many words in a sentence', function()
    local most = words.SENTENCE_MAX

    assert.same({ 'sentence' }, page(sentence(most + 1)))
    assert.same({ 'sentence' }, page('- Short.\n\n- ' .. sentence(most + 1):gsub(' ', '\n', 3)))
    assert.same({}, page(sentence(most) .. ' ' .. sentence(most)))
    assert.same({}, page('- ' .. sentence(most) .. '\n- ' .. sentence(most)))
  end)

  it('wants the words of the field in the reference', function()
    local text = 'The client hears it, and gives back\nthe lock.\n'

    assert.same({ 'word', 'word' }, page(text, 'docs/reference/a.md'))
    assert.same({}, page(text))
    assert.same({}, page('The shears, `told`.\n', 'docs/reference/a.md'))
  end)

  it('wants them in the messages of C', function()
    assert.same({ 'word' }, source('  lk_fail(error, LK_LOST,\n          "not "\n "heard of");\n'))
    assert.same({ 'word' }, source('exec_say("nobody was told of \\"%s\\"", name);'))
    assert.same({}, source('/* told */ lk_fail(error, LK_LOST, "%s", told);'))
  end)

  it('wants them in help, and in the comments of public headers', function()
    local help = "parser:flag('--x', 'Looks at the locks of '\n  .. 'others.')"

    assert.same({ 'word' }, source(help, 'tools/latchkey/cli/commands/a.lua'))
    assert.same({ 'word' }, source('/** Nobody is told of it. */', 'c/include/latchkey/a.h'))
    assert.same({}, source('/* Nobody is told of it. */', 'c/src/base/a.h'))
    assert.same({}, source("-- nobody is told of it\nx = 'told'", 'tools/latchkey/a.lua'))
  end)

  it('wants sentences in messages and help that are no longer than in pages', function()
    local long = ('word '):rep(words.SENTENCE_MAX) .. 'word'

    assert.same({ 'sentence' }, source('lk_fail(error, LK_LOST, "' .. long .. '");'))
    assert.same({}, source('lk_fail(error, LK_LOST, "' .. long:gsub('word$', '; ') .. 'word");'))
  end)

  it('wants them in the messages of Lua', function()
    assert.same({ 'word' }, source("x = { message = 'nobody was told' }", 'tools/latchkey/a.lua'))
    assert.same({ 'word' }, source("x = { hint = 'look at it again' }", 'tools/latchkey/a.lua'))
  end)

  it('wants hints that do not point back at the message', function()
    local row = '#define T(X) \\\n  X(A, 1, 0, "a", "see the message") \\\n  X(B, 2, 0, "b", "c")\n'

    assert.same({ 'hint' }, source(row, 'c/include/latchkey/status.h'))
    assert.same({ 'hint' }, source("{ hint = 'See the message: x' }", 'tools/latchkey/a.lua'))
  end)

  it('wants tables that fit into a window', function()
    local half = ('x'):rep(words.WIDTH_MAX / 2 + 1)
    local function of(a, b)
      return ('| a | b |\n|---|---|\n| 1 | %s |\n| %s | 2 |\n'):format(a, b)
    end

    assert.same({ 'width' }, page(of(half, half)))
    assert.same({}, page(of(half, ('xx '):rep(words.CELL_MAX))))
    assert.same({}, page(of('[a](' .. half .. half .. ')', 'b')))
  end)

  it('says where', function()
    local found = words.page('docs/a.md', '# a\n\n```\nnever\n```\n\nFirst.\n\nNever\n')[1]

    assert.equal('docs/a.md', found.file)
    assert.equal(9, found.line)
  end)

  describe('with a list of what was there before', function()
    local findings = words.page('a.md', 'Never, always.\n')

    it('finds what is more than that', function()
      assert.equal(0, #words.beyond(findings, { ['a.md absolute'] = 2 }))
      assert.equal(2, #words.beyond(findings, { ['a.md absolute'] = 1 }))
      assert.equal(2, #words.beyond(findings, { ['b.md absolute'] = 2 }))
    end)

    it('lowers the numbers, and raises none', function()
      local _, counts = words.beyond(findings, {})
      local list = words.read_list('file\trule\tat most\na.md\tabsolute\t3\nb.md\tword\t1\n')

      assert.equal('file\trule\tat most\na.md\tabsolute\t2\n', words.lowered(list, counts))
      assert.equal('file\trule\tat most\na.md\tabsolute\t1\n',
        words.lowered({ ['a.md absolute'] = 1 }, counts))
      assert.equal('file\trule\tat most\n', words.lowered({}, counts))
    end)
  end)
end)
