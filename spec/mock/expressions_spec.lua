-- SPDX-License-Identifier: Apache-2.0
-- Some random expressions of Lua, on the mock and on a server; tools/fidelity runs them by the
-- thousand. LATCHKEY_SPEC_SEED starts elsewhere.
local Oracle = require('mock.oracle')
local Random = require('mock.expression_random')
local expressions = require('mock.expressions')

local FIRST_SEED = tonumber(os.getenv('LATCHKEY_SPEC_SEED')) or 1
local LISTS = 15

describe('random expressions', function()
  local oracle, missing

  setup(function()
    oracle, missing = Oracle.start()
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  it('have the same values on the mock and on a server, most of them no errors', function()
    if not oracle then
      return pending(missing)
    end
    local random = Random.new(oracle)
    for seed = FIRST_SEED, FIRST_SEED + LISTS - 1 do
      local report = random:try(seed)
      if report then
        error(report, 0)
      end
    end
    local counts = random.covered.A
    assert.equal(LISTS * expressions.COUNT, counts.replies + counts.errors)
    assert.is_true(counts.replies > counts.errors and counts.errors > 40)
  end)

  it('are the same for a seed each time, and others for another', function()
    local function texts(seed)
      local list = {}
      for i, tree in ipairs(expressions.list(seed)) do
        list[i] = expressions.text(tree)
      end
      return table.concat(list, '\n')
    end

    assert.equal(texts(7), texts(7))
    assert.is_not.equal(texts(7), texts(8))
  end)

  it('are cut down to what differs', function()
    if not oracle then
      return pending(missing)
    end
    local broken = Random.new(oracle)
    function broken.mock:command(name, source, ...)
      source = type(source) == 'string' and source:gsub('math%.floor', 'math.ceil') or source
      return getmetatable(self).__index.command(self, name, source, ...)
    end

    local report
    for seed = 1, 40 do
      report = report or broken:try(seed)
    end

    assert.matches('\n  math%.floor%(.*%)\nexpected ', report)
  end)
end)
