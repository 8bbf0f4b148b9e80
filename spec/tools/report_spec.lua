-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')

local report = require('latchkey.report')

local function finding(file, line, rule, message)
  return { file = file, line = line, rule = rule, message = message or 'm' }
end

describe('report', function()
  it('writes one line for each finding', function()
    local text = report.text({ finding('a.lua', 3, 'width', 'too wide'), finding('b', 0, 'file') })

    assert.equal('a.lua:3: width: too wide\nb:0: file: m\n', text)
  end)

  it('sorts by file, line, rule and message', function()
    local sorted = { finding('a', 1, 'x'), finding('a', 2, 'x', 'a'), finding('a', 2, 'x', 'b'),
      finding('a', 2, 'y'), finding('b', 1, 'a') }
    local mixed = { sorted[3], sorted[5], sorted[1], sorted[4], sorted[2] }

    assert.same(sorted, report.sort(mixed))
  end)

  it('writes a JSON document whose names are sorted', function()
    local json = report.json('lint', { findings = { finding('a"b', 1, 'x') }, checked = 2,
      fixed = {} })

    assert.equal('{"checked":2,"findings":[{"file":"a\\"b","line":1,"message":"m","rule":"x"}],'
      .. '"fixed":[],"schema":"latchkey/lint/1"}\n', json)
  end)

  it('writes no bytes into a line that a terminal obeys', function()
    local text = report.text({ finding('a\27[2J\194\133.lua', 3, 'width', 'x\226\128\174y'),
      finding('b\255', 0, 'file') })

    assert.equal('a\\x1b[2J\\xc2\\x85.lua:3: width: x\\xe2\\x80\\xaey\nb\\xff:0: file: m\n', text)
  end)

  it('writes JSON that a terminal shows as it is, and a program reads as it was', function()
    local name = 'a\27\127\194\133\216\156\226\128\174\226\129\166\195\164\226\130\172.lua'

    local json = report.json('lint', { name = name })

    assert.equal('{"name":"a\\u001b\\u007f\\u0085\\u061c\\u202e\\u2066\195\164\226\130\172.lua",'
      .. '"schema":"latchkey/lint/1"}\n', json)
    assert.equal(name, cjson.decode(json).name)
  end)
end)
