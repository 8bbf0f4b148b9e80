-- SPDX-License-Identifier: Apache-2.0
-- Clients of latchkey and of Redisson in one queue: first come, first served, and nobody is lost.
local Redisson = require('interop.player.fair')
local fair = require('support.fair')
local helper = require('helper')
local about = helper.about

-- A client of either kind, seen from the application: it comes, is told things, has the lock, goes.
local Person = {}
Person.__index = Person

function Person.new(world, kind, number)
  local owner = kind == 'latchkey' and ('lk-%d:%d'):format(number, number)
    or ('c0ffee-%d:%d'):format(number, number)
  return setmetatable({ world = world, owner = owner, client = owner:match('^(.*):'),
    is_latchkey = kind == 'latchkey', redisson = Redisson:new(world, { owner = owner }) }, Person)
end

function Person:come()
  if self.is_latchkey then
    self.has = assert(fair.acquire(self.world, self.owner))[1] == 1
  else
    self.has = self.redisson:lock() == nil
  end
end

-- What it does at times, and when it is told to look.
function Person:look()
  if not self.is_latchkey then
    return self:come()
  end
  local outcome = assert(fair.wait_renew(self.world, self.owner))[1]
  self.has = outcome == 1
  if outcome == -1 then
    self:come()
  end
end

function Person:hear(channel, message)
  if self.is_latchkey and channel == fair.CHANNEL .. ':' .. self.client then
    self.has = self.has or self.owner:match('%d+$') == message
  elseif channel == fair.CHANNEL .. ':' .. self.owner then
    self:look()
  end
end

function Person:give_back()
  self.has = false
  if self.is_latchkey then
    return assert.reply({ 1, 0 }, fair.release(self.world, self.owner))
  end
  assert.equal(1, self.redisson:give_back())
end

function Person:leave()
  if self.is_latchkey then
    return assert.reply({ 1 }, fair.leave(self.world, self.owner))
  end
  self.redisson:leave()
end

describe('a fair lock between latchkey and Redisson', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function deliver(people)
    for _, told in ipairs(world:messages()) do
      for _, person in ipairs(people) do
        person:hear(told.channel, told.message)
      end
    end
  end

  local function holders(people)
    local found = {}
    for i, person in ipairs(people) do
      if person.has then
        table.insert(found, i)
      end
    end
    return found
  end

  -- The keys that both kinds share, with numbers for owners. Everybody in the queue has a score;
  -- that of latchkey's waiters follows their heartbeats.
  local function shared_keys(people)
    local dump = helper.dump(world)
    dump[fair.KEYS[4]] = nil
    local scores = dump[fair.KEYS[3]] and dump[fair.KEYS[3]].value or {}
    table.sort(scores, function(a, b)
      return a[1]:match('%d+$') < b[1]:match('%d+$')
    end)
    for _, entry in ipairs(scores) do
      entry[2] = nil
    end
    local text = require('pl.pretty').write(dump)
    for i, person in ipairs(people) do
      text = text:gsub(person.owner:gsub('%p', '%%%0'), i)
    end
    return (text:gsub('pttl = %d+', 'pttl'))
  end

  -- Five come one after another; the fourth leaves; each of the others has its turn.
  local function play(kinds)
    world = helper.world()
    local people, seen = {}, {}
    for i, kind in ipairs(kinds) do
      people[i] = Person.new(world, kind, i)
      people[i]:come()
      table.insert(seen, shared_keys(people))
    end
    people[4]:leave()
    for _, turn in ipairs({ 1, 2, 3, 5 }) do
      deliver(people)
      assert.same({ turn }, holders(people))
      table.insert(seen, shared_keys(people))
      people[turn]:give_back()
    end
    assert.left(world, {})
    return seen
  end

  it('has the same keys after every step, whoever is of which kind', function()
    local expected = play({ 'redisson', 'redisson', 'redisson', 'redisson', 'redisson' })
    for mix = 1, 31 do
      local kinds = {}
      for i = 1, 5 do
        kinds[i] = math.floor(mix / 2 ^ (i - 1)) % 2 == 1 and 'latchkey' or 'redisson'
      end

      assert.same(expected, play(kinds), table.concat(kinds, ' '))
    end
  end)

  for seed = 1, 10 do
    it(('serves in order of arrival, whatever happens when: seed %d'):format(seed), function()
      local state, people, arrived, served = seed, {}, {}, {}
      local function random(n)
        state = (state * 1103515245 + 12345) % 2 ^ 31
        return math.floor(state / 2 ^ 16) % n + 1
      end
      local function note_served()
        deliver(people)
        local turn = holders(people)
        assert.is_true(#turn <= 1)
        if turn[1] and served[#served] ~= turn[1] then
          table.insert(served, turn[1])
        end
        return people[turn[1]]
      end

      for step = 1, 80 do
        local holder = note_served()
        if holder and (random(3) == 1 or step > 60) then
          holder:give_back()
        elseif #people < 40 then
          table.insert(people, Person.new(world, random(2) == 1 and 'latchkey' or 'redisson',
            #people + 1))
          table.insert(arrived, #people)
          people[#people]:come()
        elseif not people[random(#people)].has then
          fair.try(world, 'lk-passer:1')
        end
      end
      local holder = note_served()
      while holder do
        holder:give_back()
        holder = note_served()
      end

      assert.same(arrived, served)
      assert.left(world, {})
    end)
  end

  describe('when a waiter dies', function()
    local ann, bob, jim, joe

    before_each(function()
      ann, bob = Person.new(world, 'latchkey', 1), Person.new(world, 'latchkey', 2)
      jim, joe = Person.new(world, 'redisson', 3), Person.new(world, 'redisson', 4)
    end)

    it('latchkey\'s, just before Redisson\'s release, any heartbeat helps the next', function()
      jim:come()
      ann:come()
      joe:come()
      bob:come()
      jim:give_back()
      assert.same(fair.told(ann.owner), world:messages())
      world:advance(49000)
      bob:look()
      assert.same(fair.told(ann.client, '1'), world:messages())
      world:advance(30001) -- the lease of the grant

      bob:look()
      deliver({ joe, bob })

      assert.is_true(joe.has)
      assert.is_false(bob.has)
    end)

    it('latchkey\'s, long before a release, it delays nobody', function()
      bob:come()
      ann:come()
      joe:come()
      world:advance(29000)
      fair.acquire(world, bob.owner)
      world:advance(21001)
      fair.acquire(world, bob.owner)

      bob:give_back()
      deliver({ joe })

      assert.is_true(joe.has)
    end)

    it('Redisson\'s, the next is served when its own time is over, not before', function()
      bob:come()
      jim:come()
      ann:come()
      bob:give_back()
      assert.same(fair.told(jim.owner), world:messages())
      local before = jim.redisson:score(jim.owner) - world:now_ms()

      for _ = 1, 8 do
        ann:look()
        assert.is_false(ann.has)
        world:advance(40000)
      end
      assert.reply({ 0, about(before - 320000), 1, 1 }, fair.wait_renew(world, ann.owner))
      world:advance(before - 320000)
      ann:look()

      assert.is_true(ann.has)
    end)
  end)

  it('keeps latchkey\'s waiters that Redisson shifted into the past', function()
    local ann, jim = Person.new(world, 'latchkey', 1), Person.new(world, 'redisson', 2)
    jim:come()
    ann:come()
    world:command('ZINCRBY', fair.KEYS[3], -600000, ann.owner)

    fair.try(world, 'lk-passer:1')
    assert.equal(1, world:command('LLEN', fair.KEYS[2]))
    jim:give_back() -- purges ann, and tells nobody
    deliver({ ann })
    assert.is_false(ann.has)
    ann:look()

    assert.is_true(ann.has)
  end)

  it('keeps the place of a waiter that Redisson shifted, and that has looked since', function()
    local ann, jim = Person.new(world, 'latchkey', 1), Person.new(world, 'redisson', 2)
    local eva = Person.new(world, 'redisson', 3)
    jim:come()
    ann:come()
    world:command('ZINCRBY', fair.KEYS[3], -900000, ann.owner)
    ann:look()

    eva:come()
    jim:give_back()
    deliver({ ann, eva })

    assert.is_true(ann.has)
    assert.is_false(eva.has)
  end)

  it('keeps Redisson waiting behind a dead waiter of latchkey no longer than 30 s more', function()
    local ann, jim = Person.new(world, 'latchkey', 1), Person.new(world, 'redisson', 2)
    local eva = Person.new(world, 'redisson', 3)
    jim:come()
    ann:come()
    eva:come()
    jim:give_back()
    world:messages()
    world:advance(helper.is_live and 65000 or 79000)
    eva:come()
    assert.is_false(eva.has)
    world:advance(15001)

    eva:come()
    assert.is_true(eva.has)
  end)

  -- Their heartbeats know of eva, who is behind them.
  it('keeps Redisson waiting behind two dead waiters of latchkey as behind one', function()
    local ann, bob = Person.new(world, 'latchkey', 1), Person.new(world, 'latchkey', 4)
    local jim, eva = Person.new(world, 'redisson', 2), Person.new(world, 'redisson', 3)
    jim:come()
    ann:come()
    bob:come()
    eva:come()
    ann:look()
    assert.reply({ 0, about(30000), 1, 0 }, fair.wait_renew_all(world, { ann.owner, bob.owner }))
    jim:give_back()
    world:messages()
    world:advance(80001)

    eva:come()
    assert.is_true(eva.has)
  end)

  -- Until then it counts as a waiter. Others of latchkey drop both as soon as its heartbeat ends.
  it('loses the record of a dead waiter that Redisson dropped, a heartbeat later', function()
    local kim = Redisson:new(world, { owner = 'c0ffee-2:1' })
    Redisson:new(world, { owner = 'c0ffee-1:1' }):lock()
    fair.acquire(world, 'lk-ann:1', 1, { heartbeat = 5000 })
    world:advance(35001)
    kim:lock()
    assert.equal(0, world:command('LLEN', fair.KEYS[2]))
    assert.equal(1, world:command('HLEN', fair.KEYS[4]))

    world:advance(5000)

    assert.equal(0, world:command('HLEN', fair.KEYS[4]))
  end)

  it('wakes a waiter of Redisson that sleeps beside a free lock', function()
    local jim, bob = Person.new(world, 'redisson', 1), Person.new(world, 'latchkey', 2)
    bob:come()
    jim:come()
    world:command('DEL', 'job')

    assert.equal(1, fair.try(world, 'lk-passer:1')[4])
    deliver({ jim })

    assert.is_true(jim.has)
  end)

  it('loses no place to a client whose clock is ahead, but its queue entry', function()
    local ann = Person.new(world, 'latchkey', 1)
    local fast = Redisson:new(world, { owner = 'c0ffee-9:9', skew_ms = 3600000 })
    fair.acquire(world, 'lk-holder:1')
    ann:come()
    assert.equal(1, fast:try_lock())

    ann:look()
    fair.release(world, 'lk-holder:1')
    deliver({ ann })

    assert.is_true(ann.has)
  end)

  it('wakes the first when Redisson unlocks a free lock, or breaks one', function()
    local ann, bob = Person.new(world, 'latchkey', 1), Person.new(world, 'latchkey', 2)
    local jim = Person.new(world, 'redisson', 3)
    jim:come()
    ann:come()
    bob:come()
    jim.redisson:force_unlock()
    deliver({ ann, bob })
    assert.is_true(ann.has)

    world:advance(30001)
    bob:look()
    assert.is_true(bob.has)
    assert.is_nil(jim.redisson:give_back())
    assert.same({}, world:messages())
  end)
end)
