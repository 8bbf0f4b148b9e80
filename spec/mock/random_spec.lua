-- SPDX-License-Identifier: Apache-2.0
-- Some random sequences of each kind, on the mock and on a server; tools/fidelity runs them by the
-- thousand. LATCHKEY_SPEC_SEED starts elsewhere.
local Oracle = require('mock.oracle')
local Random = require('mock.random')

local FIRST_SEED = tonumber(os.getenv('LATCHKEY_SPEC_SEED')) or 1
local SEQUENCES = 60

describe('random command sequences', function()
  local oracle, missing, random

  setup(function()
    oracle, missing = Oracle.start()
    random = oracle and Random.new(oracle)
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  it('do the same on the mock and on a server', function()
    if not oracle then
      return pending(missing)
    end
    for seed = FIRST_SEED, FIRST_SEED + SEQUENCES - 1 do
      local report = random:try(seed)
      if report then
        error(report, 0)
      end
    end
  end)

  it('reach replies and errors in each kind', function()
    if not oracle then
      return pending(missing)
    end
    local kinds = 0
    for kind, counts in pairs(random.covered) do
      kinds = kinds + 1
      assert.is_true(counts.replies > 100 and counts.errors > 100, kind)
    end
    assert.equal(10, kinds)
  end)

  it('are shrunk to the commands that a difference takes', function()
    if not oracle then
      return pending(missing)
    end
    local broken = Random.new(oracle)
    function broken.mock:command(...)
      if (...) == 'HLEN' then
        return 99
      end
      return getmetatable(self).__index.command(self, ...)
    end
    local hashes = 2

    local report = broken:try(hashes)

    assert.matches('^seed 2 %(hashes%), [^\n]+\n  "HLEN" "[abc]"\ncommand 1: ', report)
  end)
end)
