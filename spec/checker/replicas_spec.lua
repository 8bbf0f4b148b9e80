-- SPDX-License-Identifier: Apache-2.0
-- What a fail-over can lose when a hold waits for replicas, and which clients would lose more.
local checker = require('latchkey.checker')
local helper = require('helper')
local taker = require('latchkey.checker.roles.taker')

local function check(options, model)
  options.scripts = helper.scripts
  options.clients, options.rounds = 2, 1
  options.kinds = options.kinds or { 'failover' }
  options.limits.levels, options.limits.handover = 1, false
  return checker.check(model or 'lock', options)
end

local function found(limits, model)
  local verdict = check({ limits = limits, only = { 'G1', 'G2' } }, model)
  local finding = verdict.findings[1]
  return finding and finding.property, finding and table.concat(finding.trail, ' '), verdict
end

describe('a fail-over to one of two replicas', function()
  it('loses an acquire that waits for none', function()
    local property, trail = found({ replicas = 2 })

    assert.equal('G1', property)
    assert.matches('%u%.acquire !failover %u%.acquire$', trail)
  end)

  it('loses what one replica has when the other takes over', function()
    local property, trail = found({ replicas = 2, min_replicas = 1 })

    assert.equal('G1', property)
    assert.matches('A%.acquire A< A%.wait .*!failover .*B%.wait$', trail)
  end)

  it('does not lose it when the one that has most takes over', function()
    local property, _, verdict = found({ replicas = 2, min_replicas = 1, latest = true })

    assert.is_nil(property)
    assert.is_true(verdict.complete)
  end)

  it('loses nothing that counts when both have it', function()
    local property, _, verdict = found({ replicas = 2, min_replicas = 2 })

    assert.is_nil(property)
    assert.is_true(verdict.complete)
  end)

  it('may bring back what both had, and was released', function()
    local verdict = check({ limits = { replicas = 2, min_replicas = 2 }, only = { 'G4' } })

    assert.matches('A%.release !failover A%.release', table.concat(verdict.findings[1].trail, ' '))
  end)

  for _, case in ipairs({ { 'mutex', 1 }, { 'rw', 1 }, { 'fair', 0 } }) do
    local family, renewals = unpack(case)
    it(('loses no hold of %s that both have'):format(family), function()
      assert.is_nil((found({ replicas = 2, min_replicas = 2, renewals = renewals }, family)))
    end)
  end
end)

describe('while replicas are asked', function()
  it('every promise is kept, also when they do not answer', function()
    local verdict = check({ limits = { replicas = 2, min_replicas = 1 },
      kinds = { 'replicas', 'silence', 'crash' } })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)
end)

describe('a wrong client is found:', function()
  local function sabotaged(change)
    local model = {}
    for name, value in pairs(checker.model('lock')) do
      model[name] = value
    end
    local role = taker.role({ acquire = 'lock/acquire', renew = 'lock/renew',
      release = 'lock/release', reenters = true })
    change(role)
    model.roles = { taker = role }
    return model
  end

  local function caught(change, kinds)
    local verdict = check({ limits = { replicas = 2, min_replicas = 2 }, kinds = kinds,
      only = { 'G1', 'G2' }, faults = kinds and #kinds }, sabotaged(change))
    return verdict.findings[1] and verdict.findings[1].property
  end

  it('one that asks no replica', function()
    assert.equal('G2', caught(function(role)
      local try = role.reply.try
      role.reply.try = function(c, reply, call)
        if reply[1] == 1 then
          role.keep(c, call)
        else
          try(c, reply, call)
        end
      end
    end))
  end)

  it('one that does not care how many have it', function()
    assert.equal('G2', caught(function(role)
      local confirm = role.reply.confirm
      role.reply.confirm = function(c, _, call)
        confirm(c, { c:limit('min_replicas') }, call)
      end
    end, { 'replicas', 'failover' }))
  end)

  it('one that asks again on another connection', function()
    assert.equal('G1', caught(function(role)
      role.unanswered.confirm = function(c)
        c:wait('confirm', c.owner, c:now() + c:limit('lease'))
      end
    end))
  end)

  it('one that asks about a renewal that was sent twice', function()
    assert.is_truthy(caught(function(role)
      local renew = role.reply.renew
      role.reply.renew = function(c, reply, call)
        call.copies = 1
        renew(c, reply, call)
      end
    end, { 'reply', 'failover' }))
  end)

  it('one that counts a renewal at once', function()
    assert.equal('G2', caught(function(role)
      role.reply.renew = function(c, _, call)
        role.reply.counted(c, { c:limit('min_replicas') }, { args = { '2', c.owner },
          ends = call.sent + c:limit('lease') })
      end
    end))
  end)
end)
