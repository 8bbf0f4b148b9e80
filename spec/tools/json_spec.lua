-- SPDX-License-Identifier: Apache-2.0
local json = require('latchkey.json')

describe('JSON', function()
  it('has sorted names, plain slashes, and all digits of an integer', function()
    assert.equal('{"a/b":[1,9007199254740991,0.5],"c":[],"d":true}',
      json.encode({ d = true, c = {}, ['a/b'] = { 1, 2 ^ 53 - 1, 0.5 } }))
  end)

  it('has a line for each member where it is indented, and one for plain values', function()
    assert.equal('{\n    "a": [1, "x"],\n    "b": [\n      {\n        "c": 1\n      },\n'
      .. '      []\n    ],\n    "d": []\n  }',
      json.encode({ a = { 1, 'x' }, b = { { c = 1 }, {} }, d = {} }, '  '))
  end)
end)
