-- SPDX-License-Identifier: Apache-2.0
-- Two versions of the scripts at once on one lock, as while a bundle is rolled out.
local checker = require('latchkey.checker')
local helper = require('helper')
local mutated = require('support.mutated')

local function check(beside, options)
  options = options or {}
  options.scripts, options.beside = helper.scripts, beside
  options.clients, options.rounds = 2, options.rounds or 1
  options.limits = { levels = 1, handover = false }
  return checker.check('lock', options)
end

local function found(script, text, by)
  local finding = check(mutated(finally, 'lock', script, text, by), { faults = 0 }).findings[1]
  return finding and finding.property
end

describe('beside an older version', function()
  it('that does the same, every promise is kept', function()
    local verdict = check(mutated(finally, 'lock', 'acquire', 'version:  1.0', 'version:  1.999'),
      { kinds = { 'crash', 'late', 'silence' } })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('that does it in other words, too', function()
    local verdict = check(mutated(finally, 'lock', 'release',
      "if not redis.call('HGET', lock, owner) then",
      "if redis.call('HEXISTS', lock, owner) == 0 then"), { rounds = 2, faults = 0 })

    assert.same({}, verdict.findings)
  end)

  it('the scripts of both run', function()
    local verdict = check(mutated(finally, 'lock', 'acquire', '  return {1, 1}',
      '  return {1, 1, 7}'), { faults = 0, only = { 'G10' } })

    assert.is_truthy(verdict.findings[1].message:find('lists', 1, true))
  end)

  it('one that tells on another channel is found', function()
    assert.equal('G6', found('release', "tell(channel, publish, '0')\nreturn",
      "tell(channel .. ':1', publish, '0')\nreturn"))
  end)

  it('one that keeps the owner elsewhere is found', function()
    assert.is_truthy(found('acquire', "redis.call('HSET', lock, owner, hold)\n  redis.call('PEXP",
      "redis.call('HSET', lock, owner .. ':v0', hold)\n  redis.call('PEXP"))
  end)
end)
