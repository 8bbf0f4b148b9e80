-- SPDX-License-Identifier: Apache-2.0
-- Every family passes within small bounds, and what would break each is found.
local checker = require('latchkey.checker')
local faults = require('latchkey.checker.faults')
local helper = require('helper')
local matrix = require('latchkey.checker.matrix')
local mutated = require('support.mutated')

local function check(model, options)
  options = options or {}
  options.scripts = helper.scripts
  return checker.check(model, options)
end

-- A model with one thing changed.
local function changed(name, change)
  local model = {}
  for field, value in pairs(checker.model(name)) do
    model[field] = value
  end
  local role = {}
  for field, value in pairs(model.roles.taker) do
    role[field] = value
  end
  for _, group in ipairs({ 'act', 'reply', 'due', 'unanswered' }) do
    local copy = {}
    for field, value in pairs(role[group]) do
      copy[field] = value
    end
    role[group] = copy
  end
  change(role)
  model.roles = { taker = role, operator = model.roles.operator }
  return model
end

describe('a check within small bounds', function()
  for _, family in ipairs(checker.families) do
    it(('passes %s'):format(family), function()
      local verdict = check(family, { clients = 2, rounds = 1, kinds = { 'crash', 'late' } })

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
    end)
  end
end)

describe('the kinds of faults', function()
  it('that promises hold under are explained', function()
    local explained = {}
    for _, kind in ipairs(faults.kinds) do
      explained[kind[1]] = #kind[2] > 0
    end
    for _, name in ipairs(faults.default) do
      assert.is_true(explained[name], name)
    end
    assert.equal(#faults.default + 2, #faults.kinds)
  end)
end)

describe('a mark of a run', function()
  it('that is refused to the copy of its call is found', function()
    local folder = mutated(finally, 'period lock', 'mark', "run[5] == owner then\n  return {1}",
      "run[5] == owner then\n  return {0, 1}")
    local finding = checker.check('period', { scripts = folder, clients = 1, rounds = 1,
      kinds = { 'reply' } }).findings[1]

    assert.equal('G13', finding and finding.property)
  end)
end)

describe('a script that is called with nothing', function()
  -- What its check says in the place of what it answers.
  local function called(finally_, by)
    local folder = mutated(finally_, 'mutex', 'release',
      "return redis.error_reply('LKARG mutex/release takes 1 key and 3 arguments')", by)
    local finding = checker.check('mutex', { scripts = folder, clients = 1, rounds = 1,
      faults = 0 }).findings[1]
    return finding and { finding.property, finding.script, finding.line or false, finding.message }
  end

  it('says so by its code', function()
    assert.is_nil(called(finally, "return redis.error_reply('LKARG what')"))
  end)

  it('is found to do otherwise: with another code', function()
    local property, script, line, message = unpack(called(finally,
      "return redis.error_reply('ERR what')"))

    assert.same({ 'G10', 'mutex/release', 44 }, { property, script, line })
    assert.matches('mutex/release, called with nothing, answers MOCK the header lists no error ERR',
      message, 1, true)
  end)

  it('is found to do otherwise: as if that were right', function()
    assert.same({ 'G10', 'mutex/release', false,
      'mutex/release, called with nothing, answers as if that were right' },
      called(finally, 'return {-1}'))
  end)
end)

describe('a check of fenced locks', function()
  local function fail_over(only, limits)
    limits = limits or {}
    limits.renewals = 0
    local verdict = check('fenced', { kinds = { 'failover' }, only = { only }, limits = limits })
    return verdict.findings[1] and verdict.findings[1].property
  end

  it('finds that a fail-over loses the lock', function()
    assert.equal('G1', fail_over('G1'))
  end)

  it('finds that the fence holds all the same', function()
    assert.is_nil(fail_over('G3'))
  end)

  it('finds that it does not when it fails over with the lock', function()
    assert.equal('G3', fail_over('G3', { durable = false }))
  end)

  it('finds that it does not when the clock goes back', function()
    assert.equal('G3', fail_over('G3', { behind = 300 }))
  end)
end)

describe('a check of fair locks', function()
  it('finds a client that queues again under its old name', function()
    local verdict = check(changed('fair', function(role)
      local try = role.reply.listen
      role.queue_again = nil
      role.reply.beat = function(c, reply, call)
        if reply[1] == -1 then
          local poked = c.poked
          try(c)
          c.poked = poked
        else
          checker.model('fair').roles.taker.reply.beat(c, reply, call)
        end
      end
    end), { clients = 2, rounds = 2, kinds = { 'pause' } })

    assert.equal('G2', verdict.findings[1] and verdict.findings[1].property)
  end)
end)

describe('the default runs of fenced locks', function()
  -- Those that are made of one run, with what somebody asks for: their promises and limits.
  local function made(place, options)
    options.workers, options.scripts = 1, helper.scripts
    local outcome = matrix.run({ 'fenced' }, options, { checker.runs('fenced')[place] })
    local run = outcome.runs[1]
    assert.is_true(#outcome.runs == 1 and run.as_expected ~= false)
    return { run.expected or false, run.options.only or false, run.options.limits or false }
  end

  it('keep their own limits beside those that somebody sets', function()
    assert.same({ false, false, { renewals = 1, drift = 6 } },
      made(1, { faults = 0, limits = { renewals = 1, drift = 6 } }))
    assert.same({ 'G3', { 'G3' }, { behind = 300, drift = 5 } },
      made(7, { limits = { drift = 5 } }))
  end)

  it('try no promises but their own, where somebody asks for more', function()
    assert.same({ false, { 'G3' }, false }, made(4, { only = { 'G1', 'G3', 'G4' } }))
    assert.same({ 'G1', { 'G1' }, false }, made(5, { only = { 'G1', 'G3' } }))
  end)

  it('are left out where they would not try what is asked, or not find what they must', function()
    -- In the place of a run that is left out, one is made that is asked for.
    assert.same({ false, { 'G3' }, false }, made(5, { only = { 'G3' }, faults = 0 }))
    assert.same({ false, false, { behind = 0 } }, made(7, { limits = { behind = 0 }, faults = 0 }))
  end)
end)
