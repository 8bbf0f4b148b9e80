-- SPDX-License-Identifier: Apache-2.0
-- Scripts that nobody wrote for latchkey, run on both sides: `tools/fidelity --scripts`.
local Foreign = require('mock.foreign')
local Oracle = require('mock.oracle')
local guesses = require('mock.guesses')
local grammar = require('mock.grammar')

local FOLDER = 'spec/mock/foreign_scripts'
local ATTEMPTS = 4

describe('calls that are guessed from a text', function()
  it('have as many keys and arguments as it names, through other names as well', function()
    local about = guesses.read([[
      local key, limit = KEYS[1], ARGV[1]
      local ttl = tonumber(ARGV[2])
      local opts = cjson.decode(ARGV[3])
      local packed = cmsgpack.unpack(ARGV[4])
      redis.call('ZADD', KEYS[2], 1, ARGV[5])
      redis.call('PEXPIRE', KEYS[2], ttl)]])

    assert.same({ 'any', 'zset' }, about.keys)
    assert.same({ 'text', 'number', 'json', 'msgpack', 'text' }, about.args)
  end)

  it('have more than it names where it counts them', function()
    local about = guesses.read('return redis.call("DEL", unpack(KEYS))')

    assert.equal(3, #about.keys)
  end)

  it('are the same for one number', function()
    local about = guesses.read('return redis.call("SET", KEYS[1], ARGV[1])')

    assert.same(guesses.call(about, grammar.generator(7), 1000),
      guesses.call(about, grammar.generator(7), 1000))
  end)
end)

describe('a folder of scripts', function()
  local oracle, missing

  setup(function()
    oracle, missing = Oracle.start()
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  it('is read with the calls that stand beside them', function()
    local names, calls = {}, {}
    for i, script in ipairs(Foreign.read(FOLDER)) do
      names[i], calls[script.name] = script.name, script.calls
    end

    assert.same({ 'limiter.lua', 'log.lua', 'tags.lua' }, names)
    assert.equal(3, #calls['log.lua'])
  end)

  it('does the same on both sides', function()
    if not oracle then
      return pending(missing)
    end
    local foreign = Foreign.new(oracle, ATTEMPTS)
    for _, script in ipairs(Foreign.read(FOLDER)) do
      local seen = foreign:try(script)

      assert.equal('same', seen.verdict, script.name .. ': ' .. tostring(seen.why))
      assert.is_true(seen.replies > 0, script.name)
    end
  end)

  -- Breaks a command of the mock, and says what is seen of it.
  local function broken(name, run, source)
    local commands = require('latchkey.mock.commands')
    local right = commands[name].run
    commands[name].run = run
    local seen = Foreign.new(oracle, ATTEMPTS):try({ source = source })
    commands[name].run = right
    return seen
  end

  it('shows a mock that answers otherwise', function()
    if not oracle then
      return pending(missing)
    end

    local seen = broken('STRLEN', function()
      return 77
    end, 'return redis.call("STRLEN", KEYS[1])')

    assert.equal('differs', seen.verdict)
    assert.matches('found 77', seen.why)
  end)

  it('shows a mock that leaves other keys', function()
    if not oracle then
      return pending(missing)
    end

    local seen = broken('DEL', function()
      return 1
    end, 'redis.call("SET", KEYS[1], "v") return redis.call("DEL", KEYS[1])')

    assert.equal('differs', seen.verdict)
    assert.matches('expected nothing', seen.why)
  end)

  it('counts as refused what the mock does not model', function()
    if not oracle then
      return pending(missing)
    end

    local seen = Foreign.new(oracle, ATTEMPTS):try({
      source = 'return redis.call("PFADD", KEYS[1], "a")' })

    assert.equal('refused', seen.verdict)
    assert.matches('PFADD is not modelled', seen.why)
  end)
end)
