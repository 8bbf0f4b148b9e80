-- SPDX-License-Identifier: Apache-2.0
-- Clients of latchkey and of Redisson that wait for one read-write lock: no message is missing, so
-- that everybody who waits has a turn before any lease ends.
local Redisson = require('interop.player.rw')
local helper = require('helper')
local rw = require('support.rw')

-- A process that wants the lock once, for one side.
local Person = {}
Person.__index = Person

function Person.new(world, kind, side, number)
  local owner = (kind == 'latchkey' and 'lk-%d:%d' or 'c0ffee-%d:%d'):format(number, number)
  return setmetatable({ world = world, is_latchkey = kind == 'latchkey', side = side,
    owner = side == 'write' and kind == 'latchkey' and owner .. ':write' or owner,
    redisson = Redisson:new(world, { owner = owner }), state = 'waits' }, Person)
end

function Person:try()
  local has
  if not self.is_latchkey then
    has = self.redisson[self.side .. '_lock'](self.redisson, 30000) == nil
  elseif self.side == 'read' then
    has = rw.read(self.world, self.owner)[1] == 1
  else
    has = rw.write(self.world, self.owner)[1] == 1
    if not has then
      rw.wait(self.world, self.owner)
    end
  end
  self.state = has and 'has' or self.state
end

function Person:give_back()
  self.state = 'done'
  if not self.is_latchkey then
    assert.equal('number', type(self.redisson:give_back(self.side .. '_unlock')))
  elseif self.side == 'read' then
    assert.reply({ 1, 0 }, rw.read_release(self.world, self.owner))
  else
    assert.reply({ 1, 0 }, rw.write_release(self.world, self.owner))
  end
end

-- Only a writer of latchkey leaves a trace of its waiting.
function Person:give_up()
  self.state = 'done'
  if self.is_latchkey and self.side == 'write' then
    assert.reply({ 1 }, rw.leave(self.world, self.owner))
  end
end

describe('a read-write lock for which latchkey and Redisson wait', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  local function in_state(people, state)
    local found = {}
    for _, person in ipairs(people) do
      if person.state == state then
        table.insert(found, person)
      end
    end
    return found
  end

  -- Whoever waits looks when there is a message, and only then.
  local function deliver(people, random)
    while #world:messages() > 0 do
      local waiting = in_state(people, 'waits')
      while #waiting > 0 do
        table.remove(waiting, random(#waiting)):try()
      end
    end
  end

  local function any(people, fits)
    for _, person in ipairs(people) do
      if fits(person) then
        return true
      end
    end
    return false
  end

  -- Nobody waits for what is free: the lock; or, while others read, a read hold, but for latchkey's
  -- readers where a writer of latchkey waits.
  local function assert_nobody_is_forgotten(people)
    local waiting, holding = in_state(people, 'waits'), in_state(people, 'has')
    local is_written = any(holding, function(person)
      return person.side == 'write'
    end)
    local is_wanted = any(waiting, function(person)
      return person.is_latchkey and person.side == 'write'
    end)
    for _, person in ipairs(waiting) do
      assert.is_true(#holding > 0)
      assert.is_true(person.side == 'write' or is_written or person.is_latchkey and is_wanted)
    end
  end

  for seed = 1, 10 do
    it(('loses nobody who waits: seed %d'):format(seed), function()
      local state, people = seed, {}
      local function random(n)
        state = (state * 1103515245 + 12345) % 2 ^ 31
        return math.floor(state / 2 ^ 16) % n + 1
      end

      for step = 1, 90 do
        local waiting, holding = in_state(people, 'waits'), in_state(people, 'has')
        local dice = random(6)
        if #people < 30 and (dice <= 3 or #holding == 0) then
          table.insert(people, Person.new(world, random(2) == 1 and 'latchkey' or 'redisson',
            random(2) == 1 and 'read' or 'write', step))
          people[#people]:try()
        elseif dice == 4 and #waiting > 0 then
          waiting[random(#waiting)]:give_up()
        elseif #holding > 0 then
          holding[random(#holding)]:give_back()
        end
        deliver(people, random)
        assert_nobody_is_forgotten(people)
      end
      local holding = in_state(people, 'has')
      while #holding > 0 do
        holding[random(#holding)]:give_back()
        deliver(people, random)
        holding = in_state(people, 'has')
      end

      assert.same({}, in_state(people, 'waits'))
      world:command('DEL', rw.THEIRS) -- a note about a hash that is gone ends by itself
      assert.left(world, {})
    end)
  end
end)
