-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')

local report = require('latchkey.report')
local text = require('latchkey.text')

describe('text that may stand on a terminal', function()
  it('is what it was where nothing obeys it', function()
    for _, word in ipairs({ '', 'job-7 {a}', 'Schlüssel', '鍵', '🔑', '\194\160' }) do
      assert.equal(word, text.safe(word))
    end
  end)

  it('has no control characters, neither of ASCII nor of UTF-8', function()
    assert.equal('a\\x00\\x1b[2J\\x7f\\x0a', text.safe('a\0\27[2J\127\n'))
    assert.equal('\\xc2\\x9b2J', text.safe('\194\1552J'))
    assert.equal('\\xc2\\x80 \\xc2\\x9f', text.safe('\194\128 \194\159'))
  end)

  it('has nothing that turns or ends a line, by which a name looks like another one', function()
    for _, code in ipairs({ { '\216\156', 'd8\\x9c' }, { '\226\128\142', 'e2\\x80\\x8e' },
      { '\226\128\143', 'e2\\x80\\x8f' }, { '\226\128\168', 'e2\\x80\\xa8' },
      { '\226\128\169', 'e2\\x80\\xa9' }, { '\226\128\170', 'e2\\x80\\xaa' },
      { '\226\128\174', 'e2\\x80\\xae' }, { '\226\129\166', 'e2\\x81\\xa6' },
      { '\226\129\169', 'e2\\x81\\xa9' } }) do
      assert.equal('a\\x' .. code[2] .. 'b', text.safe('a' .. code[1] .. 'b'))
    end
    -- Their neighbours, as joiners, a dash and a narrow space.
    for _, word in ipairs({ '\216\155', '\226\128\140', '\226\128\141', '\226\128\144',
      '\226\128\167', '\226\128\175', '\226\129\165', '\226\129\170' }) do
      assert.equal(word, text.safe(word))
    end
  end)

  it('has no bytes that are no UTF-8: halves, surrogates, what is too long or too far', function()
    for bytes, shown in pairs({ ['\255'] = '\\xff', ['\195'] = '\\xc3', ['a\128'] = 'a\\x80',
      ['\192\175'] = '\\xc0\\xaf', ['\237\160\128'] = '\\xed\\xa0\\x80',
      ['\224\128\175'] = '\\xe0\\x80\\xaf', ['\240\128\128\175'] = '\\xf0\\x80\\x80\\xaf',
      ['\244\144\128\128'] = '\\xf4\\x90\\x80\\x80', ['\226\130x'] = '\\xe2\\x82x' }) do
      assert.equal(shown, text.safe(bytes))
    end
  end)

  it('keeps its lines and tabulators where it has several', function()
    assert.equal('a\n\tb\\x1b[1m\n', text.safe_lines('a\n\tb\27[1m\n'))
  end)

  it('is one word for a shell', function()
    assert.equal('job-7', text.shell_word('job-7'))
    assert.equal([['x; rm -rf "$HOME"']], text.shell_word('x; rm -rf "$HOME"'))
    assert.equal([['it'\''s {a}']], text.shell_word("it's {a}"))
    assert.equal([['\x0a']], text.shell_word('\n'))
  end)
end)

describe('a JSON document', function()
  it('is UTF-8 whatever is in it, and keeps control characters in their own form', function()
    local json = report.json('x', { a = 'ü\255\27\n', ['\237\160\128'] = 1 })

    assert.equal('{"a":"ü\\\\xff\\u001b\\n","schema":"latchkey/x/1","\\\\xed\\\\xa0\\\\x80":1}\n',
      json)
    assert.equal('ü\\xff\27\n', cjson.decode(json).a)
  end)

  it('has no number that is none', function()
    assert.equal('{"a":null,"b":null,"c":null,"d":1.5,"schema":"latchkey/x/1"}\n',
      report.json('x', { a = 1 / 0, b = -1 / 0, c = 0 / 0, d = 1.5 }))
  end)
end)
