-- SPDX-License-Identifier: Apache-2.0
-- The checker is checked: it passes what is right, and finds wrong scripts and wrong clients.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local helper = require('helper')
local taker = require('latchkey.checker.roles.taker')

local function check(options, model)
  options.scripts = options.scripts or helper.scripts
  options.limits = options.limits or { levels = 1, handover = false, renewals = math.huge }
  return checker.check(model or 'lock', options)
end

-- A copy of the scripts in which one text stands for another.
local function mutated(script, text, by)
  local folder = path.tmpname()
  os.remove(folder)
  dir.makepath(folder .. '/' .. path.dirname(script))
  for _, name in ipairs({ 'acquire', 'renew', 'release', 'transfer', 'break', 'inspect' }) do
    local source = utils.readfile(('%s/lock/%s.lua'):format(helper.scripts, name), true)
    if 'lock/' .. name == script then
      local first, last = source:find(text, 1, true)
      assert.is_truthy(first, 'the script has no such text')
      source = source:sub(1, first - 1) .. by .. source:sub(last + 1)
    end
    utils.writefile(('%s/lock/%s.lua'):format(folder, name), source)
  end
  finally(function()
    dir.rmtree(folder)
  end)
  return folder
end

local function broken(folder, options)
  options = options or {}
  options.scripts = folder
  options.clients, options.rounds = options.clients or 2, 1
  local verdict = check(options)
  assert.is_false(verdict.ok)
  return verdict.findings[1]
end

-- The lock model with another client.
local function sabotaged(change)
  local model = {}
  for name, value in pairs(checker.model('lock')) do
    model[name] = value
  end
  local role = taker.role({ acquire = 'lock/acquire', renew = 'lock/renew',
    release = 'lock/release', reenters = true })
  change(role)
  model.roles = { taker = role, operator = model.roles.operator }
  return model
end

local function caught(change, options)
  options.rounds = 1
  local verdict = check(options, sabotaged(change))
  assert.is_false(verdict.ok)
  return verdict.findings[1].property
end

describe('a check of the lock', function()
  it('passes, and says what it covered', function()
    local verdict = check({ clients = 2, rounds = 1, kinds = { 'crash', 'reply', 'late' } })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.ok)
    assert.is_true(verdict.states > 100)
    assert.is_true(verdict.covered['lock/acquire']['{0, wait_ms}'])
  end)

  it('says the same when it remembers nothing', function()
    local remembering = check({ clients = 2, rounds = 1, kinds = { 'late' } })
    local forgetful = check({ clients = 2, rounds = 1, kinds = { 'late' }, memo = false })

    assert.equal(remembering.states, forgetful.states)
    assert.equal(0, forgetful.remembered)
    assert.is_true(forgetful.ok)
  end)

  it('finds the same when clients are told apart, or no order is left out', function()
    local folder = mutated('lock/release', "if not redis.call('HGET', lock, owner) then",
      "if redis.call('EXISTS', lock) == 0 then")

    local usual = broken(folder, { kinds = { 'reply' } })
    local apart = broken(folder, { kinds = { 'reply' }, symmetric = false })
    local full = broken(folder, { kinds = { 'reply' }, reduce = false })

    assert.equal(usual.property, apart.property)
    assert.equal(usual.property, full.property)
    assert.is_true(check({ clients = 2, rounds = 1, faults = 0, symmetric = false }).ok)
    assert.is_true(check({ clients = 2, rounds = 1, faults = 0, reduce = false }).ok)
  end)

  it('stops at its memory, and claims nothing', function()
    local verdict = check({ clients = 3, rounds = 2, memory_mb = 1 })

    assert.is_false(verdict.ok)
    assert.is_true(verdict.out_of_memory)
  end)

  it('must find that a fail-over loses the lock', function()
    local verdict = check({ clients = 2, rounds = 1, kinds = { 'failover' } })

    assert.equal('G1', verdict.findings[1].property)
  end)
end)

describe('a wrong script is found:', function()
  it('a release that asks for no owner', function()
    local finding = broken(mutated('lock/release', "if not redis.call('HGET', lock, owner) then",
      "if redis.call('EXISTS', lock) == 0 then"))

    assert.equal('G4', finding.property)
  end)

  it('a lease that is not set', function()
    local finding = broken(mutated('lock/acquire', "  redis.call('PEXPIRE', lock, lease)\n", ''))

    assert.equal('G8', finding.property)
  end)

  it('a release that tells nobody', function()
    local finding = broken(mutated('lock/release', "tell(channel, publish, '0')\nreturn",
      'return'), { faults = 0 })

    assert.equal('G6', finding.property)
  end)

  it('a renewal that shortens', function()
    local finding = broken(mutated('lock/renew', "lease, 'GT')", "lease - 100)"))

    assert.is_truthy(finding.property)
  end)

  it('an acquire that takes what another holds', function()
    local finding = broken(mutated('lock/acquire', "if redis.call('HGET', lock, owner) then",
      'if wait_ms < 150 then'), { faults = 0, only = { 'G1' } })

    assert.equal('G1', finding.property)
  end)

  it('one that fails, with its line', function()
    local finding = broken(mutated('lock/renew', 'return {1}', "return redis.call('NOPE')"),
      { faults = 0 })

    assert.equal('G10', finding.property)
    assert.is_truthy(finding.line)
  end)

  it('one that fails, also while only other promises are looked at', function()
    local finding = broken(mutated('lock/release',
      "redis.call('DEL', lock)\ntell(channel, publish, '0')",
      "tell(channel, publish, '0')\nredis.call('DEL', lock)"), { only = { 'G6' } })

    assert.equal('G10', finding.property)
    assert.is_truthy(finding.message:find('after a message went out', 1, true))
  end)

  it('one that never ends', function()
    local finding = broken(mutated('lock/renew', 'return {1}', 'while true do end'),
      { faults = 0, clients = 1 })

    assert.equal('G10', finding.property)
    assert.is_truthy(finding.message:find('instructions', 1, true))
  end)

  -- Text of renew.lua that is replaced, and what is said of it.
  local wrong = {
    { 'one that leaves its sandbox', "os.execute('true')", 'nonexistent global variable' },
    { 'one that keeps something for the next call', 'kept = 1', 'readonly table' },
    { 'one that writes a key that it does not declare', "redis.call('SET', 'other', '1')",
      'touches the undeclared key "other"' },
    { 'one that answers what its header does not list', 'return {7}', 'no such reply' },
    { 'one whose error its header does not list', "return redis.error_reply('NOPE x')",
      'lists no error NOPE' },
  }
  for _, case in ipairs(wrong) do
    it(case[1] .. ', with its line', function()
      local folder = mutated('lock/renew', 'return {1}', 'do ' .. case[2] .. ' end return {1}')
      local finding = broken(folder, { faults = 0, clients = 1 })
      local lines = utils.readlines(folder .. '/lock/renew.lua')

      assert.equal('G10', finding.property)
      assert.is_truthy(finding.message:find(case[3], 1, true))
      assert.is_truthy(lines[finding.line]:find(case[2], 1, true))
      assert.is_true(#finding.trail > 0)
    end)
  end

  it('and others are looked for after one that fails', function()
    local folder = mutated('lock/renew', 'return {1}', "error('boom')")
    local release = folder .. '/lock/release.lua'
    local source = utils.readfile(release)
    local first, last = source:find("tell(channel, publish, '0')\nreturn", 1, true)
    utils.writefile(release, source:sub(1, first - 1) .. 'return' .. source:sub(last + 1))

    local verdict = check({ scripts = folder, clients = 2, rounds = 1, faults = 0, go_on = true })

    local found = {}
    for i, finding in ipairs(verdict.findings) do
      found[i] = finding.property
    end
    table.sort(found)
    assert.same({ 'G10', 'G6' }, found)
  end)
end)

describe('a wrong client is found:', function()
  it('one that never renews', function()
    assert.equal('R1', caught(function(role)
      role.due.renew = function() end
    end, { clients = 1, faults = 0 }))
  end)

  it('one that ignores its deadline', function()
    assert.equal('G2', caught(function(role)
      role.due['end'] = function() end
      role.believes = function(c)
        return c.deadline and 'write'
      end
    end, { clients = 2, kinds = { 'break', 'pause' } }))
  end)

  it('one that forgets to listen', function()
    assert.equal('G6', caught(function(role)
      local try = role.reply.try
      role.reply.try = function(c, reply, call)
        c.listens[c:form('lock/release', 'channel')] = true
        try(c, reply, call)
        c.listens = {}
      end
    end, { clients = 2, faults = 0 }))
  end)

  it('one that does not look again once it listens', function()
    assert.equal('G6', caught(function(role)
      role.reply.listen = function(c)
        c.pc, c.poked = 'sleep', nil
        c.timers.wake = c:now() + c:limit('recheck')
      end
    end, { clients = 2, faults = 0 }))
  end)

  it('one that believes any message', function()
    assert.equal('G2', caught(function(role)
      role.message = function(c)
        role.hold(c, { sent = c:now() })
      end
    end, { clients = 3, faults = 0 }))
  end)

  it('one that calls an answer a success that is none', function()
    assert.equal('G4', caught(function(role)
      role.reply.release = function(c, reply, call)
        c:say('release', 'ok', call, reply)
        role.finish(c)
      end
    end, { clients = 1, kinds = { 'reply' } }))
  end)
end)

describe('a replay', function()
  local options = { scripts = helper.scripts, faults = 0 }

  it('goes through what a person typed', function()
    local run = checker.run('lock', 'A.acq +300 B.acq A.rel', options)

    assert.is_nil(run.finding)
    assert.equal('A.release', run.steps[#run.steps].label)
  end)

  it('says which word cannot be, and what could', function()
    local run, why = checker.run('lock', 'A.acq B.nothing', options)

    assert.is_nil(run)
    assert.is_truthy(why:find('word 2 of the replay, "B.nothing"', 1, true))
    assert.is_truthy(why:find('A<', 1, true))
  end)

  it('of what a check found finds it again', function()
    local folder = mutated('lock/release', "if not redis.call('HGET', lock, owner) then",
      "if redis.call('EXISTS', lock) == 0 then")
    local finding = broken(folder)

    local again = checker.replay('lock', table.concat(finding.trail, ' '), { scripts = folder,
      clients = 2, rounds = 1, limits = { levels = 1, handover = false, renewals = math.huge } })

    assert.equal(finding.property, again.property)
  end)
end)
