-- SPDX-License-Identifier: Apache-2.0
-- Some random sequences of each kind, on the mock and on a server; tools/fidelity runs them by the
-- thousand. LATCHKEY_SPEC_SEED starts elsewhere.
local Oracle = require('mock.oracle')
local Random = require('mock.random')
local grammar = require('mock.grammar')
local newer = require('mock.newer')

local FIRST_SEED = tonumber(os.getenv('LATCHKEY_SPEC_SEED')) or 1
local SEQUENCES = 30

describe('commands that newer servers answer otherwise', function()
  local ASKED = { 'BITCOUNT', 'k', '-1' }
  local IN_SCRIPT = { 'EVAL', 'return redis.call(unpack(ARGV))', '0', unpack(ASKED) }

  it('are left out for them, sent by themselves or by a script', function()
    local others = { { 'BITCOUNT', 'k' }, { 'BITCOUNT', 'k', '0', '-1', 'BIT' },
      { 'ZLEXCOUNT', 'k', '(a', '+' }, { 'EVAL', 'return 1', '0' } }

    assert.same(others, newer.without({ ASKED, others[1], IN_SCRIPT, others[2],
      { 'BITCOUNT', 'k', '0', '1', '7' }, { 'BITCOUNT', 'k', '0', '1', 'BIT', '7' },
      { 'ZLEXCOUNT', 'k', '(', '+' }, others[3], others[4] }))
  end)

  it('are asked of the version that the mock has for its model, and of no other', function()
    local asked
    local stub = Random.new({})
    function stub.difference(_, commands)
      asked = #commands
    end
    local sequence = grammar.sequence
    finally(function()
      grammar.sequence = sequence
    end)
    function grammar.sequence()
      return { ASKED, { 'GET', 'k' }, IN_SCRIPT }, 'strings'
    end

    for is_model, count in pairs({ [true] = 3, [false] = 1 }) do
      stub.oracle.is_model = is_model
      stub:try(1)
      assert.equal(count, asked)
    end
  end)
end)

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
      assert.is_true(counts.replies > 50 and counts.errors > 50, kind)
    end
    assert.equal(10, kinds)
  end)

  it('are repeated where the server took too long until its keys were read', function()
    if not oracle then
      return pending(missing)
    end
    local late, times = Random.new(setmetatable({}, { __index = oracle })), 0
    function late.oracle.dump()
      times = times + 1
      local keys, now_ms = oracle:dump()
      if times > 1 then
        return keys, now_ms
      end
      return {}, now_ms + 20000
    end
    local hashes = 2

    assert.is_nil(late:try(hashes))

    assert.is_true(times >= 2) -- more on a machine that has no time for the server
  end)

  it('are compared by keys of one moment, whichever of them are about to expire', function()
    if not oracle then
      return pending(missing)
    end
    oracle:reset()
    local commands = {}
    for i = 1, 1000 do
      commands[i] = { 'HSET', ('key:%d'):format(i), 'field', 'value' }
      commands[1000 + i] = { 'PEXPIRE', ('key:%d'):format(i), tostring(i % 100 + 1) }
    end
    oracle:pipeline(commands)

    local dump
    repeat
      dump = oracle:dump()
      for key, record in pairs(dump) do
        assert.same({ field = 'value' }, record.value, key)
        assert.is_true(record.pttl >= 0, key)
      end
    until not next(dump)
  end)

  it('are repeated where they differ, and what does not differ again is kept apart', function()
    if not oracle then
      return pending(missing)
    end
    local once, differs = Random.new(oracle), true
    function once.mock:command(...)
      if (...) == 'HLEN' and differs then
        return 99
      end
      return getmetatable(self).__index.command(self, ...)
    end
    function once:again(...)
      differs = false
      return getmetatable(self).__index.again(self, ...)
    end
    local hashes = 2

    assert.is_nil(once:try(hashes))

    assert.equal(1, #once.passing)
    assert.equal(hashes, once.passing[1][1])
    assert.matches('^command %d+: expected ', once.passing[1][2])
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
