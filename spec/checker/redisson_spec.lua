-- SPDX-License-Identifier: Apache-2.0
-- A client of Redisson among those of the checker: its calls do what the player does, and what
-- would mislead either side is found.
local Lock = require('interop.player.lock')
local Rw = require('interop.player.rw')
local checker = require('latchkey.checker')
local helper = require('helper')
local mutated = require('support.mutated')
local parts = require('latchkey.checker.parts')
local redisson = require('latchkey.checker.redisson_calls')
local tablex = require('pl.tablex')

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

-- The player's reply, as the checker's calls put it.
local function taken(left_ms, count)
  return left_ms and { 0, left_ms } or { 1, count }
end

local function given_back(reply, count)
  return reply and { 1, reply == 1 and 0 or count } or { -1 }
end

local LOCK = {
  ['redisson/lock'] = function(player, lease)
    return taken(player:lock(lease), player:hold_count())
  end,
  ['redisson/unlock'] = function(player)
    return given_back(player:unlock('request'), player:hold_count())
  end,
  ['redisson/renew'] = function(player, lease)
    return { player:renew(lease) == 1 and 1 or -1 }
  end,
}

-- Where the pass fails, the next one comes.
local function renewal(age, names)
  return function(player)
    local replies = player:read_pass(age, names or { 'job' })
    return { (not replies or replies[#replies] == 1) and 1 or -1 }
  end
end

local RW = {
  ['redisson/read_lock'] = function(player, lease)
    return taken(player:read_lock(lease), player:read_hold_count())
  end,
  ['redisson/read_unlock'] = function(player)
    local reply = player:read_unlock('request')
    return reply and { 1, player:read_hold_count() } or { -1 }
  end,
  ['redisson/read_renew'] = renewal('4.4+'),
  ['redisson/read_renew_all'] = renewal('3.17+'),
  ['redisson/read_renew_hash'] = renewal('3.44+', { 'other', 'job' }),
  ['redisson/write_lock'] = function(player, lease)
    return taken(player:write_lock(lease), player:write_hold_count())
  end,
  ['redisson/write_unlock'] = function(player)
    return given_back(player:write_unlock('request'), player:write_hold_count())
  end,
  ['redisson/write_renew'] = function(player)
    return { player:write_renew() == 1 and 1 or -1 }
  end,
}

describe('a call of Redisson', function()
  local OWNERS = { 'a:1', 'a:2', 'lk-b:3' }

  local function random_numbers()
    local number = 1
    return function(most)
      number = (number * 1103515245 + 12345) % 2147483648
      return math.floor(number / 65536) % most + 1
    end
  end

  -- One sequence of calls on either side.
  local function play(kind, ops, random)
    local ours, theirs, granted = helper.mock_world(), helper.mock_world(), 0
    local names = tablex.keys(ops)
    table.sort(names)
    for _ = 1, LENGTH do
      local name, owner, lease = names[random(#names)], OWNERS[random(3)], 100 * random(5)
      local player = kind:new(theirs, { owner = owner, receipts = false })
      player.WATCHDOG, player.lease = lease, lease

      local reply = redisson.run(ours, name, 'job', { tostring(lease),
        owner .. (name:find('write') and ':write' or '') })

      assert.same(ops[name](player, lease), reply)
      assert.same(theirs:dump(), ours:dump())
      assert.same(theirs:messages(), ours:messages())
      granted = granted + (reply[1] == 1 and 1 or 0)
      ours:advance(lease / 2)
      theirs:advance(lease / 2)
    end
    return granted
  end

  for name, family in tablex.sort({ lock = { Lock, LOCK }, rw = { Rw, RW } }) do
    it('does what the player does with ' .. name, function()
      local random, granted = random_numbers(), 0

      for _ = 1, SEQUENCES do
        granted = granted + play(family[1], family[2], random)
      end

      assert.is_true(granted > 2 * SEQUENCES)
    end)
  end
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

describe('beside a reader or writer of Redisson', function()
  local READER = { redisson_readers = 1, renewals = 1 }
  local WRITER = { redisson_writers = 1, renewals = 1 }

  local function found_rw(script, text, by, limits)
    local finding = check({ scripts = mutated(finally, 'rw', script, text, by), faults = 0,
      clients = 3, limits = limits }, 'rw').findings[1]
    return finding and finding.property
  end

  for name, limits in tablex.sort({ reader = READER, writer = WRITER }) do
    it(('(%s) a lock keeps every promise'):format(name), function()
      local verdict = check({ clients = 3, limits = limits, kinds = { 'crash', 'drop' } }, 'rw')

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
    end)
  end

  it('a writer that looks at levels alone is let in, though they are not renewed', function()
    local scripts = mutated(finally, 'rw', 'write_acquire',
      'return math.max(levels_ms, left_ms)', 'return levels_ms')

    local finding = check({ scripts = scripts, only = { 'G1' },
      limits = { redisson_readers = 1, redisson_age = 3.44 } }, 'rw').findings[1]

    assert.equal('G1', finding and finding.property)
  end)

  it('a writer that tells nobody leaves the other asleep', function()
    assert.equal('G6', found_rw('write_release', "tell(channel, publish, '1')\nreturn", 'return',
      READER))
  end)

  it('a reader that deletes what the other reads on takes it away', function()
    assert.equal('G4', found_rw('read_release', 'local longest_ms, over = theirs_ms or -2, {}',
      'local longest_ms, over = -2, {}', READER))
  end)

  it('a reader that does not know the levels of the other is let in beside its writer', function()
    assert.equal('G1', found_rw('read_acquire', "if mode ~= 'read' and left_ms ~= -2 then",
      'if false then', WRITER))
  end)
end)

describe('what is kept for half a minute', function()
  local LIMITS = { redisson_readers = 1 }
  local KEPT = 'latchkey_rw_theirs:{l}'

  -- A reader of latchkey makes the lock live longer than that of Redisson asked for.
  local function kept(way)
    local run, why, steps = checker.run('rw', 'A:lock A.read_lock A< +100 B:lock B.read_acquire B< '
      .. way, { scripts = helper.scripts, clients = 3, limits = LIMITS })
    local state = assert(run, why).steps[#run.steps].state
    local record = state[steps.KEYS].data[KEPT]
    return record and record.expires_at - parts.START_MS
  end

  it('is known up to whole thirds once time passes', function()
    assert.is_true(kept('A@renew') > 30000)
    local left_ms = kept('A@renew A.read_renew A< +100')
    assert.is_true(left_ms >= 400 and left_ms < 500, left_ms)
  end)

  it('is over soon in one run, and in another as far off as ever', function()
    local second = 'A@renew A.read_renew A< +100 A@renew A.read_renew A< B@renew B.read_renew B< '
    local near, far = kept(second .. '+100'), kept(second .. '+100*')

    assert.equal(100, far - near)
  end)

  it('is looked at when it ends, however long that takes', function()
    local scripts = mutated(finally, 'rw', 'read_renew', "return {1, theirs_ms and 1 or 0}", ([[
local kept_ms = redis.call('PTTL', theirs)
if kept_ms >= 0 and kept_ms < 300 then
  return redis.error_reply('LKARG it ends')
end
return {1, theirs_ms and 1 or 0}]]))

    local finding = check({ scripts = scripts, clients = 3, faults = 0, limits = LIMITS },
      'rw').findings[1]

    assert.equal('G10', finding and finding.property)
  end)
end)

describe('a client of Redisson that is wrong is found:', function()
  local function sabotaged(change)
    local model, other = {}, {}
    for name, value in pairs(checker.model('lock')) do
      model[name] = value
    end
    for name, value in pairs(model.roles.redisson) do
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
    for name, value in pairs(checker.model('lock').roles.redisson.act) do
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
