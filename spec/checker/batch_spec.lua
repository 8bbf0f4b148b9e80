-- SPDX-License-Identifier: Apache-2.0
-- Several locks of one slot in one step: what would break that is found.
local checker = require('latchkey.checker')
local helper = require('helper')
local mutated = require('support.mutated')

local function check(options, model)
  options.scripts = options.scripts or helper.scripts
  options.clients, options.limits = options.clients or 2, { levels = 1 }
  return checker.check(model or 'batch', options)
end

local function found(script, text, by, options)
  options = options or { faults = 0 }
  options.scripts = mutated(finally, 'lock', script, text, by)
  local finding = check(options).findings[1]
  return finding and finding.property
end

describe('several locks in one step', function()
  it('keep every promise', function()
    local verdict = check({ clients = 3, kinds = { 'crash' } })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('are not taken where one is held', function()
    assert.equal('G1', found('acquire_all', 'if busy then', 'if busy and busy > 1 then',
      { clients = 3, faults = 0, only = { 'G1' } }))
  end)

  it('are not taken in part', function()
    assert.equal('G1', found('acquire_all', 'if busy then',
      "if busy then\n  redis.call('PEXPIRE', locks[busy], 500)"))
  end)

  it('all have a lease', function()
    assert.equal('G8', found('acquire_all', 'if is_free[place] then',
      'if is_free[place] and place == 1 then'))
  end)

  it('have the one to wait for named', function()
    assert.equal('G6', found('acquire_all', 'return {0, wait_ms, busy}',
      'return {0, wait_ms, 3 - busy}'))
  end)

  it('are given back by their owner alone', function()
    assert.equal('G4', found('release_all', "if redis.call('HGET', lock, owner) then",
      "if redis.call('EXISTS', lock) == 1 then", { kinds = { 'late' } }))
  end)

  it('tell the waiters of each', function()
    assert.equal('G6', found('release_all', 'tell(channels[place + 4]', 'tell(channels[5]'))
  end)
end)

describe('a wrong client is found:', function()
  local function sabotaged(change)
    local model, role = {}, {}
    for name, value in pairs(checker.model('batch')) do
      model[name] = value
    end
    for name, value in pairs(model.roles.batcher) do
      role[name] = value
    end
    role.reply = {}
    for name, value in pairs(model.roles.batcher.reply) do
      role.reply[name] = value
    end
    change(role)
    model.roles = { batcher = role, single = model.roles.single, turned = model.roles.turned }
    return check({ faults = 0 }, model).findings[1].property
  end

  it('one that goes on without them', function()
    assert.equal('G2', sabotaged(function(role)
      local try = role.reply.try
      role.reply.try = function(c, _, call)
        try(c, { 1, 1 }, call)
      end
    end))
  end)

  it('one that does not care for what it hears', function()
    assert.equal('G6', sabotaged(function(role)
      role.hear = function() end
    end))
  end)
end)
