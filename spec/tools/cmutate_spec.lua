-- SPDX-License-Identifier: Apache-2.0
-- Which places of a C file are changed, and what they become.
local cmutate = require('lib.cmutate')

local function all(text)
  local said = {}
  for _, mutant in ipairs(cmutate.candidates('x.c', text)) do
    said[#said + 1] = ('%d %s: %s'):format(mutant.line, mutant.kind, cmutate.becomes(text, mutant))
  end
  return said
end

-- A line within a function.
local function within(line)
  return all('void f(void) {\n  ' .. line .. '\n}\n')
end

describe('wrong versions of C', function()
  it('have another operator', function()
    assert.same({ '2 operator: if (a <= b) return c;', '2 branch: if (!(a < b)) return c;' },
      within('if (a < b) return c;'))
    assert.same({ '2 operator: return a || b;' }, within('return a && b;'))
  end)

  it('count the other way, or not at all', function()
    assert.same({ '2 operator: x->n--;', '2 dropped: ;' }, within('x->n++;'))
  end)

  it('have another constant', function()
    assert.same({ '2 constant: return 8;' }, within('return 7;'))
    assert.same({ '2 constant: return 0;' }, within('return 1;'))
    assert.same({ '2 constant: return false;' }, within('return true;'))
  end)

  it('leave a call or an assignment away', function()
    assert.same({ '2 dropped: ;' }, within('free(x);'))
    assert.same({ '2 dropped: ;' }, within('x->y = z;'))
  end)

  it('leave declarations, jumps and halves of statements alone', function()
    assert.same({}, within('int x = y;'))
    assert.same({}, within('return f(x);'))
    assert.same({}, all('void f(void) {\n  x = a ?\n      g(y);\n}\n'))
  end)

  it('go the other way at a branch', function()
    assert.same({ '2 branch: } else if (!(x)) {' }, all('void f(void) {\n  } else if (x) {\n}\n'))
    assert.same({ '2 branch: if (!(is(x, "a b"))) {' }, within('if (is(x, "a b")) {'))
  end)

  it('keep comments, strings and the preprocessor', function()
    assert.same({}, all('#define A (1 + 2)\n/* a < b\n  c < d */\nstatic int x;\n'))
    assert.same({}, within('return "a < 1 \\" + 2"; // 3 + 4'))
  end)

  it('are the same for a seed, and others for another', function()
    local text = 'void f(void) {\n' .. ('  x = y + 1;\n'):rep(50) .. '}\n'
    local candidates = cmutate.candidates('x.c', text)

    local function drawn(seed)
      local lines = {}
      for _, mutant in ipairs(cmutate.draw(candidates, 10, seed)) do
        lines[#lines + 1] = mutant.line .. mutant.kind
      end
      return table.concat(lines, ' ')
    end
    assert.equal(drawn(1), drawn(1))
    assert.not_equal(drawn(1), drawn(2))
    assert.equal(#candidates, #cmutate.draw(candidates, #candidates + 5, 1))
  end)
end)
