-- SPDX-License-Identifier: Apache-2.0
-- A client of Redisson among those of the checker: its calls do what the player does, and what
-- would mislead either side is found.
local Player = require('interop.player.lock')
local checker = require('checker')
local helper = require('helper')
local mutated = require('support.mutated')
local redisson = require('checker.redisson')
local role = require('checker.models.redisson')

local SEQUENCES, LENGTH = 60, 20

local function check(options, model)
  options.scripts = options.scripts or helper.scripts
  options.clients = options.clients or 2
  options.limits = options.limits or { levels = 1, handover = false, redisson = 1 }
  return checker.check(model or 'lock', options)
end

local function found(script, text, by, options)
  options = options or {}
  options.scripts = mutated(finally, 'lock', script, text, by)
  local finding = check(options).findings[1]
  return finding and finding.property
end

describe('a call of Redisson', function()
  local OPS = {
    ['redisson/lock'] = function(player, lease)
      local left_ms = player:lock(lease)
      return left_ms and { 0, left_ms } or { 1, player:hold_count() }
    end,
    ['redisson/unlock'] = function(player, lease)
      player.lease = lease
      local reply = player:unlock('request')
      return reply and { 1, reply == 1 and 0 or player:hold_count() } or { -1 }
    end,
    ['redisson/renew'] = function(player, lease)
      return { player:renew(lease) == 1 and 1 or -1 }
    end,
  }
  local NAMES = { 'redisson/lock', 'redisson/unlock', 'redisson/renew' }
  local OWNERS = { 'a:1', 'a:2', 'lk-b:3' }

  it('does what the player does', function()
    local number = 1
    local function random(most)
      number = (number * 1103515245 + 12345) % 2147483648
      return math.floor(number / 65536) % most + 1
    end
    local granted = 0
    for _ = 1, SEQUENCES do
      local ours, theirs = helper.mock_world(), helper.mock_world()
      for _ = 1, LENGTH do
        local name, owner, lease = NAMES[random(3)], OWNERS[random(3)], 100 * random(5)
        local player = Player:new(theirs, { owner = owner, receipts = false })

        local reply = redisson.run(ours, name, 'job', { tostring(lease), owner })

        assert.same(OPS[name](player, lease), reply)
        assert.same(theirs:dump(), ours:dump())
        assert.same(theirs:messages(), ours:messages())
        granted = granted + (reply[1] == 1 and 1 or 0)
        ours:advance(lease / 2)
        theirs:advance(lease / 2)
      end
    end
    assert.is_true(granted > SEQUENCES)
  end)
end)

describe('beside a client of Redisson', function()
  it('a lock keeps every promise', function()
    local verdict = check({ rounds = 2, faults = 1, kinds = { 'crash', 'late', 'drop' } })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('a release that says something else wakes nobody there', function()
    local property = found('release', "tell(channel, publish, '0')\nreturn",
      "tell(channel, publish, 'free')\nreturn", { faults = 0 })

    assert.equal('G6', property)
  end)

  it('a release on another channel does not, either', function()
    local property = found('release', "tell(channel, publish, '0')\nreturn",
      "tell(channel .. ':2', publish, '0')\nreturn", { faults = 0 })

    assert.equal('G6', property)
  end)

  it('an acquire that knows its own owners alone takes what the other holds', function()
    local property = found('acquire', 'if wait_ms == -2 then',
      "if wait_ms == -2 or not string.find(redis.call('HKEYS', lock)[1], '^lk%-') then",
      { faults = 0, only = { 'G1' } })

    assert.equal('G1', property)
  end)

  it('a renewal that asks for no owner keeps what the other holds', function()
    local property = found('renew', "if redis.call('HGET', lock, owner) then",
      "if redis.call('EXISTS', lock) == 1 then")

    assert.equal('G4', property)
  end)
end)

describe('a client of Redisson that is wrong is found:', function()
  local function sabotaged(change)
    local model, other = {}, {}
    for name, value in pairs(checker.model('lock')) do
      model[name] = value
    end
    for name, value in pairs(role) do
      other[name] = value
    end
    change(other)
    model.roles = { taker = model.roles.taker, redisson = other }
    return check({ clients = 3, faults = 0 }, model).findings[1]
  end

  it('one that never looks', function()
    local finding = sabotaged(function(other)
      other.hear = function() end
    end)

    assert.equal('G6', finding and finding.property)
  end)

  it('one that gives back under the name of another', function()
    local act = {}
    for name, value in pairs(role.act) do
      act[name] = value
    end
    act.lock = function(c)
      c.rounds, c.pc = c.rounds - 1, 'release'
      c:send('release', 'redisson/unlock', { lease = 199, owner = 'lk-A:1' })
    end

    local finding = sabotaged(function(other)
      other.act = act
    end)

    assert.equal('G2', finding and finding.property)
  end)
end)
